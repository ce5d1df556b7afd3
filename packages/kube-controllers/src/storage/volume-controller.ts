/**
 * The persistentvolume controller of kube-controller-manager: binds claims and volumes, reports their phases, and asks
 * provisioners for volumes. What is to be done is decided by `cluster-rules/storage` (`claimStep`, `volumeStep`); here it is
 * written.
 *
 * Keys without a namespace are volumes, the others claims. A binding is four writes in the order of
 * `cluster-rules/storage/bind-writes.ts`; a pass that stops in between, or whose copy was stale (409), is begun again and ends
 * the same way, because the volume's claimRef decides.
 */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { claimsOfPod, classNameOf } from '@coracle/apimachinery/types/volume-claims';
import { isNotFound } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

import { BY_CLAIM, BY_CLASS, BY_VOLUME, claimKeyOf, VolumeSteps, volumeKey } from './volume-steps.ts';

const CONCURRENCY = 8;

/** Rights the controller needs, and no others. */
export const volumeControllerRules = policyRules(
  'get list watch patch : core : persistentvolumes persistentvolumeclaims',
  'patch : core : persistentvolumes/status persistentvolumeclaims/status',
  'list watch : core : pods',
  'list watch : storage.k8s.io : storageclasses',
  'create patch : core : events',
);

/** Makes the controller. */
export function createVolumeController(environment: ControllerEnvironment): Controller {
  const steps = new VolumeSteps(environment, (key, ms) => controller.enqueue(key, ms));
  const controller: Controller = createController({
    ...environment,
    name: 'persistentvolume-binder-controller',
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(steps.claims),
      ownKeys(steps.volumes),
      source(steps.claims, (claim) => (claim.spec?.volumeName ? [volumeKey(claim.spec.volumeName)] : [])),
      // A claim that is gone, or bound elsewhere, may leave volumes behind that were made for it.
      source(steps.claims, ({ metadata }) =>
        steps.volumes.byIndex(BY_CLAIM, `${metadata.namespace}/${metadata.name}`).map(keyOf),
      ),
      source(steps.volumes, (volume) => [
        ...steps.claims.byIndex(BY_VOLUME, volume.metadata.name ?? '').map(keyOf),
        ...claimKeyOf(volume),
        // One that is free may be what others wait for.
        ...(volume.status?.phase === 'Available' && !volume.spec?.claimRef
          ? steps.claims.byIndex(BY_CLASS, `=${classNameOf(volume)}`).map(keyOf)
          : []),
      ]),
      source(steps.classes, ({ metadata }) =>
        [...steps.claims.byIndex(BY_CLASS, ''), ...steps.claims.byIndex(BY_CLASS, `=${metadata.name}`)].map(keyOf),
      ),
      source(steps.pods, (pod, previous) =>
        previous === undefined
          ? claimsOfPod(pod).map((name) => ({ namespace: pod.metadata.namespace ?? '', name }))
          : [],
      ),
    ],
    async reconcile(key, { signal }) {
      try {
        const volume = key.namespace === '' ? steps.volumes.get(key) : undefined;
        const claim = key.namespace === '' ? undefined : steps.claims.get(key);
        if (volume) await steps.syncVolume(volume, signal);
        else if (claim) await steps.syncClaim(claim, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  });
  return controller;
}
