/** When a certificate is good (RFC 5280, 4.1.2.5). */
import { decodeBase64 } from '../meta/base64.ts';
import { type DerElement, expect, GENERALIZED_TIME, readDer, readOne, SEQUENCE, stringText, UTC_TIME } from './der.ts';

/** Of the first certificate of a PEM text; milliseconds since the epoch. Throws SyntaxError. */
export function certificateValidity(pem: string): { readonly notBefore: number; readonly notAfter: number } {
  const body = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/.exec(pem)?.[1];
  if (body === undefined) throw new SyntaxError('expected a PEM encoded certificate');
  const [signed] = readDer(readOne(decodeBase64(body.replace(/\s+/g, '')), SEQUENCE).content);
  const fields = readDer(signed!.content);
  // The version stands first, tagged, where it is not 1; then serial number, algorithm, issuer, validity.
  const validity = expect(fields, fields[0]?.tag === 0xa0 ? 4 : 3, SEQUENCE);
  const [from, to] = readDer(validity.content);
  return { notBefore: timeOf(from), notAfter: timeOf(to) };
}

function timeOf(element: DerElement | undefined): number {
  const text = element ? stringText(element) : '';
  const short = element?.tag === UTC_TIME;
  if (!short && element?.tag !== GENERALIZED_TIME) throw new SyntaxError('asn1: structure error: no time');
  const year = short
    ? Number(text.slice(0, 2)) < 50
      ? `20${text.slice(0, 2)}`
      : `19${text.slice(0, 2)}`
    : text.slice(0, 4);
  const rest = short ? text.slice(2) : text.slice(4);
  const at = (from: number): string => rest.slice(from, from + 2);
  return Date.parse(`${year}-${at(0)}-${at(2)}T${at(4)}:${at(6)}:${at(8)}Z`);
}
