/**
 * The csi-snapshotter of driver `local.coracle.dev`: has pools take and delete the snapshots that VolumeSnapshotContents
 * stand for. Snapshots of one group (annotations of the VolumeSnapshots) are taken by one call, at one point in time,
 * when all of them are there.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { NODES, PERSISTENT_VOLUMES } from '../../api/kinds/builtin/resource-types.ts';
import {
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from '../../api/kinds/volume-snapshot/kinds.ts';
import { type DeepReadonly, formatTime, keyOf } from '../../api/meta/object.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import {
  type Controller,
  createController,
  DONE,
  type ReconcileResult,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { removeFinalizer } from '../../client/finalizer/finalizer.ts';
import type { PoolFacts, SnapshotsMade } from '../../domain/storage/pool-calls.ts';
import { POOL_DRIVER, SNAPSHOT_GROUP, SNAPSHOT_GROUP_SIZE } from '../../domain/storage/pool-names.ts';
import { placeOf } from '../../domain/storage/provision-plan.ts';
import {
  BEING_CREATED,
  BEING_DELETED,
  CONTENT_BOUND,
  isContentOf,
  poolOfHandle,
  snapshotHandleIn,
} from '../../domain/storage/snapshot-plan.ts';
import { createPools, PoolCallError } from './pools.ts';
import type { PoolControllerOptions } from './provisioner-controller.ts';

type Content = DeepReadonly<VolumeSnapshotContent>;
type Snapshot = DeepReadonly<VolumeSnapshot>;

/** Rights the controller needs, and no others. */
export const snapshotterRules: PolicyRule[] = [
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshots'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['snapshot.storage.k8s.io'],
    resources: ['volumesnapshotcontents', 'volumesnapshotcontents/status'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

const BY_HANDLE = 'snapshotter.handle';
const BY_GROUP = 'snapshotter.group';
const BY_SNAPSHOT = 'snapshotter.snapshot';
const RETRY_MS = 2000;
/** Failures that are remembered; beyond that they are tried again at once. */
const MAX_FAILURES = 1000;
const NANOS = 1e6;

const groupOf = ({ metadata }: Snapshot): string | undefined => {
  const group = metadata.annotations?.[SNAPSHOT_GROUP];
  return group === undefined ? undefined : `${metadata.namespace}/${group}`;
};
const isDone = ({ status }: Content): boolean => status?.snapshotHandle !== undefined;

/** What one call takes: a content, its volume's place. */
interface Member {
  readonly content: Content;
  readonly pool: string;
  readonly volume: string;
  /** Its name in the pool: the uid of the VolumeSnapshot. */
  readonly handle: string;
}

/** Makes the controller. */
export function createSnapshotterController(options: PoolControllerOptions): Controller {
  const { client, informers, clock, log } = options;
  const contents = informers.of(VOLUME_SNAPSHOT_CONTENTS);
  const snapshots = informers.of(VOLUME_SNAPSHOTS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const nodes = informers.of(NODES);
  volumes.addIndex(BY_HANDLE, (volume) => {
    const place = placeOf(volume);
    return place ? [place.handle] : [];
  });
  snapshots.addIndex(BY_GROUP, (snapshot) => [groupOf(snapshot) ?? ''].filter((group) => group !== ''));
  contents.addIndex(BY_SNAPSHOT, ({ spec }) => [spec.volumeSnapshotRef.uid ?? '']);
  const pools = createPools({ nodes, connect: options.connect, clock });
  /** By uid of a content: when it may be tried again. To tell of a failure is a change, which must not bring the next. */
  const notBefore = new Map<string, number>();
  const events = createEventRecorder(client, { component: `csi-snapshotter ${POOL_DRIVER}`, clock, log });

  const save = async (before: Content, after: Content, signal: AbortSignal): Promise<Content> =>
    (await commit<VolumeSnapshotContent>(client, VOLUME_SNAPSHOT_CONTENTS, { before, after, signal })) ?? before;
  const annotate = (content: Content, key: string, value: string | undefined, signal: AbortSignal) => {
    const { [key]: _, ...rest } = content.metadata.annotations ?? {};
    const annotations = value === undefined ? rest : { ...rest, [key]: value };
    return save(content, { ...content, metadata: { ...content.metadata, annotations } }, signal);
  };

  /** Undefined while its volume is not known. */
  const memberOf = (content: Content): Member | undefined => {
    const volume = content.spec.source.volumeHandle ?? '';
    const [place] = volumes.byIndex(BY_HANDLE, volume).flatMap((one) => placeOf(one) ?? []);
    const { uid } = content.spec.volumeSnapshotRef;
    return place && uid ? { content, pool: place.pool, volume, handle: uid } : undefined;
  };

  /** Everything that is to be taken with this content; undefined while some of it is not there yet. */
  const companyOf = (content: Content): readonly Member[] | undefined => {
    const { namespace = '', name = '' } = content.spec.volumeSnapshotRef;
    const snapshot = snapshots.get({ namespace, name });
    if (!snapshot || !isContentOf(content, snapshot)) return undefined;
    const group = groupOf(snapshot);
    const all = group === undefined ? [snapshot] : snapshots.byIndex(BY_GROUP, group);
    const size = group === undefined ? 1 : Number(snapshot.metadata.annotations?.[SNAPSHOT_GROUP_SIZE] ?? '1');
    if (all.length < size || all.some(({ metadata }) => metadata.deletionTimestamp !== undefined)) return undefined;
    const members = all.map((one) => {
      const [held] = contents.byIndex(BY_SNAPSHOT, one.metadata.uid ?? '').filter((each) => isContentOf(each, one));
      return held && memberOf(held);
    });
    return members.every((one) => one !== undefined) ? members : undefined;
  };

  const take = async (content: Content, signal: AbortSignal): Promise<ReconcileResult> => {
    const company = companyOf(content);
    if (!company) return DONE;
    const [first] = company;
    // One pass takes the whole group: that of the first of them that is not done.
    const leader = company.filter((one) => !isDone(one.content)).sort(byHandle)[0];
    if (!first || leader?.content.metadata.uid !== content.metadata.uid) return DONE;
    if (company.some(({ pool }) => pool !== first.pool))
      throw new PoolCallError('Invalid', 'volumes that are taken at one point in time have to lie in one pool');
    const marked: Member[] = [];
    for (const one of company) {
      const isMarked = isDone(one.content) || one.content.metadata.annotations?.[BEING_CREATED] === 'yes';
      marked.push(isMarked ? one : { ...one, content: await annotate(one.content, BEING_CREATED, 'yes', signal) });
    }
    const asked = marked.map(({ handle, volume }) => ({ handle, volume }));
    const made = await pools.call<SnapshotsMade>(first.pool, 'createSnapshots', { snapshots: asked }, signal);
    for (const { content: each, handle, pool } of marked) {
      const found = made.snapshots.find((one) => one.handle === handle);
      if (!found || isDone(each)) continue;
      const status = {
        snapshotHandle: snapshotHandleIn(pool, handle),
        creationTime: Date.parse(found.createdAt) * NANOS,
        restoreSize: found.bytes,
        readyToUse: true,
      };
      await save(each, { ...each, status }, signal);
    }
    return DONE;
  };

  /** A snapshot that somebody says exists. */
  const adopt = async (content: Content, signal: AbortSignal): Promise<void> => {
    const { snapshotHandle = '' } = content.spec.source;
    const place = poolOfHandle(snapshotHandle);
    const facts = place && (await pools.call<PoolFacts>(place.pool, 'inspect', {}, signal));
    if (!facts?.snapshots.some(({ handle }) => handle === place?.handle))
      throw new PoolCallError('NotFound', `snapshot ${snapshotHandle} is in no pool`);
    const status = { snapshotHandle, creationTime: clock.now() * NANOS, readyToUse: true };
    await save(content, { ...content, status }, signal);
  };

  const leave = async (content: Content, signal: AbortSignal): Promise<void> => {
    if (!content.metadata.finalizers?.includes(CONTENT_BOUND)) return;
    const { source: from, volumeSnapshotRef, deletionPolicy } = content.spec;
    const isFree = from.snapshotHandle !== undefined && (volumeSnapshotRef.uid ?? '') === '';
    if (!isFree && content.metadata.annotations?.[BEING_DELETED] !== 'yes') return;
    if (deletionPolicy === 'Delete') {
      const place = poolOfHandle(content.status?.snapshotHandle ?? from.snapshotHandle);
      const begun = content.metadata.annotations?.[BEING_CREATED] === 'yes' ? memberOf(content) : undefined;
      const gone = place ?? begun;
      if (gone) await pools.call(gone.pool, 'deleteSnapshot', { handle: gone.handle }, signal);
    }
    await save(content, removeFinalizer(content as VolumeSnapshotContent, CONTENT_BOUND), signal);
  };

  const fail = async (content: Content, error: PoolCallError, signal: AbortSignal): Promise<void> => {
    const leaves = content.metadata.deletionTimestamp !== undefined;
    const message = leaves
      ? `Failed to delete snapshot: ${error.message}`
      : `Failed to check and update snapshot content: ${error.message}`;
    const reason = leaves ? 'SnapshotDeleteError' : 'SnapshotContentCheckandUpdateFailed';
    if (content.status?.error?.message === message) return;
    events.event(content, 'Warning', reason, message);
    const latest = await client.get(VOLUME_SNAPSHOT_CONTENTS, keyOf(content), { signal });
    const failure = { message, time: formatTime(clock.now()) };
    const status = { ...latest.status, ...(!leaves && { readyToUse: false }), error: failure };
    await save(latest, { ...latest, status }, signal);
  };

  const controller = createController({
    name: 'local-volume-snapshotter',
    client,
    clock,
    log,
    concurrency: 4,
    sources: [
      source(contents, (content) => [keyOf(content), ...companyKeys(content)]),
      source(snapshots, (snapshot) => [
        ...contents.byIndex(BY_SNAPSHOT, snapshot.metadata.uid ?? '').map(keyOf),
        ...groupKeys(snapshot),
      ]),
      source(volumes, () => []),
      source(nodes, () => []),
    ],
    async reconcile(key, { signal }) {
      const content = contents.get(key);
      if (!content || content.spec.driver !== POOL_DRIVER) return DONE;
      const uid = content.metadata.uid ?? '';
      const wait = (notBefore.get(uid) ?? 0) - clock.monotonic();
      if (wait > 0) return requeueAfter(wait);
      notBefore.delete(uid);
      try {
        if (content.metadata.deletionTimestamp !== undefined) await leave(content, signal);
        else if (isDone(content)) {
          if (content.metadata.annotations?.[BEING_CREATED] !== undefined)
            await annotate(content, BEING_CREATED, undefined, signal);
        } else if (content.spec.source.snapshotHandle !== undefined) await adopt(content, signal);
        else return await take(content, signal);
      } catch (error) {
        if (isNotFound(error)) return DONE;
        if (!(error instanceof PoolCallError)) throw error;
        if (notBefore.size >= MAX_FAILURES) notBefore.clear();
        notBefore.set(uid, clock.monotonic() + RETRY_MS);
        await fail(content, error, signal);
        return requeueAfter(RETRY_MS);
      }
      return DONE;
    },
  });
  return controller;

  function groupKeys(snapshot: Snapshot) {
    const group = groupOf(snapshot);
    if (group === undefined) return [];
    return snapshots
      .byIndex(BY_GROUP, group)
      .flatMap((one) => contents.byIndex(BY_SNAPSHOT, one.metadata.uid ?? ''))
      .map(keyOf);
  }

  /** The others of its group may have waited for this one. */
  function companyKeys({ spec }: Content) {
    const { namespace = '', name = '' } = spec.volumeSnapshotRef;
    const snapshot = snapshots.get({ namespace, name });
    return snapshot ? groupKeys(snapshot) : [];
  }
}

const byHandle = (a: Member, b: Member): number => (a.handle < b.handle ? -1 : 1);
