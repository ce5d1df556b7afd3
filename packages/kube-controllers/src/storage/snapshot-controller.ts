/**
 * external-snapshotter's snapshot-controller: gives each VolumeSnapshot a content, binds the two both ways, reports in
 * the status what the storage says, and lets go in order. It serves every driver; who takes the snapshot is the driver's
 * own controller. While upstream's snapshot-controller holds its Lease this one stands back.
 *
 * A pass makes one write. What is deleted: content marked > content deleted (policy Delete) > finalizers taken off.
 */

import { keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { isNotFound } from '@coracle/client/api-failure';
import {
  type Controller,
  createController,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { sourceOf } from '@coracle/cluster-rules/storage/provision-plan';

import { BY_CLAIM, BY_CONTENT, type Claim, SnapshotProblem, SnapshotSteps } from './snapshot-steps.ts';
/** Rights the controller needs, and no others. */
export const snapshotControllerRules = policyRules(
  'get list watch patch : snapshot.storage.k8s.io : volumesnapshots volumesnapshots/status',
  'get list watch create patch delete : snapshot.storage.k8s.io : volumesnapshotcontents',
  'get list watch : snapshot.storage.k8s.io : volumesnapshotclasses',
  'get list watch patch : core : persistentvolumeclaims',
  'get list watch : core : persistentvolumes',
  'get : coordination.k8s.io : leases',
  'create patch : core : events',
);

const LEASE_MS = 15_000;

/** Makes the controller. */
export function createSnapshotController(environment: ControllerEnvironment): Controller {
  const steps = new SnapshotSteps(environment);
  return createController({
    ...environment,
    name: 'volume-snapshot-controller',
    concurrency: 4,
    sources: [
      ownKeys(steps.snapshots),
      source(steps.contents, ({ metadata }) => steps.snapshots.byIndex(BY_CONTENT, metadata.name ?? '').map(keyOf)),
      source(steps.classes, () =>
        steps.snapshots
          .list()
          .filter(({ status }) => status?.readyToUse !== true)
          .map(keyOf),
      ),
      source(steps.claims, (claim) => [
        ...steps.snapshots.byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`).map(keyOf),
        ...keysOfSource(claim),
      ]),
      source(steps.volumes, () => []),
    ],
    async reconcile(key, { signal }): Promise<ReconcileResult> {
      const snapshot = steps.snapshots.get(key);
      if (!snapshot) return;
      if (await steps.isLedElsewhere(signal)) return requeueAfter(LEASE_MS);
      try {
        if (snapshot.metadata.deletionTimestamp !== undefined) await steps.leave(snapshot, signal);
        else await steps.sync(snapshot, signal);
      } catch (error) {
        if (isNotFound(error)) return;
        if (!(error instanceof SnapshotProblem)) throw error;
        await steps.report(snapshot, error, signal);
      }
    },
  });
}

const keysOfSource = (claim: Claim): ObjectKey[] => {
  const from = sourceOf(claim);
  return from.type === 'snapshot' ? [{ namespace: claim.metadata.namespace ?? '', name: from.name }] : [];
};
