/** LIST: which snapshot, which page of it, and the token of the next page. */

import { decodeLenientBase64Url, encodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { wrongType } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Listed, StoredObject } from '../cache/object-store.ts';
import { filterObjects } from './filter-objects.ts';
import type { ListOptions } from './list-options.ts';
import { parseResourceVersion, waitForRevision } from './resource-version.ts';
import type { Selection } from './selection.ts';
import { prepareViews } from './versioned-view.ts';
import type { Registry } from './write-contract.ts';

export interface ListCall {
  readonly info: ResourceInfo;
  /** '' = all namespaces. */
  readonly namespace: string;
  /** Validated (`validateListOptions`). */
  readonly options: ListOptions;
  readonly selection: Selection;
  readonly signal: AbortSignal;
}

export interface ListResult {
  readonly items: readonly StoredObject[];
  /** Revision of the snapshot: a watch from here sees every later change exactly once. */
  readonly revision: number;
  /** '' when this is the last page. */
  readonly continue: string;
  /** Items behind this page; only without selectors. */
  readonly remaining: number | undefined;
}

const TOKEN_EXPIRED =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.';

/**
 * Throws ApiError: 400 bad token or version, 410 when the snapshot is gone, 504 when the version lies in the future, 500
 * when a webhook could not convert the items.
 */
export function listObjects(registry: Registry, call: ListCall): ListResult | Promise<ListResult> {
  if (call.info.remote !== undefined) return listConverted(registry, call);
  return listStored(registry, call);
}

/** Items are converted in one batch; a selector that looks into them needs all of them converted first. */
async function listConverted(registry: Registry, call: ListCall): Promise<ListResult> {
  const { info, namespace, options, selection } = call;
  if (!selection.everything && options.fieldSelector !== '') {
    const all = registry.store.list(storagePrefix(info), { ...(namespace !== '' && { namespace }) });
    await prepareViews(info, all.items, { again: false });
  }
  const listed = await listStored(registry, call);
  await prepareViews(info, listed.items, { again: true });
  return listed;
}

function listStored(registry: Registry, call: ListCall): ListResult | Promise<ListResult> {
  const { options } = call;
  if (options.continue !== '') return continueList(registry, call);
  const asked = parseResourceVersion(options.resourceVersion);
  // Where any state will do, upstream answers out of its watch cache, which gives everything at once.
  if (asked === 0) return page(registry, options.resourceVersion === '' ? call : withoutLimit(call), {});
  const exact = options.resourceVersionMatch === 'Exact' || (options.resourceVersionMatch === '' && options.limit > 0);
  const from = exact ? { revision: asked } : {};
  const wait = waitForRevision(registry, asked, call.signal);
  return wait ? wait.then(() => page(registry, call, from)) : page(registry, call, from);
}

const withoutLimit = (call: ListCall): ListCall =>
  call.options.limit === 0 ? call : { ...call, options: { ...call.options, limit: 0 } };

function continueList(registry: Registry, call: ListCall): ListResult | Promise<ListResult> {
  const { options } = call;
  const token = decodeContinue(options.continue);
  if (options.resourceVersion !== '' && options.resourceVersion !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
  if (call.namespace !== '' && !token.after.startsWith(`${call.namespace}/`)) {
    throw badRequest('invalid continue token: continue key is not valid: it belongs to a list of another namespace');
  }
  // A token from another store may name a revision that was never reached.
  if (token.revision > registry.store.revision())
    throw badRequest('invalid continue token: continue key is not valid: it is from the future');
  try {
    return page(registry, call, token.revision < 0 ? { after: token.after } : token);
  } catch (error) {
    if (error instanceof ApiError && error.code === 410) throw expiredToken(token);
    throw error;
  }
}

function expiredToken(token: ContinueToken): ApiError {
  const error = new ApiError({ code: 410, reason: 'Expired', message: TOKEN_EXPIRED });
  error.status.metadata.continue = encodeContinue({ revision: -1, after: token.after });
  return error;
}

function page(
  { store }: Registry,
  { info, namespace, options, selection, signal }: ListCall,
  from: { readonly revision?: number; readonly after?: string },
): ListResult | Promise<ListResult> {
  const { limit } = options;
  const { everything } = selection;
  const listed: Listed = store.list(storagePrefix(info), {
    ...(namespace !== '' && { namespace }),
    ...(from.revision !== undefined && { revision: from.revision }),
    ...(from.after !== undefined && { after: from.after }),
    ...(limit > 0 && everything && { limit }),
  });
  if (everything) return resultOf(listed, { limit, remaining: listed.remaining });
  const { items: all, revision } = listed;
  const chosen = (items: readonly StoredObject[]): ListResult => {
    const last = items.at(-1);
    // Upstream asks for that object then, where it knows its whole key.
    const isWhole = selection.single === true && from.after === undefined && (namespace !== '' || !info.namespaced);
    const isFull = !isWhole && limit > 0 && items.length === limit && last !== all.at(-1);
    const next = isFull ? `${last!.namespace}/${last!.name}` : undefined;
    return resultOf({ items, revision, next }, { limit, remaining: undefined });
  };
  const kept = filterObjects(all, { selection, limit, signal });
  return kept instanceof Promise ? kept.then(chosen) : chosen(kept);
}

function resultOf(
  { items, revision, next }: Pick<Listed, 'items' | 'revision' | 'next'>,
  { limit, remaining }: { readonly limit: number; readonly remaining: number | undefined },
): ListResult {
  const more = limit > 0 && next !== undefined;
  return {
    items,
    revision,
    continue: more ? encodeContinue({ revision, after: next }) : '',
    remaining: more ? remaining : undefined,
  };
}

/** Unpadded base64url of a small JSON document (storage/continue.go). */
interface ContinueToken {
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
