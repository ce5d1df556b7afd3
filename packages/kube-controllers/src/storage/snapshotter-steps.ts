import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { NODES, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import { commit } from '@coracle/client/commit/commit';
import type { ReconcileResult } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import type { PoolFacts, SnapshotsMade } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_DRIVER, SNAPSHOT_GROUP, SNAPSHOT_GROUP_SIZE } from '@coracle/cluster-rules/storage/pool-names';
import { placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import {
  BEING_CREATED,
  BEING_DELETED,
  CONTENT_BOUND,
  isContentOf,
  poolOfHandle,
  snapshotHandleIn,
} from '@coracle/cluster-rules/storage/snapshot-plan';
import {
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '@coracle/cluster-rules/volume-snapshot/kinds';
import { createPools, PoolCallError } from './pools.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';

export type Content = DeepReadonly<VolumeSnapshotContent>;

export type Snapshot = DeepReadonly<VolumeSnapshot>;

const BY_HANDLE = 'snapshotter.handle';

export const BY_GROUP = 'snapshotter.group';

export const BY_SNAPSHOT = 'snapshotter.snapshot';

const NANOS = 1e6;

export const groupOf = ({ metadata }: Snapshot): string | undefined => {
  const group = metadata.annotations?.[SNAPSHOT_GROUP];
  return group === undefined ? undefined : `${metadata.namespace}/${group}`;
};

export const isDone = ({ status }: Content): boolean => status?.snapshotHandle !== undefined;

/** What one call takes: a content, its volume's place. */
interface Member {
  readonly content: Content;
  readonly pool: string;
  readonly volume: string;
  /** Its name in the pool: the uid of the VolumeSnapshot. */
  readonly handle: string;
}

const byHandle = (a: Member, b: Member): number => (a.handle < b.handle ? -1 : 1);

/** What a VolumeSnapshotContent asks of the pools. */
export class SnapshotterSteps extends ControllerSteps {
  readonly contents;
  readonly snapshots;
  readonly volumes;
  readonly nodes;
  readonly #pools;
  /** By uid of a content: when it may be tried again. To tell of a failure is a change, which must not bring the next. */
  readonly notBefore;
  readonly #events;

  constructor(options: PoolControllerOptions) {
    super(options);
    const { client, informers, clock, log } = options;
    this.contents = informers.of(VOLUME_SNAPSHOT_CONTENTS);
    this.snapshots = informers.of(VOLUME_SNAPSHOTS);
    this.volumes = informers.of(PERSISTENT_VOLUMES);
    this.nodes = informers.of(NODES);
    this.volumes.addIndex(BY_HANDLE, (volume) => {
      const place = placeOf(volume);
      return place ? [place.handle] : [];
    });
    this.snapshots.addIndex(BY_GROUP, (snapshot) => [groupOf(snapshot) ?? ''].filter((group) => group !== ''));
    this.contents.addIndex(BY_SNAPSHOT, ({ spec }) => [spec.volumeSnapshotRef.uid ?? '']);
    this.#pools = createPools({ nodes: this.nodes, connect: options.connect, clock });
    this.notBefore = new Map<string, number>();
    this.#events = createEventRecorder(client, { component: `csi-snapshotter ${POOL_DRIVER}`, clock, log });
  }

  async #save(before: Content, after: Content, signal: AbortSignal): Promise<Content> {
    return (
      (await commit<VolumeSnapshotContent>(this.client, VOLUME_SNAPSHOT_CONTENTS, { before, after, signal })) ?? before
    );
  }

  annotate(content: Content, key: string, value: string | undefined, signal: AbortSignal) {
    const { [key]: _, ...rest } = content.metadata.annotations ?? {};
    const annotations = value === undefined ? rest : { ...rest, [key]: value };
    return this.#save(content, { ...content, metadata: { ...content.metadata, annotations } }, signal);
  }

  /** Undefined while its volume is not known. */
  #memberOf(content: Content): Member | undefined {
    const volume = content.spec.source.volumeHandle ?? '';
    const [place] = this.volumes.byIndex(BY_HANDLE, volume).flatMap((one) => placeOf(one) ?? []);
    const { uid } = content.spec.volumeSnapshotRef;
    return place && uid ? { content, pool: place.pool, volume, handle: uid } : undefined;
  }

  /** Everything that is to be taken with this content; undefined while some of it is not there yet. */
  #companyOf(content: Content): readonly Member[] | undefined {
    const { namespace = '', name = '' } = content.spec.volumeSnapshotRef;
    const snapshot = this.snapshots.get({ namespace, name });
    if (!snapshot || !isContentOf(content, snapshot)) return undefined;
    const group = groupOf(snapshot);
    const all = group === undefined ? [snapshot] : this.snapshots.byIndex(BY_GROUP, group);
    const size = group === undefined ? 1 : Number(snapshot.metadata.annotations?.[SNAPSHOT_GROUP_SIZE] ?? '1');
    if (all.length < size || all.some(({ metadata }) => metadata.deletionTimestamp !== undefined)) return undefined;
    const members = all.map((one) => {
      const [held] = this.contents
        .byIndex(BY_SNAPSHOT, one.metadata.uid ?? '')
        .filter((each) => isContentOf(each, one));
      return held && this.#memberOf(held);
    });
    return members.every((one) => one !== undefined) ? members : undefined;
  }

  async take(content: Content, signal: AbortSignal): Promise<ReconcileResult> {
    const company = this.#companyOf(content);
    if (!company) return;
    const [first] = company;
    // One pass takes the whole group: that of the first of them that is not done.
    const leader = company.filter((one) => !isDone(one.content)).sort(byHandle)[0];
    if (!first || leader?.content.metadata.uid !== content.metadata.uid) return;
    if (company.some(({ pool }) => pool !== first.pool))
      throw new PoolCallError('Invalid', 'volumes of one group snapshot must be in one pool');
    const marked: Member[] = [];
    for (const one of company) {
      const isMarked = isDone(one.content) || one.content.metadata.annotations?.[BEING_CREATED] === 'yes';
      marked.push(isMarked ? one : { ...one, content: await this.annotate(one.content, BEING_CREATED, 'yes', signal) });
    }
    const asked = marked.map(({ handle, volume }) => ({ handle, volume }));
    const made = await this.#pools.call<SnapshotsMade>(first.pool, 'createSnapshots', { snapshots: asked }, signal);
    for (const { content: each, handle, pool } of marked) {
      const found = made.snapshots.find((one) => one.handle === handle);
      if (!found || isDone(each)) continue;
      const status = {
        snapshotHandle: snapshotHandleIn(pool, handle),
        creationTime: Date.parse(found.createdAt) * NANOS,
        restoreSize: found.bytes,
        readyToUse: true,
      };
      await this.#save(each, { ...each, status }, signal);
    }
  }

  /** A snapshot that somebody says exists. */
  async adopt(content: Content, signal: AbortSignal): Promise<void> {
    const { snapshotHandle = '' } = content.spec.source;
    const place = poolOfHandle(snapshotHandle);
    const facts = place && (await this.#pools.call<PoolFacts>(place.pool, 'inspect', {}, signal));
    if (!facts?.snapshots.some(({ handle }) => handle === place?.handle))
      throw new PoolCallError('NotFound', `snapshot ${snapshotHandle} is in no pool`);
    const status = { snapshotHandle, creationTime: this.clock.now() * NANOS, readyToUse: true };
    await this.#save(content, { ...content, status }, signal);
  }

  async leave(content: Content, signal: AbortSignal): Promise<void> {
    if (!content.metadata.finalizers?.includes(CONTENT_BOUND)) return;
    const { source: from, volumeSnapshotRef, deletionPolicy } = content.spec;
    const isFree = from.snapshotHandle !== undefined && (volumeSnapshotRef.uid ?? '') === '';
    if (!isFree && content.metadata.annotations?.[BEING_DELETED] !== 'yes') return;
    if (deletionPolicy === 'Delete') {
      const place = poolOfHandle(content.status?.snapshotHandle ?? from.snapshotHandle);
      const begun = content.metadata.annotations?.[BEING_CREATED] === 'yes' ? this.#memberOf(content) : undefined;
      const gone = place ?? begun;
      if (gone) await this.#pools.call(gone.pool, 'deleteSnapshot', { handle: gone.handle }, signal);
    }
    await this.#save(content, removeFinalizer(content as VolumeSnapshotContent, CONTENT_BOUND), signal);
  }

  async fail(content: Content, error: PoolCallError, signal: AbortSignal): Promise<void> {
    const leaves = content.metadata.deletionTimestamp !== undefined;
    const message = leaves
      ? `Failed to delete snapshot: ${error.message}`
      : `Failed to check and update snapshot content: ${error.message}`;
    const reason = leaves ? 'SnapshotDeleteError' : 'SnapshotContentCheckandUpdateFailed';
    if (content.status?.error?.message === message) return;
    this.#events.event(content, 'Warning', reason, message);
    const latest = await this.client.get(VOLUME_SNAPSHOT_CONTENTS, keyOf(content), { signal });
    const failure = { message, time: formatTime(this.clock.now()) };
    const status = { ...latest.status, ...(!leaves && { readyToUse: false }), error: failure };
    await this.#save(latest, { ...latest, status }, signal);
  }
}
