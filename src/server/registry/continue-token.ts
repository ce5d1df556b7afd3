/** The continue token of paged lists: unpadded base64url of a small JSON document (storage/continue.go). */
import { decodeBase64Url, encodeBase64Url } from '../../api/meta/base64.ts';
import { badRequest } from '../../api/meta/status.ts';

export interface ContinueToken {
  /** Snapshot of the first page; -1 continues at the newest state ("inconsistent"). */
  readonly revision: number;
  /** `namespace/name` of the last item sent. */
  readonly after: string;
}

const API_VERSION = 'meta.k8s.io/v1';
/** A key is at most namespace (63) + name (253); anything much longer is no token of ours. */
const MAX_TOKEN_LENGTH = 2048;

export const encodeContinue = (token: ContinueToken): string =>
  encodeBase64Url(
    new TextEncoder().encode(JSON.stringify({ v: API_VERSION, rv: token.revision, start: `${token.after}\u0000` })),
  );

/** Throws ApiError 400 when the text is no token. */
export function decodeContinue(text: string): ContinueToken {
  const bad = (why: string): Error => badRequest(`continue key is not valid: ${why}`);
  if (text.length > MAX_TOKEN_LENGTH) throw bad('too long');
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(decodeBase64Url(text)));
  } catch {
    throw bad('illegal base64 or JSON');
  }
  const { v, rv, start } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  if (v !== API_VERSION) throw bad('server does not recognize this encoded version');
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv < -1 || rv === 0)
    throw bad('incorrect encoded start resourceVersion');
  if (typeof start !== 'string' || !start.endsWith('\u0000') || !start.includes('/'))
    throw bad('encoded start key empty');
  return { revision: rv, after: start.slice(0, -1) };
}
