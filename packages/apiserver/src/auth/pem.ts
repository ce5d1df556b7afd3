/** PEM armour (RFC 7468) around DER bytes: all that a start needs, without loading an ASN.1 library. */
import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';

/** Wraps DER bytes. */
export function encodePem(der: ArrayBuffer | Uint8Array, label: string): string {
  const text = encodeBase64(der instanceof Uint8Array ? der : new Uint8Array(der));
  return `-----BEGIN ${label}-----\n${text.match(/.{1,64}/g)?.join('\n') ?? ''}\n-----END ${label}-----\n`;
}

/** The DER bytes of the first block. Throws when there is none. */
export function decodePem(pem: string): Uint8Array<ArrayBuffer> {
  const body = /-----BEGIN [^-]+-----([^-]+)-----END/.exec(pem)?.[1];
  if (body === undefined) throw new SyntaxError('Cannot read PEM: no BEGIN/END block');
  return decodeBase64(body.replace(/\s+/g, ''));
}
