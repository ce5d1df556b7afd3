/**
 * Deletes the content of volumes of driver `local.coracle.dev` that are Released and whose policy is Delete, then the
 * volume. A finalizer holds the object until then, also when a user deletes it first; with policy Retain it goes at once
 * and the content stays. Content that the bin holds is left to it.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume } from '@coracle/apimachinery/types/types';
import { isNotFound } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import {
  type Controller,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import { PROVISIONER_FINALIZER, placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import { PROVISIONED_BY } from '@coracle/cluster-rules/storage/volume-step';
import { createPools, PoolCallError } from './pools.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';

type Volume = DeepReadonly<PersistentVolume>;

/** Rights the controller needs, and no others. */
export const deleterRules = policyRules(
  'get list watch patch delete : core : persistentvolumes',
  'get list watch : core : nodes',
  'list : coracle.dev : deletedvirtualmachinecontents',
  'create patch : core : events',
);

const RETRY_MS = 5000;
const holds = ({ metadata }: Volume): boolean => metadata.finalizers?.includes(PROVISIONER_FINALIZER) ?? false;
const isLeaving = ({ metadata }: Volume): boolean => metadata.deletionTimestamp !== undefined;

/** Makes the controller. */
export function createDeleterController(options: PoolControllerOptions): Controller {
  const { client, informers, clock, log } = options;
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const nodes = informers.of(NODES);
  const pools = createPools({ nodes, connect: options.connect, clock });
  const events = createEventRecorder(client, { component: `${POOL_DRIVER}_provisioner`, clock, log });
  const save = (before: Volume, after: Volume, signal: AbortSignal) =>
    commit(client, PERSISTENT_VOLUMES, { before, after, signal });

  return createController({
    ...options,
    name: 'local-volume-deleter',
    concurrency: 4,
    sources: [ownKeys(volumes), source(nodes, () => [])],
    async reconcile(key, { signal, log: passLog }) {
      const volume = volumes.get(key);
      const place = volume && placeOf(volume);
      if (!volume || !place || volume.metadata.annotations?.[PROVISIONED_BY] !== POOL_DRIVER) return;
      const isDelete = volume.spec?.persistentVolumeReclaimPolicy === 'Delete';
      try {
        if (!isDelete) {
          if (holds(volume))
            await save(volume, removeFinalizer(volume as PersistentVolume, PROVISIONER_FINALIZER), signal);
          return;
        }
        if (!holds(volume) && !isLeaving(volume)) {
          const finalizers = [...(volume.metadata.finalizers ?? []), PROVISIONER_FINALIZER];
          await save(volume, { ...volume, metadata: { ...volume.metadata, finalizers } }, signal);
          return;
        }
        // One that no claim ever had, and that a user deletes, has nobody who would release it.
        const isFree = isLeaving(volume) && volume.status?.phase === 'Available' && !volume.spec?.claimRef;
        if (!holds(volume) || (volume.status?.phase !== 'Released' && !isFree)) return;
        // The policy, and whose it is, as they are now: content does not come back.
        const { metadata, spec, status } = await client.get(PERSISTENT_VOLUMES, key, { signal });
        if (metadata.resourceVersion !== volume.metadata.resourceVersion) return requeueAfter(100);
        if (spec?.persistentVolumeReclaimPolicy !== 'Delete' || status?.phase !== volume.status?.phase) return;
        if (await options.isHeld(place.handle, signal)) {
          passLog.info('content of a volume left to the bin', { volume: key.name });
        } else {
          await pools.call(place.pool, 'deleteVolume', { handle: place.handle }, signal);
          passLog.info('content of a volume deleted', { volume: key.name });
        }
        await save(volume, removeFinalizer(volume as PersistentVolume, PROVISIONER_FINALIZER), signal);
        if (!isLeaving(volume))
          await client.delete(PERSISTENT_VOLUMES, keyOf(volume), {
            preconditions: { ...(volume.metadata.uid && { uid: volume.metadata.uid }) },
            signal,
          });
      } catch (error) {
        if (isNotFound(error)) return;
        if (!(error instanceof PoolCallError)) throw error;
        events.event(volume, 'Warning', 'VolumeFailedDelete', error.message);
        return requeueAfter(RETRY_MS);
      }
    },
  });
}
