/** Pods that hold claims: what they write may not be whole. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Pod } from '@coracle/apimachinery/types/types';

/** Those of `pods` that have not ended and have a claim among their volumes for whose name `isMeant` is true. */
export const podsWithClaims = <P extends DeepReadonly<Pod>>(
  pods: readonly P[],
  isMeant: (claim: string) => boolean,
): P[] =>
  pods.filter(
    ({ spec, status }) =>
      status?.phase !== 'Succeeded' &&
      status?.phase !== 'Failed' &&
      spec.volumes?.some(({ persistentVolumeClaim }) => isMeant(persistentVolumeClaim?.claimName ?? '')) === true,
  );
