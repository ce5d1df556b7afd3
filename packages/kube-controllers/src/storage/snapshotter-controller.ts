/**
 * The csi-snapshotter of driver `local.coracle.dev`: has pools take and delete the snapshots that VolumeSnapshotContents
 * stand for. Snapshots of one group (annotations of the VolumeSnapshots) are taken by one call, at one point in time,
 * when all of them are there.
 */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { isNotFound } from '@coracle/client/api-failure';
import { type Controller, createController, requeueAfter, source } from '@coracle/client/controller/controller';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import { BEING_CREATED } from '@coracle/cluster-rules/storage/snapshot-plan';
import { PoolCallError } from './pools.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';

import {
  BY_GROUP,
  BY_SNAPSHOT,
  type Content,
  groupOf,
  isDone,
  type Snapshot,
  SnapshotterSteps,
} from './snapshotter-steps.ts';
/** Rights the controller needs, and no others. */
export const snapshotterRules = policyRules(
  'list watch : snapshot.storage.k8s.io : volumesnapshots',
  'get list watch patch : snapshot.storage.k8s.io : volumesnapshotcontents volumesnapshotcontents/status',
  'list watch : core : persistentvolumes',
  'get list watch : core : nodes',
  'create patch : core : events',
);

const RETRY_MS = 2000;
/** Failures that are remembered; beyond that they are tried again at once. */
const MAX_FAILURES = 1000;
/** Makes the controller. */
export function createSnapshotterController(options: PoolControllerOptions): Controller {
  const steps = new SnapshotterSteps(options);
  const controller = createController({
    ...options,
    name: 'local-volume-snapshotter',
    concurrency: 4,
    sources: [
      source(steps.contents, (content) => [keyOf(content), ...companyKeys(content)]),
      source(steps.snapshots, (snapshot) => [
        ...steps.contents.byIndex(BY_SNAPSHOT, snapshot.metadata.uid ?? '').map(keyOf),
        ...groupKeys(snapshot),
      ]),
      source(steps.volumes, () => []),
      source(steps.nodes, () => []),
    ],
    async reconcile(key, { signal }) {
      const content = steps.contents.get(key);
      if (!content || content.spec.driver !== POOL_DRIVER) return;
      const uid = content.metadata.uid ?? '';
      const wait = (steps.notBefore.get(uid) ?? 0) - steps.clock.monotonic();
      if (wait > 0) return requeueAfter(wait);
      steps.notBefore.delete(uid);
      try {
        if (content.metadata.deletionTimestamp !== undefined) await steps.leave(content, signal);
        else if (isDone(content)) {
          if (content.metadata.annotations?.[BEING_CREATED] !== undefined)
            await steps.annotate(content, BEING_CREATED, undefined, signal);
        } else if (content.spec.source.snapshotHandle !== undefined) await steps.adopt(content, signal);
        else return await steps.take(content, signal);
      } catch (error) {
        if (isNotFound(error)) return;
        if (!(error instanceof PoolCallError)) throw error;
        if (steps.notBefore.size >= MAX_FAILURES) steps.notBefore.clear();
        steps.notBefore.set(uid, steps.clock.monotonic() + RETRY_MS);
        await steps.fail(content, error, signal);
        return requeueAfter(RETRY_MS);
      }
    },
  });
  return controller;

  function groupKeys(snapshot: Snapshot) {
    const group = groupOf(snapshot);
    if (group === undefined) return [];
    return steps.snapshots
      .byIndex(BY_GROUP, group)
      .flatMap((one) => steps.contents.byIndex(BY_SNAPSHOT, one.metadata.uid ?? ''))
      .map(keyOf);
  }

  /** The others of its group may have waited for this one. */
  function companyKeys({ spec }: Content) {
    const { namespace = '', name = '' } = spec.volumeSnapshotRef;
    const snapshot = steps.snapshots.get({ namespace, name });
    return snapshot ? groupKeys(snapshot) : [];
  }
}
