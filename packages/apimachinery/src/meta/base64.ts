/** Base64 in both alphabets, on the two functions every engine has. */

/** Standard base64 with padding: Secret data. */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(binary);
}

const LAST_GROUP = /(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)$/;

/**
 * True for standard base64 with its padding and nothing else. One class and the end: a pattern of groups of four takes
 * ten times as long, and megabytes come along.
 */
export const isBase64 = (text: string): boolean =>
  text === '' ||
  (text.length % 4 === 0 && /^[A-Za-z0-9+/]*$/.test(text.slice(0, -2)) && LAST_GROUP.test(text.slice(-2)));

/** Throws a SyntaxError-like DOMException when the text is not base64. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** URL alphabet without padding (RFC 4648, section 5): tokens and list continuations. */
export const encodeBase64Url = (bytes: Uint8Array): string =>
  encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

/** Bytes of the URL alphabet as Go's decoder takes them: bits at the end that mean nothing are no fault. */
export const decodeLenientBase64Url = (text: string): Uint8Array<ArrayBuffer> =>
  decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/'));

/**
 * The one spelling of some bytes, without padding, white space or bits that mean nothing: two texts are never the same
 * token. Throws when the text is none.
 */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[\w-]*$/.test(text)) throw new SyntaxError('not base64url');
  const bytes = decodeLenientBase64Url(text);
  if (
    text.length % 4 !== 0 &&
    encodeBase64Url(bytes.subarray(bytes.length - (bytes.length % 3))) !== text.slice(-(text.length % 4))
  ) {
    throw new SyntaxError('not the canonical base64url');
  }
  return bytes;
}
