/** One message from the wire into a JSON object, along its plan. Unknown numbers are skipped, as proto2 has it. */
import { type JsonObject, setOwn } from '@coracle/apimachinery/meta/own-property';
import type { Codec } from './value-codecs.ts';
import { BYTES, type WireInput } from './wire-input.ts';
import type { MessagePlan, WireField } from './wire-plan.ts';

/** Reads up to `end` into `target` and returns it. Throws an Error when the bytes do not fit the plan. */
export function readMessage(
  input: WireInput,
  at: { readonly plan: MessagePlan; readonly end: number; readonly target: JsonObject },
): JsonObject {
  const { plan, end, target } = at;
  return input.nested(() => {
    input.fields(end, (number, wire) => {
      const field = plan.get(number);
      if (field === undefined) input.skip(wire, end);
      else readField(input, { field, wire, end, target });
    });
    return target;
  });
}

interface FieldSite<F extends WireField> {
  readonly field: F;
  readonly wire: number;
  readonly end: number;
  readonly target: JsonObject;
}

function readField(input: WireInput, site: FieldSite<WireField>): void {
  const { field, wire, end, target } = site;
  switch (field.kind) {
    case 'one': {
      input.expectWire(wire, field.codec.wire);
      const value = readValue(input, { codec: field.codec, end, earlier: target[field.property] });
      if (value === undefined || (!field.keepZero && value === field.codec.zero)) delete target[field.property];
      else target[field.property] = value;
      return;
    }
    case 'list':
      readItems(input, { ...site, field });
      return;
    case 'map':
      readEntry(input, { ...site, field });
      return;
    case 'inline':
      input.expectWire(wire, BYTES);
      readMessage(input, { plan: field.plan, end: input.valueEnd(end), target });
      return;
    default:
      field satisfies never;
  }
}

function readValue(
  input: WireInput,
  { codec, end, earlier }: { readonly codec: Codec; readonly end: number; readonly earlier?: unknown },
): unknown {
  if (codec.wire !== BYTES) return codec.read(input, end, earlier);
  const valueEnd = input.valueEnd(end);
  const value = codec.read(input, valueEnd, earlier);
  if (input.position !== valueEnd) throw new Error('a value ends before its announced length');
  return value;
}

/** One item, or several numbers packed into one value. */
function readItems(
  input: WireInput,
  { field, wire, end, target }: FieldSite<Extract<WireField, { kind: 'list' }>>,
): void {
  const { codec, property } = field;
  target[property] ??= [];
  const list = target[property] as unknown[];
  if (wire === BYTES && codec.wire !== BYTES) {
    const packedEnd = input.valueEnd(end);
    while (input.position < packedEnd) list.push(codec.read(input, packedEnd, undefined));
    if (input.position !== packedEnd) throw new Error('packed numbers cross the end of their value');
    return;
  }
  input.expectWire(wire, codec.wire);
  list.push(readValue(input, { codec, end }) ?? codec.empty());
}

/** {key=1, value=2}; keys are strings everywhere in the API. */
function readEntry(
  input: WireInput,
  { field, wire, end, target }: FieldSite<Extract<WireField, { kind: 'map' }>>,
): void {
  const { codec, property } = field;
  input.expectWire(wire, BYTES);
  const entryEnd = input.valueEnd(end);
  let key = '';
  let value: unknown;
  input.fields(entryEnd, (number, entryWire) => {
    if (number === 1) {
      input.expectWire(entryWire, BYTES);
      key = input.string(input.valueEnd(entryEnd));
    } else if (number === 2) {
      input.expectWire(entryWire, codec.wire);
      value = readValue(input, { codec, end: entryEnd });
    } else {
      input.skip(entryWire, entryEnd);
    }
  });
  target[property] ??= {};
  setOwn(target[property] as JsonObject, key, value ?? codec.empty());
}
