/**
 * Take the protection finalizers off claims and volumes that are on their way out, once nobody uses them
 * (pkg/controller/volume/pvcprotection, pvprotection). The plug-in StorageObjectInUseProtection puts them on.
 */

import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '@coracle/apimachinery/types/types';
import { claimsOfPod } from '@coracle/apimachinery/types/volume-claims';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';

const CLAIM_FINALIZER = 'kubernetes.io/pvc-protection';
const VOLUME_FINALIZER = 'kubernetes.io/pv-protection';
const BY_CLAIM = 'pvc-protection.claim';

export const claimProtectionRules = policyRules(
  'list watch patch : core : persistentvolumeclaims',
  'list watch : core : pods',
);

export const volumeProtectionRules = policyRules('list watch patch : core : persistentvolumes');

const isLeaving = ({ metadata }: DeepReadonly<KubeObject>, finalizer: string): boolean =>
  metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(finalizer) === true;

/** A Pod uses its claims until it has ended; one that was never bound to a node does not yet. */
const uses = (pod: DeepReadonly<Pod>): boolean => !hasEnded(pod) && (pod.spec.nodeName ?? '') !== '';

/** Makes the controller of claims. */
export function createClaimProtectionController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const pods = informers.of(PODS);
  pods.addIndex(BY_CLAIM, (pod) => claimsOfPod(pod).map((name) => `${pod.metadata.namespace}/${name}`));
  return createController({
    ...environment,
    name: 'persistentvolumeclaim-protection-controller',
    concurrency: 4,
    sources: [
      ownKeys(claims),
      source(pods, (pod) => claimsOfPod(pod).map((name) => ({ namespace: pod.metadata.namespace ?? '', name }))),
    ],
    async reconcile(key, { signal }) {
      const claim = claims.get(key);
      if (!claim || !isLeaving(claim, CLAIM_FINALIZER)) return;
      if (pods.byIndex(BY_CLAIM, `${key.namespace}/${key.name}`).some(uses)) return;
      // The copy here lags behind: the server is asked before the claim is let go.
      const { items } = await client.list(PODS, { namespace: key.namespace, signal });
      if (items.some((pod) => claimsOfPod(pod).includes(key.name) && uses(pod))) return;
      const after = removeFinalizer(claim as PersistentVolumeClaim, CLAIM_FINALIZER);
      await orAbsent(commit(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after, signal }));
    },
  });
}

/** Makes the controller of volumes: one that is bound to a claim stays. */
export function createVolumeProtectionController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const volumes = informers.of(PERSISTENT_VOLUMES);
  return createController({
    ...environment,
    name: 'persistentvolume-protection-controller',
    sources: [ownKeys(volumes)],
    async reconcile(key, { signal }) {
      const volume = volumes.get(key);
      if (!volume || !isLeaving(volume, VOLUME_FINALIZER) || volume.status?.phase === 'Bound') return;
      const after = removeFinalizer(volume as PersistentVolume, VOLUME_FINALIZER);
      await orAbsent(commit(client, PERSISTENT_VOLUMES, { before: volume, after, signal }));
    },
  });
}
