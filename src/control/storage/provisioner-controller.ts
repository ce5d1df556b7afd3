/**
 * The external provisioner of driver `local.coracle.dev`: makes the content of a claim in a pool, then the
 * PersistentVolume that stands for it. The volume controller binds the two.
 *
 * Claims of earlier versions whose content lies in a pool already get a volume of their own uid, whatever their class.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
} from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolumeClaim } from '../../api/kinds/builtin/types.ts';
import { attributesClassOf, classNameOf } from '../../api/kinds/builtin/volume-claims.ts';
import type { DeepReadonly, ObjectKey } from '../../api/meta/object.ts';
import { keyOf } from '../../api/meta/object.ts';
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
import { BIND_COMPLETED, SELECTED_NODE, STORAGE_PROVISIONER } from '../../domain/storage/claim-step.ts';
import type { PoolFacts, VolumeMade } from '../../domain/storage/pool-calls.ts';
import { POOL_DRIVER } from '../../domain/storage/pool-names.ts';
import { createCall, formatOf, sourceOf, volumeNameFor, volumeObject } from '../../domain/storage/provision-plan.ts';
import { type ConnectNode, createPools, PoolCallError, poolOf } from './pools.ts';
import { type FoundSource, findClaimSource, findSnapshotSource, SourceError } from './volume-source.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;

export interface PoolControllerOptions extends ControllerEnvironment {
  readonly connect: ConnectNode;
  /** Whether somebody keeps the content of a released volume: then it is left to him. */
  readonly isHeld: (handle: string, signal: AbortSignal) => Promise<boolean>;
}

/** Rights the controller needs, and no others. */
export const provisionerRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'list', 'watch', 'create'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['snapshot.storage.k8s.io'],
    resources: ['volumesnapshots', 'volumesnapshotcontents'],
    verbs: ['get'],
  },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

const BY_UID = 'provisioner.uid';
const CONCURRENCY = 4;
/** A source that is not ready is looked at again after this long. */
const SOURCE_MS = 1000;
/** So is a pool that refused or could not be reached. */
const POOL_MS = 5000;

/** Makes the controller. */
export function createProvisionerController(options: PoolControllerOptions): Controller {
  const { client, informers, clock, log } = options;
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const classes = informers.of(STORAGE_CLASSES);
  const nodes = informers.of(NODES);
  claims.addIndex(BY_UID, ({ metadata }) => [metadata.uid ?? '']);
  const pools = createPools({ nodes, connect: options.connect, clock });
  const events = createEventRecorder(client, { component: `${POOL_DRIVER}_provisioner`, clock, log });
  /** Pools that were asked what they hold, by id; the uids of claims without a volume whose content they have. */
  const known = new Map<string, ReadonlySet<string>>();

  const classOf = (claim: Claim) => classes.get({ namespace: '', name: classNameOf(claim) });
  const heldIn = (claim: Claim): string | undefined =>
    [...known].find(([, handles]) => handles.has(claim.metadata.uid ?? ''))?.[0];

  /** True for claims that a volume of ours is to be made for. */
  const isOurs = (claim: Claim): boolean => {
    const { metadata, spec } = claim;
    if (metadata.deletionTimestamp !== undefined || (spec?.volumeName ?? '') !== '') return false;
    if (metadata.annotations?.[BIND_COMPLETED] !== undefined) return false;
    return heldIn(claim) !== undefined || metadata.annotations?.[STORAGE_PROVISIONER] === POOL_DRIVER;
  };

  /** Asks a pool that was never asked before what it holds: claims of earlier versions are found by it. */
  const learn = async (signal: AbortSignal): Promise<void> => {
    for (const pool of pools.ready()) {
      if (known.has(pool)) continue;
      const facts = await pools.call<PoolFacts>(pool, 'inspect', {}, signal);
      const handles = new Set(facts.volumes.map(({ handle }) => handle));
      const waiting = [...handles].flatMap((uid) => claims.byIndex(BY_UID, uid)).filter((one) => !one.spec?.volumeName);
      known.set(pool, new Set(waiting.map(({ metadata }) => metadata.uid ?? '')));
      for (const claim of waiting) controller.enqueue(keyOf(claim));
    }
  };

  const choosePool = async (claim: Claim, from: FoundSource | undefined, signal: AbortSignal): Promise<string> => {
    const held = heldIn(claim);
    if (held !== undefined) return held;
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (selected !== undefined) {
      const node = nodes.get({ namespace: '', name: selected });
      const pool = node && poolOf(node);
      if (pool === undefined) throw new PoolCallError('NoSpace', `node ${selected} serves no pool of volumes`);
      if (from && from.pool !== pool)
        throw new PoolCallError('NoSpace', `the source lies in pool ${from.pool}, and node ${selected} serves ${pool}`);
      return pool;
    }
    if (from) return from.pool;
    const ready = pools.ready();
    if (ready.length === 0) throw new PoolCallError('Unreachable', 'no ready node serves a pool of volumes');
    if (ready.length === 1) return ready[0]!;
    const room = await Promise.all(
      ready.map(async (pool) => {
        const { freeBytes } = await pools.call<PoolFacts>(pool, 'inspect', {}, signal);
        return { pool, freeBytes };
      }),
    );
    return room.sort((a, b) => b.freeBytes - a.freeBytes || (a.pool < b.pool ? -1 : 1))[0]!.pool;
  };

  const provision = async (claim: Claim, signal: AbortSignal): Promise<void> => {
    const format = formatOf(classOf(claim));
    if (!format) throw new SourceError('parameter "format" of the StorageClass must be raw or qcow2');
    if (claim.spec?.selector) throw new SourceError('claim Selector is not supported');
    const attributes = attributesClassOf(claim);
    if (attributes !== '')
      throw new SourceError(
        `driver ${POOL_DRIVER} has no VolumeAttributesClasses, and the claim names "${attributes}"`,
      );
    const asked = sourceOf(claim);
    if (asked.type === 'refused') throw new SourceError(asked.message);
    const about = { claim, name: 'name' in asked ? asked.name : '' };
    const held = heldIn(claim) !== undefined;
    let from: FoundSource | undefined;
    if (!held && asked.type === 'snapshot') from = await findSnapshotSource(client, about, signal);
    if (!held && asked.type === 'claim') from = await findClaimSource(client, about, signal);
    const pool = await choosePool(claim, from, signal);
    const call = createCall(claim, format, from && { kind: from.kind, handle: from.handle });
    const made = await pools.call<VolumeMade>(pool, 'createVolume', call, signal);
    const storageClass = classOf(claim);
    // A class that is gone does not say any more that content may be deleted.
    const reclaimPolicy =
      storageClass?.reclaimPolicy ?? (storageClass || classNameOf(claim) === '' ? 'Delete' : 'Retain');
    try {
      await client.create(PERSISTENT_VOLUMES, volumeObject(claim, { pool, made, reclaimPolicy }), { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    // What goes wrong here the sweeper does again.
    await pools.call(pool, 'confirmVolume', { handle: made.handle }, signal).catch((error: unknown) => {
      if (!(error instanceof PoolCallError)) throw error;
    });
  };

  /** Lets the scheduler choose another node where the one it chose has no room. */
  const reschedule = async (claim: Claim, signal: AbortSignal): Promise<void> => {
    const { [SELECTED_NODE]: selected, ...annotations } = claim.metadata.annotations ?? {};
    if (selected === undefined) return;
    const after = { ...claim, metadata: { ...claim.metadata, annotations } };
    await commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after, signal });
  };

  const failed = async (claim: Claim, error: unknown, signal: AbortSignal): Promise<ReconcileResult> => {
    if (!(error instanceof PoolCallError) && !(error instanceof SourceError)) throw error;
    const message = `failed to provision volume with StorageClass "${classNameOf(claim)}": ${error.message}`;
    events.event(claim, 'Warning', 'ProvisioningFailed', message);
    if (error instanceof SourceError) return requeueAfter(SOURCE_MS);
    if (error.reason === 'NoSpace') await reschedule(claim, signal);
    return requeueAfter(POOL_MS);
  };

  const controller = createController({
    name: 'local-volume-provisioner',
    client,
    clock,
    log,
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(claims),
      ownKeys(volumes),
      source(classes, () => []),
      source(nodes, (node, previous) =>
        poolOf(node) !== undefined && (previous === undefined || !known.has(poolOf(node)!) || hasRisen(node, previous))
          ? [POOLS_KEY]
          : [],
      ),
    ],
    async reconcile(key, { signal, log: passLog }) {
      if (key.namespace === '') {
        if (key.name !== POOLS_KEY.name) return DONE;
        try {
          await learn(signal);
        } catch (error) {
          if (!(error instanceof PoolCallError)) throw error;
          return requeueAfter(POOL_MS);
        }
        return DONE;
      }
      const claim = claims.get(key);
      if (!claim || !isOurs(claim) || volumes.get({ namespace: '', name: volumeNameFor(claim) })) return DONE;
      if (sourceOf(claim).type === 'other') return DONE;
      const { namespace, name } = claim.metadata;
      if (heldIn(claim) === undefined)
        events.event(
          claim,
          'Normal',
          'Provisioning',
          `External provisioner is provisioning volume for claim "${namespace}/${name}"`,
        );
      try {
        // What pools hold already goes first.
        await learn(signal);
        await provision(claim, signal);
      } catch (error) {
        if (isNotFound(error)) return DONE;
        return failed(claim, error, signal);
      }
      events.event(claim, 'Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${volumeNameFor(claim)}`);
      passLog.info('volume made', { volume: volumeNameFor(claim) });
      return DONE;
    },
  });
  return controller;
}

/** The key of all pools; no volume has such a name. */
const POOLS_KEY: ObjectKey = { namespace: '', name: 'POOLS' };

const hasRisen = (now: DeepReadonly<{ status?: object }>, before: DeepReadonly<{ status?: object }>): boolean =>
  isUp(now) && !isUp(before);
const isUp = ({ status }: DeepReadonly<{ status?: object }>): boolean =>
  ((status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions ?? []).some(
    (one) => one.type === 'Ready' && one.status === 'True',
  );
