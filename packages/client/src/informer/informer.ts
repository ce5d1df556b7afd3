/**
 * A live, read-only copy of one resource: lists, watches, and comes back by itself. The protocol is `watch-state.ts`,
 * the objects are in `store.ts`; the open watch is in `watch-stream.ts`; this file runs them.
 *
 * Guarantees: objects are deep-frozen; listeners hear every change of the store in order, once, after the store shows
 * it; nothing older follows something newer. Caveats: the copy lags behind the server, and states in between may be
 * skipped after a broken connection; a listener must not throw (it is logged and goes on hearing).
 */
import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { type Clock, systemClock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { type Logger, silentLogger } from '@coracle/runtime/log/log';
import { createBackoff } from '@coracle/runtime/retry/backoff';
import { abortable } from '@coracle/runtime/signal/abortable';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { isNotFound } from '../api-failure.ts';
import type { Client } from '../client.ts';
import { LagReport, WARN_MS } from './lag-report.ts';
import { type Change, type IndexFunction, type Store, StoreWriter } from './store.ts';
import { initialWatchState, stepWatch, type WatchCommand, type WatchInput, type WatchState } from './watch-state.ts';
import { createWatchStream } from './watch-stream.ts';

export interface InformerOptions<T extends KubeObject> {
  /** All namespaces when undefined. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** Only apiVersion, kind and metadata of each object, and of that no managedFields: they can be most of it. */
  readonly metadataOnly?: boolean;
  /** Objects are held without their managedFields. */
  readonly omitsManagedFields?: boolean;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly random?: () => number;
}

export type ChangeListener<T extends KubeObject> = (change: Change<T>) => void;

export interface Informer<T extends KubeObject> extends Store<T> {
  readonly type: ResourceType<T>;
  /** Begins to list and watch until the signal aborts; resolves when it has stopped, never rejects. Call it once. */
  start(signal: AbortSignal): Promise<void>;
  /** Resolves when the first whole state is in the store; rejects with the signal's reason when it aborts first. */
  synced(signal: AbortSignal): Promise<void>;
  readonly isSynced: boolean;
  /** What the last list or watch failed with, until one succeeds. */
  readonly lastError: string | undefined;
  /** Hears `added` for each object held already, then every change. Returns the function that ends it. */
  onChange(listener: ChangeListener<T>): () => void;
  /** Adds an index at any time; one of that name stays as it is. Returns the informer itself. */
  addIndex(name: string, compute: IndexFunction<T>): Informer<T>;
}

/** Objects a list page; the server may answer with fewer. */
const PAGE_SIZE = 500;
/** Pauses after failures in a row. */
const BACKOFF = { baseMs: 250, maxMs: 30_000, jitter: 1 };

/** Makes an informer; nothing happens before `start`. */
export function createInformer<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  options: InformerOptions<T> = {},
): Informer<T> {
  const { clock = systemClock, log = silentLogger } = options;
  const store = new StoreWriter<T>(options.indexes);
  const listeners = new Set<ChangeListener<T>>();
  const firstSync = createDeferred();
  const { execute, lag, stream } = createSteps(client, type, options, () => synced);
  let started = false;
  let synced = false;

  const notify = (listener: ChangeListener<T>, change: Change<T>): void => {
    try {
      listener(change);
    } catch (error) {
      log.error('informer listener failed', { resource: type.resource, error: String(error) });
    }
  };

  const run = async (signal: AbortSignal): Promise<void> => {
    let state = initialWatchState<T>();
    let input: WatchInput<T> = { type: 'begin' };
    while (!signal.aborted) {
      const step = stepWatch(state, input);
      state = step.state;
      if (step.change) {
        for (const change of store.take(step.change)) {
          // One who comes while it is delivered is shown what the store holds, and that among it.
          if (change !== undefined) for (const listener of [...listeners]) notify(listener, change);
          // One event is delivered at once: what other informers show meanwhile must not run ahead of it for long.
          if (step.change.type === 'replace' && clock.turnIsLong()) await nextTurn();
        }
        lag.inStep();
        if (step.change.type === 'replace' && !synced) {
          synced = true;
          firstSync.resolve();
        }
      }
      input = await execute(step.command, state, signal);
    }
  };

  const informer: Informer<T> = {
    type,
    async start(signal) {
      if (started) throw new Error(`Cannot start informer of ${type.resource}: it was started before`);
      started = true;
      lag.begin();
      const stopTimer = clock.schedule(WARN_MS, () => {
        if (!synced && !signal.aborted) lag.behind(synced);
      });
      try {
        await run(signal);
      } catch (error) {
        if (!signal.aborted) log.error('informer stopped', { resource: type.resource, error: String(error) });
      } finally {
        stopTimer();
        stream.close();
        if (!synced) firstSync.reject(signal.reason);
      }
    },
    synced: (signal) => abortable(firstSync.promise, signal),
    get isSynced() {
      return synced;
    },
    get lastError() {
      return lag.lastError;
    },
    get: (key: ObjectKey): DeepReadonly<T> | undefined => store.get(key),
    list: (within) => store.list(within),
    byIndex: (name, value) => store.byIndex(name, value),
    onChange(listener) {
      for (const object of store.list()) notify(listener, { type: 'added', object });
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    addIndex(name, compute) {
      store.addIndex(name, compute);
      return informer;
    },
  };
  return informer;
}

/** What the state machine asks for, done: one command at a time, whose outcome is its next input. */
function createSteps<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  options: InformerOptions<T>,
  isSynced: () => boolean,
) {
  const { clock = systemClock, log = silentLogger, random = Math.random } = options;
  const { namespace, labelSelector, fieldSelector, metadataOnly, omitsManagedFields } = options;
  const scope = {
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
    ...(metadataOnly && { metadataOnly }),
  };
  const trim = (object: T): T => {
    if (!(metadataOnly || omitsManagedFields) || object.metadata?.managedFields === undefined) return object;
    const { managedFields: _, ...metadata } = object.metadata;
    return { ...object, metadata };
  };
  const backoff = createBackoff(BACKOFF, random);
  const lag = new LagReport({ resource: type.resource, apiVersion: apiVersionOf(type) }, clock, log);
  const stream = createWatchStream<T>(client, type, {
    scope,
    clock,
    random,
    backoff,
    onAlive: () => lag.inStep(),
    trim,
  });

  const execute = async (command: WatchCommand, state: WatchState<T>, signal: AbortSignal): Promise<WatchInput<T>> => {
    switch (command.type) {
      case 'watch-list':
        stream.open(signal, undefined);
        return stream.read(true);
      case 'watch':
        stream.open(signal, command.resourceVersion);
        return stream.read(false);
      case 'read':
        return stream.read(state.phase === 'initial');
      case 'list':
        stream.close();
        try {
          const page = { limit: PAGE_SIZE, ...(command.continue !== undefined && { continue: command.continue }) };
          const list = await client.list<T>(type, { ...scope, ...page, signal });
          return { type: 'page', list: { ...list, items: list.items.map(trim) } };
        } catch (error) {
          return { type: 'failed', error };
        }
      case 'restart':
        return { type: 'begin' };
      case 'back-off': {
        stream.close();
        const ms = backoff.next();
        const text = command.error instanceof Error ? command.error.message : String(command.error);
        lag.lastError = text;
        if (isNotFound(command.error)) lag.noSuchKind();
        lag.behind(isSynced());
        log.debug('list/watch interrupted', {
          resource: type.resource,
          phase: state.phase,
          retryMs: Math.round(ms),
          error: text,
        });
        await clock.sleep(ms, signal);
        return { type: 'begin' };
      }
    }
  };

  return { execute, lag, stream };
}
