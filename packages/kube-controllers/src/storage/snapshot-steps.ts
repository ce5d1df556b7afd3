import { type DeepReadonly, formatTime, keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { LEASES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { holdingOf } from '@coracle/apimachinery/types/volume-claims';
import { isAlreadyExists, isNotFound, orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { isLeaseHeld } from '@coracle/client/leader/lease-holder';
import { sourceOf } from '@coracle/cluster-rules/storage/provision-plan';
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
} from '@coracle/cluster-rules/storage/snapshot-plan';
import {
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '@coracle/cluster-rules/volume-snapshot/kinds';

type Snapshot = DeepReadonly<VolumeSnapshot>;

type Content = DeepReadonly<VolumeSnapshotContent>;

export type Claim = DeepReadonly<PersistentVolumeClaim>;

export const BY_CLAIM = 'snapshot.claim';

export const BY_CONTENT = 'snapshot.content';

const BY_SNAPSHOT = 'snapshot.source-of';

const UPSTREAM_LEASE: ObjectKey = { namespace: 'kube-system', name: 'snapshot-controller-leader' };

/** A reason why a snapshot waits: reported in its status and as an event. */
export class SnapshotProblem extends Error {
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The steps of a VolumeSnapshot: content, binding, end. */
export class SnapshotSteps extends ControllerSteps {
  readonly snapshots;
  readonly contents;
  readonly classes;
  readonly claims;
  readonly volumes;
  readonly #events;

  constructor(environment: ControllerEnvironment) {
    super(environment);
    const { client, informers, clock, log } = environment;
    this.snapshots = informers.of(VOLUME_SNAPSHOTS);
    this.contents = informers.of(VOLUME_SNAPSHOT_CONTENTS);
    this.classes = informers.of(VOLUME_SNAPSHOT_CLASSES);
    this.claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.volumes = informers.of(PERSISTENT_VOLUMES);
    this.snapshots.addIndex(BY_CLAIM, ({ metadata, spec }) =>
      spec.source.persistentVolumeClaimName ? [`${metadata.namespace}/${spec.source.persistentVolumeClaimName}`] : [],
    );
    this.snapshots.addIndex(BY_CONTENT, (snapshot) => [contentNameOf(snapshot)]);
    this.claims.addIndex(BY_SNAPSHOT, (claim) => {
      const from = sourceOf(claim);
      return from.type === 'snapshot' ? [`${claim.metadata.namespace}/${from.name}`] : [];
    });
    this.#events = createEventRecorder(client, { component: 'snapshot-controller', clock, log });
  }

  #saveSnapshot(before: Snapshot, after: Snapshot, signal: AbortSignal) {
    return commit<VolumeSnapshot>(this.client, VOLUME_SNAPSHOTS, { before, after, signal });
  }

  #saveContent(before: Content, after: Content, signal: AbortSignal) {
    return commit<VolumeSnapshotContent>(this.client, VOLUME_SNAPSHOT_CONTENTS, { before, after, signal });
  }

  #saveClaim(before: Claim, after: Claim, signal: AbortSignal) {
    return commit<PersistentVolumeClaim>(this.client, PERSISTENT_VOLUME_CLAIMS, { before, after, signal });
  }

  #sourceClaim({ metadata, spec }: Snapshot): Claim | undefined {
    return this.claims.get({ namespace: metadata.namespace ?? '', name: spec.source.persistentVolumeClaimName ?? '' });
  }

  #volumeOf(claim: Claim | undefined) {
    const volume = claim?.spec?.volumeName
      ? this.volumes.get({ namespace: '', name: claim.spec.volumeName })
      : undefined;
    return claim && volume && holdingOf(volume, claim) === 'bound' ? volume : undefined;
  }

  /** True while upstream's own controller does this. */
  async isLedElsewhere(signal: AbortSignal): Promise<boolean> {
    try {
      return isLeaseHeld(await this.client.get(LEASES, UPSTREAM_LEASE, { signal }), this.clock.now());
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /** The content of a snapshot of a claim: it is made where there is none. */
  async #takenContent(snapshot: Snapshot, signal: AbortSignal): Promise<Content | undefined> {
    const name = contentNameOf(snapshot);
    const content = this.contents.get({ namespace: '', name });
    if (content) {
      if (isContentOf(content, snapshot)) return content;
      throw new SnapshotProblem(
        'SnapshotContentMisbound',
        `VolumeSnapshotContent [${name}] is bound to a different snapshot`,
      );
    }
    if (snapshot.status?.boundVolumeSnapshotContentName !== undefined) {
      // The copy here lags behind.
      const held = await orAbsent(this.client.get(VOLUME_SNAPSHOT_CONTENTS, { namespace: '', name }, { signal }));
      if (held) return undefined;
      throw new SnapshotProblem('SnapshotContentMissing', 'VolumeSnapshotContent is missing');
    }
    const claimName = snapshot.spec.source.persistentVolumeClaimName ?? '';
    const claim = this.#sourceClaim(snapshot);
    const volume = this.#volumeOf(claim);
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
        chosen = defaultSnapshotClass(this.classes.list(), volume.spec?.csi?.driver ?? '').metadata.name ?? '';
      } catch (error) {
        throw new SnapshotProblem(
          'SetDefaultSnapshotClassFailed',
          `Failed to set default snapshot class with error ${(error as Error).message}`,
        );
      }
      const spec = { ...snapshot.spec, volumeSnapshotClassName: chosen };
      await this.#saveSnapshot(snapshot, { ...snapshot, spec }, signal);
      return undefined;
    }
    const storageClass = this.classes.get({ namespace: '', name: className });
    if (!storageClass) return fail(`volumesnapshotclass.snapshot.storage.k8s.io "${className}" not found`);
    if (storageClass.driver !== volume.spec?.csi?.driver)
      return fail(
        `driver ${storageClass.driver} of the class is not ${volume.spec?.csi?.driver}, the driver of the volume`,
      );
    if (!claim.metadata.finalizers?.includes(CLAIM_AS_SOURCE)) {
      const finalizers = [...(claim.metadata.finalizers ?? []), CLAIM_AS_SOURCE];
      await this.#saveClaim(claim, { ...claim, metadata: { ...claim.metadata, finalizers } }, signal);
    }
    try {
      await this.client.create(VOLUME_SNAPSHOT_CONTENTS, contentFor(snapshot, { storageClass, volume }), { signal });
      const { namespace, name: own } = snapshot.metadata;
      const message = `Waiting for a snapshot ${namespace}/${own} to be created by the CSI driver.`;
      this.#events.event(snapshot, 'Normal', 'CreatingSnapshot', message);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    return undefined;
  }

  /** The content that a snapshot names: it is bound where it waits for it. */
  async #namedContent(snapshot: Snapshot, signal: AbortSignal): Promise<Content | undefined> {
    const { namespace, name, uid } = snapshot.metadata;
    const content = this.contents.get({ namespace: '', name: contentNameOf(snapshot) });
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
    await this.#saveContent(content, after, signal);
    return undefined;
  }

  async sync(snapshot: Snapshot, signal: AbortSignal): Promise<void> {
    const held = snapshot.metadata.finalizers ?? [];
    if (!held.includes(AS_SOURCE) || !held.includes(SNAPSHOT_BOUND)) {
      const finalizers = [...new Set([...held, AS_SOURCE, SNAPSHOT_BOUND])];
      await this.#saveSnapshot(snapshot, { ...snapshot, metadata: { ...snapshot.metadata, finalizers } }, signal);
      return;
    }
    const isTaken = snapshot.spec.source.persistentVolumeClaimName !== undefined;
    const content = await (isTaken ? this.#takenContent(snapshot, signal) : this.#namedContent(snapshot, signal));
    if (!content) return;
    const status = statusFrom(snapshot, content);
    const { namespace, name } = snapshot.metadata;
    if (status.creationTime !== undefined && snapshot.status?.creationTime === undefined)
      this.#events.event(
        snapshot,
        'Normal',
        'SnapshotCreated',
        `Snapshot ${namespace}/${name} was successfully created by the CSI driver.`,
      );
    if (status.readyToUse && snapshot.status?.readyToUse !== true)
      this.#events.event(snapshot, 'Normal', 'SnapshotReady', `Snapshot ${namespace}/${name} is ready to use.`);
    await this.#saveSnapshot(snapshot, { ...snapshot, status }, signal);
    if (status.readyToUse) await this.#releaseClaim(snapshot, signal);
  }

  /** Takes the finalizer off the claim when no snapshot of it is under way any more. */
  async #releaseClaim(snapshot: Snapshot, signal: AbortSignal): Promise<void> {
    const claim = this.#sourceClaim(snapshot);
    if (!claim?.metadata.finalizers?.includes(CLAIM_AS_SOURCE)) return;
    const others = this.snapshots
      .byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`)
      .filter((one) => one.metadata.uid !== snapshot.metadata.uid && one.metadata.deletionTimestamp === undefined);
    if (others.some(({ status }) => status?.readyToUse !== true)) return;
    const finalizers = claim.metadata.finalizers.filter((one) => one !== CLAIM_AS_SOURCE);
    await this.#saveClaim(claim, { ...claim, metadata: { ...claim.metadata, finalizers } }, signal);
  }

  async leave(snapshot: Snapshot, signal: AbortSignal): Promise<void> {
    const key = `${snapshot.metadata.namespace}/${snapshot.metadata.name}`;
    const held = snapshot.metadata.finalizers ?? [];
    if (!held.includes(AS_SOURCE) && !held.includes(SNAPSHOT_BOUND)) return;
    const users = this.claims
      .byIndex(BY_SNAPSHOT, key)
      .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase !== 'Bound');
    const isReady = snapshot.status?.readyToUse === true;
    if (isReady && users.some(({ status }) => status?.phase === 'Pending')) {
      this.#events.event(snapshot, 'Warning', 'SnapshotDeletePending', 'Snapshot is being used to restore a PVC');
      return;
    }
    const name = { namespace: '', name: contentNameOf(snapshot) };
    // What the copy does not hold yet may be there.
    const content =
      this.contents.get(name) ?? (await orAbsent(this.client.get(VOLUME_SNAPSHOT_CONTENTS, name, { signal })));
    if (content && isContentOf(content, snapshot)) {
      if (content.metadata.annotations?.[BEING_DELETED] !== 'yes') {
        const annotations = { ...content.metadata.annotations, [BEING_DELETED]: 'yes' };
        await this.#saveContent(content, { ...content, metadata: { ...content.metadata, annotations } }, signal);
        return;
      }
      if (content.spec.deletionPolicy === 'Delete') {
        if (content.metadata.deletionTimestamp === undefined)
          await this.client.delete(VOLUME_SNAPSHOT_CONTENTS, keyOf(content), { signal });
        return;
      }
    }
    await this.#releaseClaim(snapshot, signal);
    const finalizers = held.filter((one) => one !== AS_SOURCE && one !== SNAPSHOT_BOUND);
    await this.#saveSnapshot(snapshot, { ...snapshot, metadata: { ...snapshot.metadata, finalizers } }, signal);
  }

  async report(snapshot: Snapshot, problem: SnapshotProblem, signal: AbortSignal): Promise<void> {
    if (snapshot.status?.error?.message === problem.message) return;
    this.#events.event(snapshot, 'Warning', problem.reason, problem.message);
    const error = { message: problem.message, time: formatTime(this.clock.now()) };
    await this.#saveSnapshot(
      snapshot,
      { ...snapshot, status: { ...snapshot.status, readyToUse: false, error } },
      signal,
    );
  }
}
