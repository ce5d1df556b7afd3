/**
 * Collections that are deleted whole or not at all: everybody is asked about every object before the first one goes.
 * Upstream asks about one after the other while it deletes, and leaves what it has deleted until the first refusal.
 */

import { ApiError, type StatusCause } from '@coracle/apimachinery/meta/status';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { WriteCheck } from '../admission/plugin.ts';
import type { StoredObject } from '../cache/object-store.ts';
import { saysNothingNew } from './graceful-deletion.ts';
import type { ListCall } from './list.ts';
import { prepareViews, viewObject } from './versioned-view.ts';
import type { AdmissionHooks, Registry, WriteCall } from './write-contract.ts';

/** Refusals after which nobody is asked any more, and those of them that are listed. */
const MAX_REFUSED = 50;
const MAX_LISTED = 10;

type Call = ListCall &
  Omit<WriteCall, 'name' | 'namespace'> & { readonly delete: Parameters<typeof saysNothingNew>[2] };

/**
 * Asks about all of them, in the order of the list. Returns hooks for the deletes, which ask again about an object that
 * has changed since. Throws ApiError with a cause for each refused object, by the first of them.
 */
export async function admitWhole(
  registry: Registry,
  call: Call,
  items: readonly StoredObject[],
): Promise<AdmissionHooks> {
  const { admission, info } = call;
  /** By revision: what was asked for when the object is written. */
  const admitted = new Map<string, readonly WriteCheck[]>();
  const refused: { readonly name: string; readonly error: ApiError }[] = [];
  for (const item of items) {
    if (registry.clock.turnIsLong()) await nextTurn();
    if (call.signal.aborted) throw call.signal.reason;
    const current = registry.store.peek({ prefix: storagePrefix(info), namespace: item.namespace, name: item.name });
    if (!current || current.metadata.uid !== item.metadata.uid) continue;
    const views = prepareViews(info, [current], { again: false });
    if (views) await views;
    const oldObject = viewObject(info, current);
    if (saysNothingNew(info, oldObject, call.delete)) continue;
    const checks: WriteCheck[] = [];
    // The request names none.
    const subject = { name: '', object: undefined, oldObject, checks };
    try {
      await admission.mutate('DELETE', subject);
      await admission.validate('DELETE', subject);
      admitted.set(keyOf(oldObject.metadata), checks);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code >= 500) throw error;
      refused.push({ name: item.name, error });
      if (refused.length === MAX_REFUSED) break;
    }
  }
  if (refused.length > 0) throw refusalOf(refused, items.length);
  return {
    mutate(operation, subject) {
      if (!admitted.has(keyOf(subject.oldObject?.metadata))) return admission.mutate(operation, subject);
    },
    validate(operation, subject) {
      const key = keyOf(subject.oldObject?.metadata);
      const checks = admitted.get(key);
      if (!checks) return admission.validate(operation, subject);
      // Once: whoever comes again was sent back by one of the checks.
      admitted.delete(key);
      subject.checks?.push(...checks);
    },
  };
}

const keyOf = (metadata: StoredObject['metadata'] | undefined): string =>
  `${metadata?.uid} ${metadata?.resourceVersion}`;

function refusalOf(refused: readonly { readonly name: string; readonly error: ApiError }[], asked: number): ApiError {
  const first = refused[0]!.error;
  const listed = refused.slice(0, MAX_LISTED);
  const names = listed.map(({ name }) => name).join(', ');
  const more = refused.length > MAX_LISTED ? ', and others' : '';
  const many = `${refused.length}${refused.length === MAX_REFUSED ? ' or more' : ''}`;
  const causes = listed.map(({ error }): StatusCause => {
    const { message = '', reason = '', details } = error.status;
    return { reason: details?.causes?.[0]?.reason ?? reason, message };
  });
  const { code, message, reason, details } = first.status;
  return new ApiError({
    code,
    message: `${message}; none of the ${asked} objects of the collection was deleted, as ${many} may not be: ${names}${more}`,
    reason: reason ?? '',
    details: { ...details, causes },
  });
}
