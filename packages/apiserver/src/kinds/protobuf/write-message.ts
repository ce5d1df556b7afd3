/** One JSON object as a message, along its plan. Values that are absent or null are not written. */

import { getOwn, isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type protobuf from 'protobufjs/minimal.js';
import { STRING, tag } from './value-codecs.ts';
import { BYTES } from './wire-input.ts';
import type { MessagePlan, WireField } from './wire-plan.ts';

/** Writes the fields of `object`, in the order of their numbers. Values of a wrong type are written as zero. */
export function writeMessage(
  writer: protobuf.Writer,
  plan: MessagePlan,
  object: Readonly<Record<string, unknown>>,
): void {
  for (const [number, field] of plan) {
    if (field.kind === 'inline') {
      if (!holdsAny(field.plan, object)) continue;
      writer.uint32(tag(number, BYTES)).fork();
      writeMessage(writer, field.plan, object);
      writer.ldelim();
      continue;
    }
    const value = getOwn(object, field.property);
    if (value !== undefined && value !== null) writeField(writer, { number, field, value });
  }
}

function writeField(
  writer: protobuf.Writer,
  {
    number,
    field,
    value,
  }: { readonly number: number; readonly field: Exclude<WireField, { kind: 'inline' }>; readonly value: unknown },
): void {
  const { codec } = field;
  switch (field.kind) {
    case 'one':
      writer.uint32(tag(number, codec.wire));
      codec.write(writer, value);
      return;
    case 'list':
      if (!Array.isArray(value)) return;
      for (const item of value) {
        writer.uint32(tag(number, codec.wire));
        codec.write(writer, item);
      }
      return;
    case 'map':
      if (!isJsonObject(value)) return;
      for (const key of Object.keys(value)) {
        writer.uint32(tag(number, BYTES)).fork().uint32(tag(1, BYTES));
        STRING.write(writer, key);
        writer.uint32(tag(2, codec.wire));
        codec.write(writer, value[key]);
        writer.ldelim();
      }
      return;
    default:
      field satisfies never;
  }
}

/** True when one of the fields is set that Go keeps in a struct of their own. */
export const holdsAny = (plan: MessagePlan, object: Readonly<Record<string, unknown>>): boolean =>
  [...plan.values()].some((field) =>
    field.kind === 'inline' ? holdsAny(field.plan, object) : (getOwn(object, field.property) ?? null) !== null,
  );
