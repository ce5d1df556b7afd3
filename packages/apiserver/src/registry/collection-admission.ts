/**
 * Admission of the deletes of one collection: in list order, whatever the deletes behind them wait for, and nothing after
 * the first denial. Upstream deletes one after the other; here only the asking is.
 */
import { createDeferred, type Deferred } from '@coracle/runtime/signal/deferred';
import type { AdmissionHooks } from './write-contract.ts';

export interface CollectionAdmission {
  /** To be used by every delete. Names are not shown: the request named none. */
  readonly hooks: AdmissionHooks;
  /** While an item is being decided: look again when it resolves, and begin in the same turn of the event loop. */
  readonly busy: Promise<void> | undefined;
  /** An item was refused, and so are all that follow. */
  readonly refused: boolean;
}

/** Wraps the hooks of the request. */
export function collectionAdmission({ mutate, validate }: AdmissionHooks): CollectionAdmission {
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
