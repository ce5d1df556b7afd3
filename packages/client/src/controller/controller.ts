/**
 * The loop around one reconciler: changes in, keys through a queue, passes out.
 *
 * Flow: informers synced > a change maps to keys > the queue dedupes > `reconcile(key)` > done, again later, or backoff.
 * Guarantees: no pass before every source has synced; never two passes of one key at once; a key changed during its pass
 * gets another one. A failed pass is logged once, with its reconcile id; a lost race (409) is retried without a word.
 * Caveats: a pass learns only the key; it must read the state from the informers and expect that to lag behind.
 */
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import type { ApiError } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { aborted } from '@coracle/runtime/signal/abortable';
import { isConflict, isNotFound } from '../api-failure.ts';
import type { Client } from '../client.ts';
import type { Informer } from '../informer/informer.ts';
import { NotSyncedError, syncedInTime } from '../informer/not-synced.ts';
import { createWorkQueue } from '../queue/work-queue.ts';
import { TerminalError } from './terminal-error.ts';

/** What a pass asks for: nothing more until something changes, which is no result at all, or another look by itself. */
// biome-ignore lint/suspicious/noConfusingVoidType: what an async function without a `return` gives
export type ReconcileResult = void | { readonly requeueAfterMs: number };

/** Looks at the key again after `ms` milliseconds, or earlier when something changes. */
export const requeueAfter = (ms: number): ReconcileResult => ({ requeueAfterMs: ms });

export interface ReconcileContext {
  /** Aborts when the controller stops. */
  readonly signal: AbortSignal;
  /** Carries the controller's name, the key and the reconcile id. */
  readonly log: Logger;
  readonly client: Client;
}

/** Which keys a change of a source's object concerns. On deletion `object` is the last state. */
export interface Source<T extends KubeObject = KubeObject> {
  readonly informer: Informer<T>;
  keys(object: DeepReadonly<T>, previous: DeepReadonly<T> | undefined): readonly ObjectKey[];
}

export interface ControllerOptions {
  /** In logs. */
  readonly name: string;
  readonly client: Client;
  readonly log: Logger;
  readonly clock: Clock;
  /** Made by `source`, `ownKeys` or `controllerOwner`. */
  readonly sources: readonly Source[];
  readonly reconcile: (key: ObjectKey, context: ReconcileContext) => Promise<ReconcileResult>;
  /** Passes at once, of different keys; 1 when absent. */
  readonly concurrency?: number;
  readonly random?: () => number;
}

export interface Controller {
  readonly name: string;
  /** Runs until the signal aborts; resolves when the last pass has ended, never rejects. Starts no informer. */
  start(signal: AbortSignal): Promise<void>;
  /** Has a key looked at, from outside the sources; after `ms` when given. */
  enqueue(key: ObjectKey, ms?: number): void;
}

/** Ties the type of a source's informer to its mapping. */
export const source = <T extends KubeObject>(
  informer: Informer<T>,
  keys: (object: DeepReadonly<T>, previous: DeepReadonly<T> | undefined) => readonly ObjectKey[],
): Source => ({ informer, keys }) as unknown as Source;

/** A source whose objects are the controller's own: a change concerns the object itself. */
export const ownKeys = <T extends KubeObject>(informer: Informer<T>): Source =>
  source(informer, (object) => [keyOf(object)]);

/** A source of dependents: a change concerns the controlling owner of that group and kind, before and after. */
export const controllerOwner = <T extends KubeObject>(
  informer: Informer<T>,
  owner: { readonly group: string; readonly kind: string },
): Source =>
  source(informer, (object, previous) =>
    ([object, previous] as (ReadonlyObject | undefined)[]).flatMap((one) =>
      (one?.metadata.ownerReferences ?? [])
        .filter(({ controller, kind }) => controller === true && kind === owner.kind)
        .filter(({ apiVersion }) => parseApiVersion(apiVersion).group === owner.group)
        .map(({ name }) => ({ namespace: one?.metadata.namespace ?? '', name })),
    ),
  );

/** 'namespace/name' or 'name' back to a key: names hold no slash. */
const parseKey = (text: string): ObjectKey => {
  const slash = text.indexOf('/');
  return slash < 0 ? { namespace: '', name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
};

/** True when the very object of a pass was deleted before the pass wrote it. */
const isGone = (error: unknown, { name }: ObjectKey): error is ApiError =>
  isNotFound(error) && error.status.details?.name === name;

/** Makes a controller; nothing happens before `start`. */
export function createController(options: ControllerOptions): Controller {
  const { name, client, clock, sources, reconcile, concurrency = 1, random } = options;
  const log = options.log.with({ controller: name });
  let stopSignal: AbortSignal = new AbortController().signal;
  let passes = 0;

  const pass = async (text: string): Promise<void> => {
    const reconcileId = `${name}-${(++passes).toString(36)}`;
    const key = parseKey(text);
    const passLog = log.with({ ...(key.namespace !== '' && { ns: key.namespace }), name: key.name, reconcileId });
    try {
      const result = await reconcile(key, { signal: stopSignal, log: passLog, client });
      queue.forget(text);
      if (result) queue.addAfter(text, result.requeueAfterMs);
    } catch (error) {
      if (stopSignal.aborted) return;
      if (error instanceof TerminalError) {
        queue.forget(text);
        passLog.error('reconcile failed for good', { error: describe(error) });
        return;
      }
      const retryMs = Math.round(queue.addRateLimited(text));
      if (isConflict(error) || isGone(error, key)) {
        passLog.debug('reconcile lost a race', { error: error.message, retryMs });
      } else passLog.error('reconcile failed', { error: describe(error), retryMs });
    }
  };
  const queue = createWorkQueue({ clock, concurrency, run: pass, ...(random && { random }) });

  return {
    name,
    enqueue: (key, ms = 0) => queue.addAfter(keyText(key), ms),
    async start(signal) {
      stopSignal = signal;
      const unsubscribe = sources.map((one) =>
        one.informer.onChange((change) => {
          for (const key of one.keys(change.object, change.previous)) queue.add(keyText(key));
        }),
      );
      try {
        await syncedInTime(
          sources.map((one) => one.informer),
          clock,
          signal,
        );
        queue.start();
        await aborted(signal);
      } catch (error) {
        if (error instanceof NotSyncedError) throw error;
        if (!signal.aborted) log.error('controller stopped', { error: describe(error) });
      } finally {
        for (const end of unsubscribe) end();
        await queue.stop();
      }
    },
  };
}

/** The message; with the stack for what is no answer of the API, since that is a bug here. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const expected = error.name === 'ApiError' || error instanceof TerminalError;
  return expected ? error.message : (error.stack ?? error.message);
}
