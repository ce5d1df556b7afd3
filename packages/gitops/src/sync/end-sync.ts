/**
 * The end of a sync: its objects by the policy that it has at that moment, then what belongs to the sync itself, one
 * finalizer after the other. No way leads nowhere: each has a bound, or says the one command that decides.
 */

import type { Client } from '@coracle/client/client';
import { hasFinalizer } from '@coracle/client/finalizer/finalizer';
import type { Clock } from '@coracle/runtime/clock/clock';
import { backoffDelay } from '@coracle/runtime/retry/backoff';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Inventory } from '../apply/inventory.ts';
import type { KindCatalog } from '../apply/kind-catalog.ts';
import type { Target } from '../apply/target.ts';
import type { Sync, SyncError } from '../kinds/kinds.ts';
import { MANAGER_FINALIZER, PROPAGATION_POLICY, RECONCILER_FINALIZER } from '../status/metadata-keys.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import { removeCondition, setCondition } from '../status/sync-status.ts';
import { changeSync, type SyncObject } from '../status/write-status.ts';
import { removeAccount } from './accounts.ts';
import { reconcileMsOf } from './check-spec.ts';
import { destroyObjects, releaseObjects } from './finalize.ts';

export interface EndOptions {
  readonly object: Sync;
  readonly syncObject: SyncObject;
  readonly sync: SyncIdentity;
  readonly client: Client;
  readonly target: Target;
  readonly inventory: Inventory;
  readonly catalog: KindCatalog;
  readonly isNamespaceGoing: () => boolean;
  /** When the end began, monotonic milliseconds. */
  readonly since: number;
  /** Counts a pass that did not get through. */
  readonly failures: () => number;
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Hears of each step before it is taken. */
  readonly onStep?: (step: EndStep) => void;
}

export type EndStep =
  | 'finalize'
  | 'end-objects'
  | 'shrink-inventory'
  | 'drop-reconciler-finalizer'
  | 'remove-account'
  | 'remove-inventory'
  | 'drop-manager-finalizer';

/** How long a namespace that goes waits for the order of one of its syncs, milliseconds. */
const NAMESPACE_MS = 30_000;
/** And how long a sync tries that was ending before its namespace went. */
const LEAST_MS = 1000;
const RETRY = { baseMs: 500, maxMs: 30_000, jitter: 0.1 };
/** When both finalizers are off, and others are not. */
const OTHERS_MS = 60_000;
/** Names in a message. */
const MAX_NAMED = 10;

/** One pass. Returns after how many milliseconds the next one is due. Rejects with ApiError. */
export async function endSync(options: EndOptions): Promise<number> {
  const { object, client, sync, inventory, signal, onStep = () => {} } = options;
  if (hasFinalizer(object, RECONCILER_FINALIZER)) {
    const waitMs = await endObjects(options);
    if (waitMs !== undefined) return waitMs;
    await change(options, (status) => {
      removeCondition(status, 'ReconcilerFinalizerFailure');
      removeCondition(status, 'ReconcilerFinalizing');
    });
    onStep('drop-reconciler-finalizer');
    await dropFinalizer(options, RECONCILER_FINALIZER);
  }
  if (hasFinalizer(object, MANAGER_FINALIZER)) {
    onStep('remove-account');
    await removeAccount(client, sync, signal);
    onStep('remove-inventory');
    await inventory.remove(signal);
    onStep('drop-manager-finalizer');
    await dropFinalizer(options, MANAGER_FINALIZER);
  }
  return OTHERS_MS;
}

/** Undefined when nothing stands in the way any more. */
async function endObjects(options: EndOptions): Promise<number | undefined> {
  const { object, sync, clock, since } = options;
  const isForeground = object.metadata.annotations?.[PROPAGATION_POLICY] === 'Foreground';
  const reconcileMs = reconcileMsOf(object);
  const isGoing = sync.kind === 'RepoSync' && options.isNamespaceGoing();
  // Its objects go with the namespace: there is nothing that could be left behind.
  if (isGoing && !isForeground) return undefined;
  options.onStep?.('finalize');
  await change(options, (status) =>
    setCondition(
      status,
      {
        type: 'ReconcilerFinalizing',
        status: 'True',
        reason: 'ResourcesDeleting',
        message: 'Deleting managed resource objects',
      },
      clock.now(),
    ),
  );
  options.onStep?.('end-objects');
  const act = (signal: AbortSignal): Promise<SyncError[]> =>
    (isForeground ? destroyObjects : releaseObjects)({ ...options, reconcileMs, signal });
  const errors = isGoing
    ? await within(Math.max(NAMESPACE_MS - (clock.monotonic() - since), LEAST_MS), options, act)
    : await act(options.signal);
  if (!errors) {
    options.event('Warning', 'FinalizerReleased', 'the namespace is terminating and deletes what is left, in no order');
    return undefined;
  }
  if (errors.length === 0) return undefined;
  const elapsedMs = clock.monotonic() - since;
  const left = namesOf(errors);
  if (isGoing) {
    // Who may do nothing here any more need not be waited for.
    if (elapsedMs >= NAMESPACE_MS || errors.every(({ code }) => code === '2013')) {
      options.event('Warning', 'FinalizerReleased', `the namespace is terminating and deletes what is left: ${left}`);
      return undefined;
    }
  } else if (!isForeground && elapsedMs >= reconcileMs) {
    options.event('Warning', 'FinalizerReleased', `metadata of this sync is left on: ${left}`);
    return undefined;
  }
  await change(options, (status) => setCondition(status, failure(options, errors, isForeground), clock.now()));
  return backoffDelay(RETRY, options.failures());
}

/** Undefined when it takes longer: it is cut off then. */
async function within<T>(
  ms: number,
  { clock, signal }: Pick<EndOptions, 'clock' | 'signal'>,
  act: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const linked = createLinkedController(signal);
  const stop = clock.schedule(ms, () => linked.abort(new Error(`it takes longer than ${ms} ms`)));
  try {
    return await act(linked.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!linked.signal.aborted) throw error;
    return undefined;
  } finally {
    stop();
    linked.release();
  }
}

function failure({ sync }: EndOptions, errors: readonly SyncError[], isForeground: boolean) {
  const command = `kubectl annotate ${sync.kind.toLowerCase()} ${sync.name} -n ${sync.namespace} ${PROPAGATION_POLICY}=Orphan --overwrite`;
  const way = isForeground ? `; it is tried again. To leave these objects behind: ${command}` : '; it is tried again';
  return {
    type: 'ReconcilerFinalizerFailure',
    status: 'True',
    reason: 'DestroyFailure',
    message: `Failed to ${isForeground ? 'delete' : 'let go'} managed resource objects: ${namesOf(errors)}${way}`,
    errors: errors.slice(0, 100),
    errorSummary: {
      totalCount: errors.length,
      truncated: errors.length > 100,
      errorCountAfterTruncation: Math.min(errors.length, 100),
    },
  } as const;
}

function namesOf(errors: readonly SyncError[]): string {
  const names = [
    ...new Set(
      errors.flatMap(({ errorResources = [] }) =>
        errorResources.map(
          ({ gvk, namespace, name }) => `${gvk?.kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`,
        ),
      ),
    ),
  ];
  const more = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

async function change(
  { client, syncObject, signal }: EndOptions,
  act: (status: NonNullable<Sync['status']>) => void,
): Promise<void> {
  await changeSync(client, syncObject, (copy) => act(copy.status), { signal });
}

async function dropFinalizer({ client, syncObject, signal }: EndOptions, finalizer: string): Promise<void> {
  await changeSync(
    client,
    syncObject,
    ({ metadata }) => {
      metadata.finalizers = (metadata.finalizers ?? []).filter((one) => one !== finalizer);
    },
    { signal, subresource: '' },
  );
}
