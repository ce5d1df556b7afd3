/**
 * The one way a controller saves an object: the difference between what it read and what it wants, as a merge patch
 * that holds only if nobody wrote in between.
 *
 * Flow: clone the cached object > change the clone in steps > `commit(client, type, { before, after })`.
 * Guarantees: nothing is sent when nothing changed; a stale `before` gives 409 Conflict and nothing is written; an object
 * deleted and made anew under the same name is never touched (uid). Metadata and spec go in one call, status in another,
 * never both in one pass: a pass that wants both is a programmer error, unless it says `order: 'status-last'`. Then
 * metadata and spec are written now and status by the next pass, which the change itself brings about; the status is
 * thus always computed from a spec that is stored. Writing both here could stop halfway and would hide which half.
 */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { createMergePatch } from '@coracle/apimachinery/patch/create-merge-patch';
import type { Client, Patch } from '../client.ts';
import { hasNullInList, statusPatch } from './status-patch.ts';

export interface CommitChange<T extends KubeObject> {
  /** As read; carries the resourceVersion and uid that must still hold. */
  readonly before: DeepReadonly<T> | T;
  readonly after: DeepReadonly<T> | T;
  /** Sends the whole difference here: a subresource, or '' for the main endpoint of a kind without `/status`. */
  readonly subresource?: string;
  /** What to do when metadata or spec and status changed both. */
  readonly order?: 'status-last';
  readonly signal?: AbortSignal;
}

type Fields = Record<string, unknown>;

/**
 * Writes the difference and returns the stored object; undefined when there was none.
 * @throws ApiError 409 when the object changed or was replaced since it was read, 404 when it is gone
 * @throws TypeError when spec and status changed together, or `before` was never stored
 */
export async function commit<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  change: CommitChange<T>,
): Promise<T | undefined> {
  const { before, after, signal } = change;
  const plan = planCommit(before as KubeObject, after as KubeObject, change);
  if (!plan) return undefined;
  const { status } = after as { status?: unknown };
  // What the merge patch would lose is sent as a whole.
  const patch: Patch =
    isStatusAlone(plan.body) && hasNullInList(status)
      ? statusPatch(before as KubeObject, status)
      : { type: 'merge', body: plan.body };
  return client.patch<T>(type, keyOf(before), patch, {
    ...(plan.subresource !== '' && { subresource: plan.subresource }),
    ...(signal && { signal }),
  });
}

/** The lock apart. */
const isStatusAlone = (body: Fields): boolean =>
  Object.keys(body).every((name) => name === 'status' || name === 'metadata') &&
  Object.keys(body['metadata'] as Fields).every((name) => name === 'uid' || name === 'resourceVersion');

/** What `commit` will send: the merge patch and where to; undefined when there is nothing to send. */
export function planCommit(
  before: KubeObject,
  after: KubeObject,
  options: { readonly subresource?: string; readonly order?: 'status-last' } = {},
): { body: Fields; subresource: string } | undefined {
  const difference = createMergePatch(before, after) as Fields | undefined;
  if (difference === undefined || Object.keys(difference).length === 0) return undefined;
  const { uid, resourceVersion, name } = before.metadata;
  if (uid === undefined || resourceVersion === undefined) {
    throw new TypeError(`Cannot commit ${before.kind} "${name}": it has no uid or resourceVersion, create it first`);
  }

  let body = difference;
  let subresource = options.subresource;
  if (subresource === undefined) {
    const { status, ...main } = difference;
    const mainChanged = Object.keys(main).length > 0;
    if (!Object.hasOwn(difference, 'status')) subresource = '';
    else if (!mainChanged) subresource = 'status';
    else if (options.order === 'status-last') {
      subresource = '';
      body = main;
    } else {
      throw new TypeError(
        `Cannot commit ${before.kind} "${name}": ${Object.keys(main).join(', ')} and status changed in one pass; ` +
          "stop the pass after the first, or pass order: 'status-last'",
      );
    }
  }
  return {
    body: { ...body, metadata: { ...(body['metadata'] as Fields | undefined), uid, resourceVersion } },
    subresource,
  };
}
