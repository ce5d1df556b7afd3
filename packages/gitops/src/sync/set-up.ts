/** What a sync needs before it does anything: finalizers before what they guard, an account, bindings. */

import type { Client } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import { applySetId } from '../status/apply-set.ts';
import { MANAGER_FINALIZER, RECONCILER_FINALIZER } from '../status/metadata-keys.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { SyncRecorder } from '../status/sync-metrics.ts';
import { changeSync, type SyncObject } from '../status/write-status.ts';
import { ensureAccount } from './accounts.ts';
import type { SyncPlan } from './check-spec.ts';

export interface SetUpOptions {
  readonly sync: SyncIdentity;
  readonly object: SyncObject;
  readonly client: Client;
  readonly metrics: Pick<SyncRecorder, 'setUp'>;
  readonly clock: Clock;
}

/** May be done twice. Rejects with ApiError. */
export async function setUpSync(
  { sync, object, client, metrics, clock }: SetUpOptions,
  plan: SyncPlan,
  signal: AbortSignal,
): Promise<void> {
  const from = clock.monotonic();
  let ok = false;
  try {
    await changeSync(
      client,
      object,
      ({ metadata }) => {
        const missing = [MANAGER_FINALIZER, RECONCILER_FINALIZER].filter((one) => !metadata.finalizers?.includes(one));
        if (missing.length > 0) metadata.finalizers = [...(metadata.finalizers ?? []), ...missing];
        metadata.labels = { ...metadata.labels, 'applyset.kubernetes.io/id': applySetId(sync) };
        metadata.annotations = { ...metadata.annotations, 'applyset.kubernetes.io/tooling': 'configsync.gke.io/v1' };
      },
      { signal, subresource: '' },
    );
    await ensureAccount(client, sync, plan, signal);
    ok = true;
  } finally {
    metrics.setUp({ ms: clock.monotonic() - from, ok });
  }
}
