/** The API as the objects of a sync are written: under the account of its reconciler, each call within a time. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client, DeleteCallOptions, Patch } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { FIELD_MANAGER } from '../status/metadata-keys.ts';

type AnyType = ResourceType<KubeObject>;

export interface Target {
  readonly client: Client;
  /** Undefined when it is not there. */
  get(type: AnyType, key: ObjectKey, signal: AbortSignal): Promise<KubeObject | undefined>;
  /** Server-side apply; what others own is taken over when `force` says so. */
  apply(
    type: AnyType,
    object: KubeObject,
    signal: AbortSignal,
    options?: { readonly force?: boolean; readonly dryRun?: boolean },
  ): Promise<KubeObject>;
  merge(type: AnyType, key: ObjectKey, body: object, signal: AbortSignal): Promise<KubeObject>;
  /** True when it is on its way out or gone, false when it was another object than that uid. */
  delete(
    type: AnyType,
    live: KubeObject,
    signal: AbortSignal,
    propagationPolicy: NonNullable<DeleteCallOptions['propagationPolicy']>,
  ): Promise<void>;
}

/** Hears of each write how it ended. */
export type OnWrite = (operation: 'patch' | 'delete', outcome: { readonly ms: number; readonly ok: boolean }) => void;

/** Makes it. `timeoutMs` bounds each call. */
export function createTarget(
  client: Client,
  {
    clock,
    timeoutMs,
    onWrite = () => {},
  }: { readonly clock: Clock; readonly timeoutMs: () => number; readonly onWrite?: OnWrite },
): Target {
  const measured = async <T>(operation: 'patch' | 'delete', act: () => Promise<T>): Promise<T> => {
    const from = clock.monotonic();
    let ok = false;
    try {
      const result = await act();
      ok = true;
      return result;
    } finally {
      onWrite(operation, { ms: clock.monotonic() - from, ok });
    }
  };
  const within = async <T>(signal: AbortSignal, act: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const linked = createLinkedController(signal);
    const ms = timeoutMs();
    const stop = clock.schedule(ms, () => linked.abort(new Error(`the API server did not answer within ${ms} ms`)));
    try {
      return await act(linked.signal);
    } finally {
      stop();
      linked.release();
    }
  };
  const measuredUnless = <T>(dryRun: boolean, act: () => Promise<T>): Promise<T> =>
    dryRun ? act() : measured('patch', act);
  const patch = (
    type: AnyType,
    key: ObjectKey,
    body: Patch,
    signal: AbortSignal,
    dryRun = false,
  ): Promise<KubeObject> =>
    measuredUnless(dryRun, () =>
      within(signal, (linked) =>
        client.patch(type, key, body, { signal: linked, fieldManager: FIELD_MANAGER, ...(dryRun && { dryRun }) }),
      ),
    );
  return {
    client,
    async get(type, key, signal) {
      return orAbsent(within(signal, (linked) => client.get(type, key, { signal: linked })));
    },
    apply: (type, object, signal, { force = true, dryRun = false } = {}) =>
      patch(
        type,
        { namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' },
        { type: 'apply', body: object, fieldManager: FIELD_MANAGER, force },
        signal,
        dryRun,
      ),
    merge: (type, key, body, signal) => patch(type, key, { type: 'merge', body }, signal),
    async delete(type, live, signal, propagationPolicy) {
      const { uid } = live.metadata;
      const key = { namespace: live.metadata.namespace ?? '', name: live.metadata.name ?? '' };
      await orAbsent(
        measured('delete', () =>
          within(signal, (linked) =>
            client.delete(type, key, {
              signal: linked,
              propagationPolicy,
              ...(uid !== undefined && { preconditions: { uid } }),
            }),
          ),
        ),
      );
    },
  };
}
