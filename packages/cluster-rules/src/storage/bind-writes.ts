/**
 * The four writes that make a volume and a claim each other's, in the order in which they are stored: the volume's spec,
 * its status, the claim's spec, its status. The volume's claimRef is what counts: of two claims that want one volume the
 * server refuses the second by its revision, and whoever stops halfway is found again by the volume.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { attributesClassOf } from '@coracle/apimachinery/types/volume-claims';
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from './claim-step.ts';

type Volume = DeepReadonly<PersistentVolume>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

/** The volume with the claim in its claimRef; the same object when it is there. */
export function withClaim(volume: Volume, claim: Claim): Volume {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const held = volume.spec?.claimRef;
  if (held?.uid === uid && held?.namespace === namespace && held?.name === name) return volume;
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion };
  const annotations = held
    ? volume.metadata.annotations
    : { ...volume.metadata.annotations, [BOUND_BY_CONTROLLER]: 'yes' };
  return {
    ...volume,
    metadata: { ...volume.metadata, ...(annotations && { annotations }) },
    spec: { ...volume.spec, claimRef: { ...held, ...claimRef } },
  } as Volume;
}

/** The volume in that phase; `message` says why it has failed. The same object when it is there. */
export function withPhase(volume: Volume, phase: string, message?: string): Volume {
  if (volume.status?.phase === phase) return volume;
  const { message: _, ...status } = volume.status ?? {};
  return { ...volume, status: { ...status, phase, ...(message !== undefined && { message }) } } as Volume;
}

/** The claim with the volume's name, and the mark that its binding is complete. */
export function withVolume(claim: Claim, volumeName: string): Claim {
  const chosen = claim.spec?.volumeName !== volumeName;
  const annotations = {
    ...claim.metadata.annotations,
    ...(chosen && { [BOUND_BY_CONTROLLER]: 'yes' }),
    [BIND_COMPLETED]: 'yes',
  };
  return { ...claim, metadata: { ...claim.metadata, annotations }, spec: { ...claim.spec, volumeName } };
}

/** The claim's status when it is bound: what the volume offers. Its size is taken over once; later it grows by itself. */
export function boundStatus(claim: Claim, volume: Volume): Claim {
  const becomes = claim.status?.phase !== 'Bound';
  const attributes = attributesClassOf(volume);
  const status = {
    ...claim.status,
    phase: 'Bound' as const,
    ...(volume.spec?.accessModes && { accessModes: volume.spec.accessModes }),
    ...((becomes || claim.status?.capacity === undefined) &&
      volume.spec?.capacity && { capacity: volume.spec.capacity }),
    ...(becomes && attributes !== '' && { currentVolumeAttributesClassName: attributes }),
  };
  return { ...claim, status };
}

/** The status of a claim without a volume. */
export function unboundStatus(claim: Claim, phase: 'Pending' | 'Lost'): Claim {
  const { accessModes: _, capacity: __, currentVolumeAttributesClassName: ___, ...rest } = claim.status ?? {};
  return { ...claim, status: { ...rest, phase } };
}
