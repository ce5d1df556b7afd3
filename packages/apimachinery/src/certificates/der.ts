/** Reading DER (X.690): one element after another, every length checked against what is there. */

export interface DerElement {
  readonly tag: number;
  /** Content, without tag and length. */
  readonly content: Uint8Array;
  /** The whole element. */
  readonly raw: Uint8Array;
}

export const SEQUENCE = 0x30;
export const SET = 0x31;
export const INTEGER = 0x02;
export const BIT_STRING = 0x03;
export const OCTET_STRING = 0x04;
export const OBJECT_IDENTIFIER = 0x06;
export const UTC_TIME = 0x17;
export const GENERALIZED_TIME = 0x18;

/** No certificate and no request has more in one place: one of ten thousand names has as many. */
const MOST_ELEMENTS = 16_384;

/** The elements of `bytes`, which they must fill. Throws SyntaxError. */
export function readDer(bytes: Uint8Array): DerElement[] {
  const elements: DerElement[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (elements.length >= MOST_ELEMENTS) throw new SyntaxError('asn1: structure error: too many elements');
    const element = readAt(bytes, at);
    elements.push(element);
    at += element.raw.length;
  }
  return elements;
}

/** The one element that fills `bytes`, with that tag. Throws SyntaxError. */
export function readOne(bytes: Uint8Array, tag: number): DerElement {
  const first = readAt(bytes, 0);
  if (first.raw.length !== bytes.length || first.tag !== tag) throw new SyntaxError('asn1: structure error');
  return first;
}

/** Element `at` with that tag. Throws SyntaxError. */
export function expect(elements: readonly DerElement[], at: number, tag: number): DerElement {
  const element = elements[at];
  if (element?.tag !== tag) throw new SyntaxError("asn1: structure error: tags don't match");
  return element;
}

function readAt(bytes: Uint8Array, start: number): DerElement {
  const fail = (why: string): never => {
    throw new SyntaxError(`asn1: syntax error: ${why}`);
  };
  const tag = bytes[start]!;
  if ((tag & 0x1f) === 0x1f) fail('high tag number');
  let at = start + 1;
  const first = bytes[at++];
  if (first === undefined) return fail('truncated tag or length');
  let length = first;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 4) fail('length too large');
    length = 0;
    for (let i = 0; i < count; i++) length = length * 256 + (bytes[at++] ?? fail('truncated tag or length'));
  }
  if (at + length > bytes.length) fail('data truncated');
  return { tag, content: bytes.subarray(at, at + length), raw: bytes.subarray(start, at + length) };
}

/** Dotted text of an object identifier. */
export function identifierText(content: Uint8Array): string {
  const numbers: number[] = [];
  let value = 0;
  for (const byte of content) {
    value = value * 128 + (byte & 0x7f);
    if (byte & 0x80) continue;
    if (numbers.length === 0)
      numbers.push(Math.min(2, Math.floor(value / 40)), value - 40 * Math.min(2, Math.floor(value / 40)));
    else numbers.push(value);
    value = 0;
  }
  return numbers.join('.');
}

const BMP_STRING = 0x1e;

/** Text of any of the string types. */
export function stringText({ tag, content }: DerElement): string {
  if (tag !== BMP_STRING) return new TextDecoder().decode(content);
  let text = '';
  for (let i = 0; i + 1 < content.length; i += 2) text += String.fromCharCode(content[i]! * 256 + content[i + 1]!);
  return text;
}
