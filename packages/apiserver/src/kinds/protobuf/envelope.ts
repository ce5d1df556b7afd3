/**
 * What stands around a message: `k8s` and a zero byte, then runtime.Unknown{typeMeta=1{apiVersion=1, kind=2}, raw=2,
 * contentEncoding=3, contentType=4}.
 */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import protobuf from 'protobufjs/minimal.js';
import { STRING, tag } from './value-codecs.ts';
import { BYTES, WireInput } from './wire-input.ts';

const MAGIC = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

export const startsEnvelope = (bytes: Uint8Array): boolean =>
  bytes.length >= MAGIC.length && MAGIC.every((byte, i) => bytes[i] === byte);

interface Envelope {
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
  /** Calls `take` for each field up to `end` that is known, with where its bytes end. */
  const known = (end: number, last: number, take: (number: number, valueEnd: number) => void): void =>
    input.fields(end, (number, wire) => {
      if (number > last) return input.skip(wire, end);
      input.expectWire(wire, BYTES);
      take(number, input.valueEnd(end));
    });
  known(bytes.length - MAGIC.length, 3, (number, end) => {
    if (number === 2) envelope.message = input.bytes(end);
    else if (number === 3) encoding = input.string(end);
    else {
      known(end, 2, (field, textEnd) => {
        envelope[field === 1 ? 'apiVersion' : 'kind'] = input.string(textEnd);
      });
    }
  });
  if (encoding !== '') throw new Error(`content encoding ${JSON.stringify(encoding)} is not supported`);
  return envelope;
}

/** What stands before and behind a message of `length` bytes. */
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
  return { before: before.finish(), after: AFTER };
}

/** Go writes encoding and type of the content always, set or not: here two empty texts. */
const AFTER = Uint8Array.of(tag(3, BYTES), 0, tag(4, BYTES), 0);

/** The enveloped message, ready to be sent. */
export function wrapEnvelope({ apiVersion, kind, message }: Envelope): Uint8Array {
  const { before, after } = envelopeAround({ apiVersion, kind, length: message.length });
  return joinBytes([before, message, after]);
}
