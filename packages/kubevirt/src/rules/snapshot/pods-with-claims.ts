/** Pods that hold claims: what they write may not be whole. */
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';

/** Those of `pods` that have not ended and have a claim among their volumes for whose name `isMeant` is true. */
export const podsWithClaims = <P extends ReadonlyPod>(pods: readonly P[], isMeant: (claim: string) => boolean): P[] =>
  pods.filter(
    (pod) =>
      !hasEnded(pod) &&
      pod.spec.volumes?.some(({ persistentVolumeClaim }) => isMeant(persistentVolumeClaim?.claimName ?? '')) === true,
  );
