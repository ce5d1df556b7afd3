/**
 * What stands around a message: `k8s` and a zero byte, then runtime.Unknown{typeMeta=1{apiVersion=1, kind=2}, raw=2,
 * contentEncoding=3, contentType=4}.
 */
import protobuf from 'protobufjs/minimal.js';
import { STRING, tag } from './value-codecs.ts';
import { BYTES, WireInput } from './wire-input.ts';

const MAGIC = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

export const startsEnvelope = (bytes: Uint8Array): boolean =>
  bytes.length >= MAGIC.length && MAGIC.every((byte, i) => bytes[i] === byte);

export interface Envelope {
  /** '' when the sender left it out. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly message: Uint8Array;
}

/** Throws an Error when the prefix is missing, the bytes are malformed, or the message is compressed. */
export function unwrapEnvelope(bytes: Uint8Array): Envelope {
  if (!startsEnvelope(bytes)) {
    throw new Error('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]');
  }
  const input = new WireInput(bytes.subarray(MAGIC.length));
  const envelope = { apiVersion: '', kind: '', message: new Uint8Array(0) as Uint8Array };
  let encoding = '';
  input.fields(bytes.length - MAGIC.length, (number, wire) => {
    const limit = bytes.length - MAGIC.length;
    if (number < 1 || number > 3) return input.skip(wire, limit);
    input.expectWire(wire, BYTES);
    const end = input.valueEnd(limit);
    if (number === 1) readTypeMeta(input, { end, envelope });
    else if (number === 2) envelope.message = input.bytes(end);
    else encoding = input.string(end);
  });
  if (encoding !== '') throw new Error(`content encoding ${JSON.stringify(encoding)} is not supported`);
  return envelope;
}

function readTypeMeta(
  input: WireInput,
  { end, envelope }: { readonly end: number; readonly envelope: { apiVersion: string; kind: string } },
): void {
  input.fields(end, (number, wire) => {
    if (number !== 1 && number !== 2) return input.skip(wire, end);
    input.expectWire(wire, BYTES);
    const text = input.string(input.valueEnd(end));
    if (number === 1) envelope.apiVersion = text;
    else envelope.kind = text;
  });
}

/** What stands before and behind a message of `length` bytes that is sent in parts. */
export function envelopeAround({ apiVersion, kind, length }: Omit<Envelope, 'message'> & { readonly length: number }): {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
} {
  const before = protobuf.Writer.create();
  for (const byte of MAGIC) before.uint32(byte);
  before.uint32(tag(1, BYTES)).fork().uint32(tag(1, BYTES));
  STRING.write(before, apiVersion);
  before.uint32(tag(2, BYTES));
  STRING.write(before, kind);
  before.ldelim().uint32(tag(2, BYTES)).uint32(length);
  const after = protobuf.Writer.create();
  after.uint32(tag(3, BYTES)).bytes(EMPTY).uint32(tag(4, BYTES)).bytes(EMPTY);
  return { before: before.finish(), after: after.finish() };
}

/** The enveloped message, ready to be sent. */
export function wrapEnvelope({ apiVersion, kind, message }: Envelope): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(tag(1, BYTES)).fork().uint32(tag(1, BYTES));
  STRING.write(writer, apiVersion);
  writer.uint32(tag(2, BYTES));
  STRING.write(writer, kind);
  writer.ldelim().uint32(tag(2, BYTES)).bytes(message);
  // Go writes these two always, set or not.
  writer.uint32(tag(3, BYTES)).bytes(EMPTY).uint32(tag(4, BYTES)).bytes(EMPTY);
  const body = writer.finish();
  const bytes = new Uint8Array(MAGIC.length + body.length);
  bytes.set(MAGIC);
  bytes.set(body, MAGIC.length);
  return bytes;
}

const EMPTY = new Uint8Array(0);
