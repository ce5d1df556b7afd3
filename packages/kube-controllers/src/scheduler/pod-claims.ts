/**
 * The claims of a Pod as the scheduler sees them, and what it writes for those that wait for their first Pod: a volume
 * that is there is kept for the claim, or its node is written into the claim, where a provisioner makes one. The Pod is bound
 * when the claims are.
 */

import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
} from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, Pod } from '@coracle/apimachinery/types/types';
import { claimsOfPod } from '@coracle/apimachinery/types/volume-claims';
import { commit } from '@coracle/client/commit/commit';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { Informer } from '@coracle/client/informer/informer';
import { type ClaimChoice, type PodVolumes, podVolumes } from '@coracle/cluster-rules/placement/pod-volumes';
import { withClaim } from '@coracle/cluster-rules/storage/bind-writes';
import { SELECTED_NODE } from '@coracle/cluster-rules/storage/claim-step';

export interface PodClaims {
  /** Informers that have to have synced. */
  readonly informers: readonly Informer<never>[];
  of(pod: DeepReadonly<Pod>): PodVolumes;
  /** Writes what claims that wait get on the node; the Pod is tried again when they are bound. */
  give(choices: readonly ClaimChoice[], nodeName: string, signal: AbortSignal): Promise<void>;
  /** Hears of the Pods (all those without a node) whose claims changed. */
  onChange(listener: (keys: readonly ObjectKey[]) => void): void;
}

const BY_CLAIM = 'scheduler.claim';

/** Makes it over the scheduler's informers. */
export function createPodClaims(
  { client, informers }: Pick<ControllerEnvironment, 'client' | 'informers'>,
  pods: Informer<Pod>,
): PodClaims {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const classes = informers.of(STORAGE_CLASSES);
  pods.addIndex(BY_CLAIM, (pod) =>
    (pod.spec.nodeName ?? '') === '' ? claimsOfPod(pod).map((name) => `${pod.metadata.namespace}/${name}`) : [],
  );
  return {
    informers: [claims, volumes, classes] as unknown as readonly Informer<never>[],
    of: (pod) =>
      podVolumes(pod, {
        claimNamed: (namespace, name) => claims.get({ namespace, name }),
        volumeNamed: (name) => volumes.get({ namespace: '', name }),
        classNamed: (name) => classes.get({ namespace: '', name }),
        volumes: () => volumes.list(),
      }),
    async give(choices, nodeName, signal) {
      for (const { claim, volume } of choices) {
        if (volume) {
          await commit(client, PERSISTENT_VOLUMES, { before: volume, after: withClaim(volume, claim), signal });
          continue;
        }
        const annotations = { ...claim.metadata.annotations, [SELECTED_NODE]: nodeName };
        const after = { ...claim, metadata: { ...claim.metadata, annotations } };
        await commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after, signal });
      }
    },
    onChange(listener) {
      claims.onChange(({ object: { metadata } }) => {
        const waiting = pods.byIndex(BY_CLAIM, `${metadata.namespace}/${metadata.name}`);
        if (waiting.length > 0) listener(waiting.map(keyOf));
      });
    },
  };
}
