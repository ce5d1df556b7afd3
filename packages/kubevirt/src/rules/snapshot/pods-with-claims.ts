/** Pods that hold claims: what they write may not be whole. */
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';

/** Those of `pods` that have not ended and have a claim among their volumes for whose name `isMeant` is true. */
export const podsWithClaims = <P extends ReadonlyPod>(pods: readonly P[], isMeant: (claim: string) => boolean): P[] =>
  pods.filter(
    ({ spec, status }) =>
      status?.phase !== 'Succeeded' &&
      status?.phase !== 'Failed' &&
      spec.volumes?.some(({ persistentVolumeClaim }) => isMeant(persistentVolumeClaim?.claimName ?? '')) === true,
  );
