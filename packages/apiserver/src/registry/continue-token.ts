/** The continue token of paged lists: unpadded base64url of a small JSON document (storage/continue.go). */
import { decodeLenientBase64Url, encodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { wrongType } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { badRequest } from '@coracle/apimachinery/meta/status';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';

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
  const bad = (why: string): Error => badRequest(`invalid continue token: continue key is not valid: ${why}`);
  if (text.length > MAX_TOKEN_LENGTH) throw bad('too long');
  if (/[^A-Za-z0-9_-]/.test(text) || text.length % 4 === 1) throw bad('illegal base64 data');
  const { v, rv, start } = tokenOf(text, bad);
  if (v !== API_VERSION) throw bad(`server does not recognize this encoded version ${typeof v === 'string' ? v : ''}`);
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv < -1 || rv === 0)
    throw bad(`incorrect encoded start resourceVersion (version ${API_VERSION})`);
  if (typeof start === 'string' && start.split('/').includes('..')) throw bad(start);
  if (typeof start !== 'string' || !start.endsWith('\u0000') || !start.includes('/'))
    throw bad(`encoded start key empty (version ${API_VERSION})`);
  return { revision: rv, after: start.slice(0, -1) };
}

function tokenOf(text: string, bad: (why: string) => Error): Record<string, unknown> {
  try {
    const { value } = parseJson(decodeLenientBase64Url(text));
    if (isJsonObject(value)) return value;
    throw new SyntaxError(wrongType(value, 'object'));
  } catch (error) {
    throw bad((error as Error).message.replace(/^json parse error: | \(line [0-9]+, column [0-9]+\)$/g, ''));
  }
}
