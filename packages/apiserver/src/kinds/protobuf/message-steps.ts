/**
 * The bytes of `writeMessage` in steps, with others served in between: for large objects. A message stands behind its
 * length, so what is large is written into an output of its own first; what is small goes the way it always goes.
 */

import { getOwn, isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { nodesLeft } from '@coracle/apimachinery/meta/small';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import type { StepOutput } from './step-output.ts';
import { type Codec, STRING, tag } from './value-codecs.ts';
import { BYTES } from './wire-input.ts';
import type { MessagePlan, WireField } from './wire-plan.ts';
import { holdsAny } from './write-message.ts';

/** Nodes written in one go. */
const TOGETHER = 500;

/** Writes the fields of `object` as `writeMessage` does. */
export function* messageSteps(
  out: StepOutput,
  plan: MessagePlan,
  object: Readonly<Record<string, unknown>>,
): Steps<void> {
  for (const [number, field] of plan) {
    if (field.kind === 'inline') {
      if (!holdsAny(field.plan, object)) continue;
      out.writer.uint32(tag(number, BYTES));
      yield* out.nested((inner) => messageSteps(inner, field.plan, object));
      continue;
    }
    const value = getOwn(object, field.property);
    if (value !== undefined && value !== null) yield* fieldSteps(out, { number, field, value });
  }
}

function* fieldSteps(
  out: StepOutput,
  {
    number,
    field,
    value,
  }: { readonly number: number; readonly field: Exclude<WireField, { kind: 'inline' }>; readonly value: unknown },
): Steps<void> {
  const { codec } = field;
  switch (field.kind) {
    case 'one':
      yield* valueSteps(out, { number, codec, value });
      return;
    case 'list':
      if (!Array.isArray(value)) return;
      for (const item of value) yield* valueSteps(out, { number, codec, value: item });
      return;
    case 'map':
      if (!isJsonObject(value)) return;
      yield;
      for (const key of Object.keys(value)) yield* entrySteps(out, { number, codec, key, value: value[key] });
      return;
    default:
      field satisfies never;
  }
}

interface Value {
  readonly number: number;
  readonly codec: Codec;
  readonly value: unknown;
}

/** One value behind its tag. */
export function* valueSteps(out: StepOutput, { number, codec, value }: Value): Steps<void> {
  out.writer.uint32(tag(number, codec.wire));
  const left = nodesLeft(value, TOGETHER);
  if (codec.steps !== undefined && left < 0) {
    yield;
    yield* codec.steps(out, value);
    return;
  }
  codec.write(out.writer, value);
  if (out.due(TOGETHER - Math.max(left, 0))) yield;
}

function* entrySteps(out: StepOutput, { number, codec, key, value }: Value & { readonly key: string }): Steps<void> {
  out.writer.uint32(tag(number, BYTES));
  const left = nodesLeft(value, TOGETHER);
  if (codec.steps !== undefined && left < 0) {
    const { steps } = codec;
    yield;
    yield* out.nested(function* (inner) {
      inner.writer.uint32(tag(1, BYTES));
      STRING.write(inner.writer, key);
      inner.writer.uint32(tag(2, codec.wire));
      yield* steps(inner, value);
    });
    return;
  }
  const { writer } = out;
  writer.fork().uint32(tag(1, BYTES));
  STRING.write(writer, key);
  writer.uint32(tag(2, codec.wire));
  codec.write(writer, value);
  writer.ldelim();
  if (out.due(TOGETHER - Math.max(left, 0))) yield;
}
