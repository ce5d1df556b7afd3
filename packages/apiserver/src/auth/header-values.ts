/** Headers that may be repeated, or that carry a key in their name. */
import type { ApiRequest } from '@coracle/runtime/http/seam';

type Headers = Pick<ApiRequest, 'headers' | 'rawHeaders'>;

/** All values of a header (lower-case name). Where the wire's own list is missing, the joined text is split. */
export function headerValues({ headers, rawHeaders }: Headers, name: string): string[] {
  if (rawHeaders === undefined) return headers[name] === undefined ? [] : headers[name].split(', ');
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() === name) values.push(rawHeaders[i + 1]!);
  }
  return values;
}

/** Begins the sub-protocol that carries the token of a WebSocket's client, in base64url. */
export const BEARER_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';

/** The sub-protocols that a client offers, in its order, besides that which carries its token. */
export const offeredProtocols = (header = ''): string[] =>
  header
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '' && !one.startsWith(BEARER_PROTOCOL));

/** Headers `<prefix><key>`, by key: lower-cased, then percent-decoded. */
export function prefixedValues(request: Headers, prefix: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const name of Object.keys(request.headers)) {
    if (!name.startsWith(prefix)) continue;
    const key = percentDecoded(name.slice(prefix.length));
    found.set(key, [...(found.get(key) ?? []), ...headerValues(request, name)]);
  }
  return found;
}

/** A key that does not decode stands for itself, as upstream has it. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
