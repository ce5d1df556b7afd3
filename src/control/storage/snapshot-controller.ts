/**
 * external-snapshotter's snapshot-controller: gives each VolumeSnapshot a content, binds the two both ways, reports in
 * the status what the storage says, and lets go in order. It serves every driver; who takes the snapshot is the driver's
 * own controller. While upstream's snapshot-controller holds its Lease this one stands back.
 *
 * A pass makes one write. What is deleted: content marked > content deleted (policy Delete) > finalizers taken off.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { LEASES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolumeClaim } from '../../api/kinds/builtin/types.ts';
import { holdingOf } from '../../api/kinds/builtin/volume-claims.ts';
import {
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '../../api/kinds/volume-snapshot/kinds.ts';
import { type DeepReadonly, formatTime, type KubeObject, keyOf, type ObjectKey } from '../../api/meta/object.ts';
import { isAlreadyExists, isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { isLeaseHeld } from '../../client/leader/lease-holder.ts';
import { sourceOf } from '../../domain/storage/provision-plan.ts';
import {
  AS_SOURCE,
  BEING_DELETED,
  CLAIM_AS_SOURCE,
  CONTENT_BOUND,
  contentFor,
  contentNameOf,
  defaultSnapshotClass,
  isContentOf,
  SNAPSHOT_BOUND,
  statusFrom,
  unfit,
} from '../../domain/storage/snapshot-plan.ts';

type Snapshot = DeepReadonly<VolumeSnapshot>;
type Content = DeepReadonly<VolumeSnapshotContent>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

/** Rights the controller needs, and no others. */
export const snapshotControllerRules: PolicyRule[] = [
  {
    apiGroups: ['snapshot.storage.k8s.io'],
    resources: ['volumesnapshots', 'volumesnapshots/status'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  {
    apiGroups: ['snapshot.storage.k8s.io'],
    resources: ['volumesnapshotcontents'],
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotclasses'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

const BY_CLAIM = 'snapshot.claim';
const BY_CONTENT = 'snapshot.content';
const BY_SNAPSHOT = 'snapshot.source-of';
const UPSTREAM_LEASE: ObjectKey = { namespace: 'kube-system', name: 'snapshot-controller-leader' };
const LEASE_MS = 15_000;

/** A reason why a snapshot waits: reported in its status and as an event. */
class SnapshotProblem extends Error {
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Makes the controller. */
export function createSnapshotController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const snapshots = informers.of(VOLUME_SNAPSHOTS);
  const contents = informers.of(VOLUME_SNAPSHOT_CONTENTS);
  const classes = informers.of(VOLUME_SNAPSHOT_CLASSES);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  snapshots.addIndex(BY_CLAIM, ({ metadata, spec }) =>
    spec.source.persistentVolumeClaimName ? [`${metadata.namespace}/${spec.source.persistentVolumeClaimName}`] : [],
  );
  snapshots.addIndex(BY_CONTENT, (snapshot) => [contentNameOf(snapshot)]);
  claims.addIndex(BY_SNAPSHOT, (claim) => {
    const from = sourceOf(claim);
    return from.type === 'snapshot' ? [`${claim.metadata.namespace}/${from.name}`] : [];
  });
  const events = createEventRecorder(client, { component: 'snapshot-controller', clock, log });

  const saveSnapshot = (before: Snapshot, after: Snapshot, signal: AbortSignal) =>
    commit<VolumeSnapshot>(client, VOLUME_SNAPSHOTS, { before, after, signal });
  const saveContent = (before: Content, after: Content, signal: AbortSignal) =>
    commit<VolumeSnapshotContent>(client, VOLUME_SNAPSHOT_CONTENTS, { before, after, signal });
  const saveClaim = (before: Claim, after: Claim, signal: AbortSignal) =>
    commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before, after, signal });
  const sourceClaim = ({ metadata, spec }: Snapshot): Claim | undefined =>
    claims.get({ namespace: metadata.namespace ?? '', name: spec.source.persistentVolumeClaimName ?? '' });
  const volumeOf = (claim: Claim | undefined) => {
    const volume = claim?.spec?.volumeName ? volumes.get({ namespace: '', name: claim.spec.volumeName }) : undefined;
    return claim && volume && holdingOf(volume, claim) === 'bound' ? volume : undefined;
  };

  /** True while upstream's own controller does this. */
  const isLedElsewhere = async (signal: AbortSignal): Promise<boolean> => {
    try {
      return isLeaseHeld(await client.get(LEASES, UPSTREAM_LEASE, { signal }), clock.now());
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  };

  /** The content of a snapshot of a claim: it is made where there is none. */
  const takenContent = async (snapshot: Snapshot, signal: AbortSignal): Promise<Content | undefined> => {
    const name = contentNameOf(snapshot);
    const content = contents.get({ namespace: '', name });
    if (content) {
      if (isContentOf(content, snapshot)) return content;
      throw new SnapshotProblem(
        'SnapshotContentMisbound',
        `VolumeSnapshotContent [${name}] is bound to a different snapshot`,
      );
    }
    if (snapshot.status?.boundVolumeSnapshotContentName !== undefined) {
      // The copy here lags behind.
      const held = await found(client.get(VOLUME_SNAPSHOT_CONTENTS, { namespace: '', name }, { signal }));
      if (held) return undefined;
      throw new SnapshotProblem('SnapshotContentMissing', 'VolumeSnapshotContent is missing');
    }
    const claimName = snapshot.spec.source.persistentVolumeClaimName ?? '';
    const claim = sourceClaim(snapshot);
    const volume = volumeOf(claim);
    const why = unfit(claimName, claim, volume);
    const fail = (message: string): never => {
      throw new SnapshotProblem(
        'SnapshotContentCreationFailed',
        `Failed to create snapshot content with error ${message}`,
      );
    };
    if (why !== undefined || !claim || !volume) return fail(why ?? '');
    const className = snapshot.spec.volumeSnapshotClassName;
    if (className === undefined) {
      let chosen = '';
      try {
        chosen = defaultSnapshotClass(classes.list(), volume.spec?.csi?.driver ?? '').metadata.name ?? '';
      } catch (error) {
        throw new SnapshotProblem(
          'SetDefaultSnapshotClassFailed',
          `Failed to set default snapshot class with error ${(error as Error).message}`,
        );
      }
      const spec = { ...snapshot.spec, volumeSnapshotClassName: chosen };
      await saveSnapshot(snapshot, { ...snapshot, spec }, signal);
      return undefined;
    }
    const storageClass = classes.get({ namespace: '', name: className });
    if (!storageClass) return fail(`volumesnapshotclass.snapshot.storage.k8s.io "${className}" not found`);
    if (storageClass.driver !== volume.spec?.csi?.driver)
      return fail(
        `driver ${storageClass.driver} of the class is not ${volume.spec?.csi?.driver}, the driver of the volume`,
      );
    if (!claim.metadata.finalizers?.includes(CLAIM_AS_SOURCE)) {
      const finalizers = [...(claim.metadata.finalizers ?? []), CLAIM_AS_SOURCE];
      await saveClaim(claim, { ...claim, metadata: { ...claim.metadata, finalizers } }, signal);
    }
    try {
      await client.create(VOLUME_SNAPSHOT_CONTENTS, contentFor(snapshot, { storageClass, volume }), { signal });
      const { namespace, name: own } = snapshot.metadata;
      const message = `Waiting for a snapshot ${namespace}/${own} to be created by the CSI driver.`;
      events.event(snapshot, 'Normal', 'CreatingSnapshot', message);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    return undefined;
  };

  /** The content that a snapshot names: it is bound where it waits for it. */
  const namedContent = async (snapshot: Snapshot, signal: AbortSignal): Promise<Content | undefined> => {
    const { namespace, name, uid } = snapshot.metadata;
    const content = contents.get({ namespace: '', name: contentNameOf(snapshot) });
    if (!content) throw new SnapshotProblem('SnapshotContentMissing', 'VolumeSnapshotContent is missing');
    const { volumeSnapshotRef: held, source: from } = content.spec;
    if (from.snapshotHandle === undefined)
      throw new SnapshotProblem(
        'SnapshotContentMismatch',
        'VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one',
      );
    if (held.namespace !== namespace || held.name !== name || ((held.uid ?? '') !== '' && held.uid !== uid))
      throw new SnapshotProblem('SnapshotContentMisbound', 'VolumeSnapshotContent is bound to a different snapshot');
    if (isContentOf(content, snapshot) && content.metadata.finalizers?.includes(CONTENT_BOUND)) return content;
    const finalizers = [...new Set([...(content.metadata.finalizers ?? []), CONTENT_BOUND])];
    const volumeSnapshotRef = { ...held, uid: uid ?? '' };
    const after = {
      ...content,
      metadata: { ...content.metadata, finalizers },
      spec: { ...content.spec, volumeSnapshotRef },
    };
    await saveContent(content, after, signal);
    return undefined;
  };

  const sync = async (snapshot: Snapshot, signal: AbortSignal): Promise<void> => {
    const held = snapshot.metadata.finalizers ?? [];
    if (!held.includes(AS_SOURCE) || !held.includes(SNAPSHOT_BOUND)) {
      const finalizers = [...new Set([...held, AS_SOURCE, SNAPSHOT_BOUND])];
      await saveSnapshot(snapshot, { ...snapshot, metadata: { ...snapshot.metadata, finalizers } }, signal);
      return;
    }
    const isTaken = snapshot.spec.source.persistentVolumeClaimName !== undefined;
    const content = await (isTaken ? takenContent(snapshot, signal) : namedContent(snapshot, signal));
    if (!content) return;
    const status = statusFrom(snapshot, content);
    const { namespace, name } = snapshot.metadata;
    if (status.creationTime !== undefined && snapshot.status?.creationTime === undefined)
      events.event(
        snapshot,
        'Normal',
        'SnapshotCreated',
        `Snapshot ${namespace}/${name} was successfully created by the CSI driver.`,
      );
    if (status.readyToUse && snapshot.status?.readyToUse !== true)
      events.event(snapshot, 'Normal', 'SnapshotReady', `Snapshot ${namespace}/${name} is ready to use.`);
    await saveSnapshot(snapshot, { ...snapshot, status }, signal);
    if (status.readyToUse) await releaseClaim(snapshot, signal);
  };

  /** Takes the finalizer off the claim when no snapshot of it is under way any more. */
  const releaseClaim = async (snapshot: Snapshot, signal: AbortSignal): Promise<void> => {
    const claim = sourceClaim(snapshot);
    if (!claim?.metadata.finalizers?.includes(CLAIM_AS_SOURCE)) return;
    const others = snapshots
      .byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`)
      .filter((one) => one.metadata.uid !== snapshot.metadata.uid && one.metadata.deletionTimestamp === undefined);
    if (others.some(({ status }) => status?.readyToUse !== true)) return;
    const finalizers = claim.metadata.finalizers.filter((one) => one !== CLAIM_AS_SOURCE);
    await saveClaim(claim, { ...claim, metadata: { ...claim.metadata, finalizers } }, signal);
  };

  const leave = async (snapshot: Snapshot, signal: AbortSignal): Promise<void> => {
    const key = `${snapshot.metadata.namespace}/${snapshot.metadata.name}`;
    const held = snapshot.metadata.finalizers ?? [];
    if (!held.includes(AS_SOURCE) && !held.includes(SNAPSHOT_BOUND)) return;
    const users = claims
      .byIndex(BY_SNAPSHOT, key)
      .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase !== 'Bound');
    const isReady = snapshot.status?.readyToUse === true;
    if (isReady && users.some(({ status }) => status?.phase === 'Pending')) {
      events.event(snapshot, 'Warning', 'SnapshotDeletePending', 'Snapshot is being used to restore a PVC');
      return;
    }
    const name = { namespace: '', name: contentNameOf(snapshot) };
    // What the copy does not hold yet may be there.
    const content = contents.get(name) ?? (await found(client.get(VOLUME_SNAPSHOT_CONTENTS, name, { signal })));
    if (content && isContentOf(content, snapshot)) {
      if (content.metadata.annotations?.[BEING_DELETED] !== 'yes') {
        const annotations = { ...content.metadata.annotations, [BEING_DELETED]: 'yes' };
        await saveContent(content, { ...content, metadata: { ...content.metadata, annotations } }, signal);
        return;
      }
      if (content.spec.deletionPolicy === 'Delete') {
        if (content.metadata.deletionTimestamp === undefined)
          await client.delete(VOLUME_SNAPSHOT_CONTENTS, keyOf(content), { signal });
        return;
      }
    }
    await releaseClaim(snapshot, signal);
    const finalizers = held.filter((one) => one !== AS_SOURCE && one !== SNAPSHOT_BOUND);
    await saveSnapshot(snapshot, { ...snapshot, metadata: { ...snapshot.metadata, finalizers } }, signal);
  };

  const report = async (snapshot: Snapshot, problem: SnapshotProblem, signal: AbortSignal): Promise<void> => {
    if (snapshot.status?.error?.message === problem.message) return;
    events.event(snapshot, 'Warning', problem.reason, problem.message);
    const error = { message: problem.message, time: formatTime(clock.now()) };
    await saveSnapshot(snapshot, { ...snapshot, status: { ...snapshot.status, readyToUse: false, error } }, signal);
  };

  return createController({
    name: 'volume-snapshot-controller',
    client,
    clock,
    log,
    concurrency: 4,
    sources: [
      ownKeys(snapshots),
      source(contents, ({ metadata }) => snapshots.byIndex(BY_CONTENT, metadata.name ?? '').map(keyOf)),
      source(classes, () =>
        snapshots
          .list()
          .filter(({ status }) => status?.readyToUse !== true)
          .map(keyOf),
      ),
      source(claims, (claim) => [
        ...snapshots.byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`).map(keyOf),
        ...keysOfSource(claim),
      ]),
      source(volumes, () => []),
    ],
    async reconcile(key, { signal }): Promise<ReconcileResult> {
      const snapshot = snapshots.get(key);
      if (!snapshot) return DONE;
      if (await isLedElsewhere(signal)) return requeueAfter(LEASE_MS);
      try {
        if (snapshot.metadata.deletionTimestamp !== undefined) await leave(snapshot, signal);
        else await sync(snapshot, signal);
      } catch (error) {
        if (isNotFound(error)) return DONE;
        if (!(error instanceof SnapshotProblem)) throw error;
        await report(snapshot, error, signal);
      }
      return DONE;
    },
  });
}

const keysOfSource = (claim: Claim): ObjectKey[] => {
  const from = sourceOf(claim);
  return from.type === 'snapshot' ? [{ namespace: claim.metadata.namespace ?? '', name: from.name }] : [];
};

async function found<T extends KubeObject>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
