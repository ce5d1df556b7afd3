/**
 * What the volume controller does next for a volume (pkg/controller/volume/persistentvolume, syncVolume and
 * reclaimVolume): one decision over the volume and its claim, without calls.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { BOUND_BY_CONTROLLER, type ClaimEvent } from './claim-step.ts';
import { modeOf } from './match-volume.ts';

type Volume = DeepReadonly<PersistentVolume>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
const BUILT_IN = 'kubernetes.io/';

export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed';

export type VolumeStep =
  /** Say so in the status; `event` goes with it, and its message is the status's too when it has failed. */
  | { readonly type: 'phase'; readonly phase: VolumePhase; readonly event?: ClaimEvent }
  /** Its claim has taken another volume: be free again. */
  | { readonly type: 'unbind' }
  /** The claim is to take it; that is done with the claim. */
  | { readonly type: 'claim'; readonly event?: ClaimEvent };

/** The volume's claimRef without what binding wrote: all of it, or the uid alone where a user kept it for the claim. */
export function unbound(volume: Volume): Volume {
  const { claimRef, ...spec } = volume.spec ?? {};
  if (volume.metadata.annotations?.[BOUND_BY_CONTROLLER] === undefined) {
    const { uid: _, resourceVersion: __, ...kept } = claimRef ?? {};
    return { ...volume, spec: { ...volume.spec, claimRef: kept } } as Volume;
  }
  const { [BOUND_BY_CONTROLLER]: _, ...annotations } = volume.metadata.annotations;
  return { ...volume, metadata: { ...volume.metadata, annotations }, spec } as Volume;
}

/**
 * Decides for one volume. `claim` is the one its claimRef names, if that exists; one of another uid is another claim.
 */
export function volumeStep(volume: Volume, claim: Claim | undefined): VolumeStep {
  const reference = volume.spec?.claimRef;
  if (!reference || (reference.uid ?? '') === '') return { type: 'phase', phase: 'Available' };
  if (!claim || claim.metadata.uid !== reference.uid) return reclaim(volume);
  const held = claim.spec?.volumeName ?? '';
  if (held === volume.metadata.name) return { type: 'phase', phase: 'Bound' };
  if (held === '') {
    if (modeOf(volume) === modeOf(claim)) return { type: 'claim' };
    const message = `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`;
    return { type: 'claim', event: { type: 'Warning', reason: 'VolumeMismatch', message } };
  }
  // The claim is bound elsewhere. What was made for it alone is of use to nobody.
  const isDynamic = volume.metadata.annotations?.[PROVISIONED_BY] !== undefined;
  if (isDynamic && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') return reclaim(volume);
  return { type: 'unbind' };
}

/** Its claim is gone. Released comes first, so that an external provisioner sees it; a failure is final. */
function reclaim(volume: Volume): VolumeStep {
  const phase = volume.status?.phase;
  if (phase !== 'Released' && phase !== 'Failed') return { type: 'phase', phase: 'Released' };
  if (phase === 'Failed') return { type: 'phase', phase };
  const name = volume.metadata.name ?? '';
  const fail = (reason: string, message: string): VolumeStep => ({
    type: 'phase',
    phase: 'Failed',
    event: { type: 'Warning', reason, message },
  });
  switch (volume.spec?.persistentVolumeReclaimPolicy ?? 'Retain') {
    case 'Retain':
      return { type: 'phase', phase };
    case 'Recycle':
      return fail('VolumeFailedRecycle', 'No recycler plugin found for the volume!');
    case 'Delete': {
      const by = volume.metadata.annotations?.[PROVISIONED_BY] ?? '';
      if (by !== '' && !by.startsWith(BUILT_IN)) return { type: 'phase', phase };
      const why = by === '' ? 'no deletable volume plugin matched' : `no volume plugin matched name: ${by}`;
      return fail('VolumeFailedDelete', `error getting deleter volume plugin for volume "${name}": ${why}`);
    }
    default:
      return fail('VolumeUnknownReclaimPolicy', 'Volume has an unrecognized PersistentVolumeReclaimPolicy');
  }
}
