/** DELETE of a collection: a list with the query's selectors, then one ordinary delete each. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { createDeferred, type Deferred } from '@coracle/runtime/signal/deferred';
import type { StoredObject } from '../cache/object-store.ts';
import { deleteObject } from './delete.ts';
import type { DeleteOptions } from './graceful-deletion.ts';
import { type ListCall, type ListResult, listObjects } from './list.ts';
import { admitWhole } from './whole-collection.ts';
import type { AdmissionHooks, Registry, WriteCall } from './write-contract.ts';

/** Deletes in flight at once: enough to share commits, few enough to bound memory. */
const CONCURRENCY = 16;

/** Returns the page of items that were asked to go, as they were listed. Throws ApiError of the first delete that failed; of kinds that are deleted whole, before any. */
export async function deleteCollection(
  registry: Registry,
  call: ListCall & Omit<WriteCall, 'name' | 'namespace'> & { readonly delete: DeleteOptions },
): Promise<ListResult> {
  const listed = await listObjects(registry, call);
  const queue = listed.items.values();
  const whole = registry.deletesWhole?.(call.info) === true;
  const admission = collectionAdmission(whole ? await admitWhole(registry, call, listed.items) : call.admission);
  const admitted = { ...call, admission: admission.hooks };
  const worker = async (): Promise<void> => {
    for (;;) {
      // What is only tried waits for no commit. Before the look at those ahead: the order of denials is the list's.
      if (registry.clock.turnIsLong()) await nextTurn();
      while (admission.busy) await admission.busy;
      if (admission.refused) return;
      if (call.signal.aborted) throw call.signal.reason;
      const { done, value: item } = queue.next();
      if (done) return;
      await deleteListed(registry, admitted, item);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return listed;
}

async function deleteListed(
  registry: Registry,
  call: Parameters<typeof deleteCollection>[1],
  item: StoredObject,
): Promise<void> {
  const { uid } = item.object.metadata;
  // Only the object that was listed: a successor of the same name was not selected.
  const preconditions = { ...call.delete.preconditions, ...(uid !== undefined && { uid }) };
  try {
    await deleteObject(registry, {
      ...call,
      namespace: item.namespace,
      name: item.name,
      options: { ...call.delete, preconditions },
    });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 404 && error.reason !== 'Conflict')) throw error;
  }
}

interface CollectionAdmission {
  /** To be used by every delete. Names are not shown: the request named none. */
  readonly hooks: AdmissionHooks;
  /** While an item is being decided: look again when it resolves, and begin in the same turn of the event loop. */
  readonly busy: Promise<void> | undefined;
  /** An item was refused, and so are all that follow. */
  readonly refused: boolean;
}

/**
 * The hooks of the request for the deletes of one collection: in list order, whatever the deletes behind them wait for, and
 * nothing after the first denial. Upstream deletes one after the other; here only the asking is.
 */
function collectionAdmission({ mutate, validate }: AdmissionHooks): CollectionAdmission {
  let refused = false;
  let asking: Deferred<void> | undefined;
  const decided = (): void => {
    asking?.resolve();
    asking = undefined;
  };
  const refuse = (error: unknown): never => {
    refused = true;
    decided();
    throw error;
  };
  return {
    get busy() {
      return asking?.promise;
    },
    get refused() {
      return refused;
    },
    hooks: {
      mutate(operation, subject) {
        try {
          const pending = mutate(operation, { ...subject, name: '' });
          // From here on until validation is over, nobody else is asked.
          asking ??= createDeferred();
          return pending?.catch(refuse);
        } catch (error) {
          refuse(error);
        }
      },
      validate(operation, subject) {
        try {
          const pending = validate(operation, { ...subject, name: '' });
          if (pending) return pending.then(decided, refuse);
          decided();
        } catch (error) {
          refuse(error);
        }
      },
    },
  };
}
