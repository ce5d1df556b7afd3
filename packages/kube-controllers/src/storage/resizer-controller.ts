/** Enlarges the volumes of driver `local.coracle.dev` whose claims ask for more; a guest that runs sees it at once. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { holdingOf } from '@coracle/apimachinery/types/volume-claims';
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
import type { VolumeMade } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import { bytesText, placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import { resizeFailed, resizeStep } from '@coracle/cluster-rules/storage/resize-step';
import { createPools, PoolCallError } from './pools.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;

/** Rights the controller needs, and no others. */
export const resizerRules = policyRules(
  'list watch patch : core : persistentvolumes',
  'list watch patch : core : persistentvolumeclaims',
  'patch : core : persistentvolumeclaims/status',
  'get list watch : core : nodes',
  'create patch : core : events',
);

const RESIZER = 'volume.kubernetes.io/storage-resizer';
const RETRY_MS = 10_000;

/** Makes the controller. */
export function createResizerController(options: PoolControllerOptions): Controller {
  const { client, informers, clock, log } = options;
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const nodes = informers.of(NODES);
  const pools = createPools({ nodes, connect: options.connect, clock });
  const events = createEventRecorder(client, { component: `external-resizer ${POOL_DRIVER}`, clock, log });
  const now = (): string => formatTime(clock.now());
  const saveStatus = (claim: Claim, status: Claim['status'], signal: AbortSignal) =>
    commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, {
      before: claim,
      after: { ...claim, status } as Claim,
      signal,
    });

  return createController({
    ...options,
    name: 'local-volume-resizer',
    concurrency: 4,
    sources: [
      ownKeys(claims),
      source(volumes, ({ spec }) =>
        spec?.claimRef ? [{ namespace: spec.claimRef.namespace ?? '', name: spec.claimRef.name ?? '' }] : [],
      ),
      source(nodes, () => []),
    ],
    async reconcile(key, { signal }) {
      const claim = claims.get(key);
      const volume = claim?.spec?.volumeName ? volumes.get({ namespace: '', name: claim.spec.volumeName }) : undefined;
      const place = volume && placeOf(volume);
      if (!claim || !volume || !place || holdingOf(volume, claim) !== 'bound') return;
      if (claim.metadata.deletionTimestamp !== undefined) return;
      const step = resizeStep(claim, volume, now());
      if (step.type === 'done') return;
      const name = volume.metadata.name ?? '';
      try {
        if (claim.metadata.annotations?.[RESIZER] !== POOL_DRIVER) {
          const annotations = { ...claim.metadata.annotations, [RESIZER]: POOL_DRIVER };
          const after = { ...claim, metadata: { ...claim.metadata, annotations } };
          await commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after, signal });
        } else if (step.type === 'claim-status') {
          if (step.starts) events.event(claim, 'Normal', 'Resizing', `External resizer is resizing volume ${name}`);
          else events.event(claim, 'Normal', 'VolumeResizeSuccessful', 'Resize volume succeeded');
          await saveStatus(claim, step.status, signal);
        } else {
          const call = { handle: place.handle, bytes: step.bytes };
          const made = await pools.call<VolumeMade>(place.pool, 'expandVolume', call, signal);
          const capacity = { ...volume.spec?.capacity, storage: bytesText(made.bytes) };
          const after = { ...volume, spec: { ...volume.spec, capacity } } as DeepReadonly<PersistentVolume>;
          await commit(client, PERSISTENT_VOLUMES, { before: volume, after, signal });
        }
      } catch (error) {
        if (isNotFound(error)) return;
        if (!(error instanceof PoolCallError)) throw error;
        const message = `resize volume "${name}" by resizer "${POOL_DRIVER}" failed: ${error.message}`;
        events.event(claim, 'Warning', 'VolumeResizeFailed', message);
        const final = error.reason === 'Invalid' || error.reason === 'NoSpace' || error.reason === 'NotFound';
        await saveStatus(claim, resizeFailed(claim, { message, final, now: now() }), signal);
        return requeueAfter(RETRY_MS);
      }
    },
  });
}
