/**
 * Whose a PersistentVolume is: its `claimRef` says, whatever a claim says of itself in `spec.volumeName`
 * (pkg/volume/persistentvolume/util, IsVolumeBoundToClaim, and the binder's syncClaim).
 */
import type { DeepReadonly } from '../meta/object.ts';
import { quantityToBytes } from '../quantity/quantity.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from './types.ts';

type Volume = DeepReadonly<PersistentVolume>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

/**
 * - `free`: no claim has it;
 * - `reserved`: kept for a claim of that namespace and name, whichever comes (no uid yet);
 * - `bound`: it is this very claim's;
 * - `other`: it is another's, which may have had the same name.
 */
export type Holding = 'free' | 'reserved' | 'bound' | 'other';

/** What the volume is to the claim. */
export function holdingOf(volume: Pick<Volume, 'spec'>, claim: Pick<Claim, 'metadata'>): Holding {
  const reference = volume.spec?.claimRef;
  if (!reference) return 'free';
  const { namespace, name, uid } = claim.metadata;
  if (reference.namespace !== namespace || reference.name !== name) return 'other';
  if ((reference.uid ?? '') === '') return 'reserved';
  return reference.uid === uid ? 'bound' : 'other';
}

const LEGACY_CLASS = 'volume.beta.kubernetes.io/storage-class';

/** Name of its class: the annotation of old goes first; '' for none. */
export const classNameOf = ({ metadata, spec }: Volume | Claim): string =>
  metadata.annotations?.[LEGACY_CLASS] ?? spec?.storageClassName ?? '';

/** Name of its VolumeAttributesClass; '' for none. */
export const attributesClassOf = ({ spec }: Volume | Claim): string => spec?.volumeAttributesClassName ?? '';

/** True when the claim never said which class it wants, not even that it wants none. */
export const namesNoClass = ({ metadata, spec }: Claim): boolean =>
  metadata.annotations?.[LEGACY_CLASS] === undefined && (spec?.storageClassName ?? undefined) === undefined;

/** Why the claim cannot have the volume that it asks for, in the binder's words; undefined when it can. */
export function mismatchOf(volume: Volume, claim: Claim): string | undefined {
  const [have, want] = [volume.spec, claim.spec];
  const bytes = (amount: unknown): number => (amount === undefined ? 0 : quantityToBytes(String(amount)));
  if (volume.metadata.deletionTimestamp !== undefined)
    return `the volume is marked for deletion "${volume.metadata.name}"`;
  if (bytes(have?.capacity?.['storage']) < bytes(want?.resources?.requests?.['storage']))
    return 'requested PV is too small';
  if (classNameOf(volume) !== classNameOf(claim)) return 'storageClassName does not match';
  if (attributesClassOf(volume) !== attributesClassOf(claim)) return 'volumeAttributesClassName does not match';
  if ((have?.volumeMode ?? 'Filesystem') !== (want?.volumeMode ?? 'Filesystem')) return 'incompatible volumeMode';
  const offered = new Set(have?.accessModes ?? []);
  if (!(want?.accessModes ?? []).every((mode) => offered.has(mode))) return 'incompatible accessMode';
  return undefined;
}

/** Names of the claims a Pod uses, those made for its ephemeral volumes included. */
export const claimsOfPod = (pod: DeepReadonly<Pod>): string[] =>
  (pod.spec.volumes ?? []).flatMap((volume) => {
    const { persistentVolumeClaim, ephemeral, name } = volume as {
      name: string;
      persistentVolumeClaim?: { claimName: string };
      ephemeral?: object;
    };
    if (persistentVolumeClaim) return [persistentVolumeClaim.claimName];
    return ephemeral ? [`${pod.metadata.name}-${name}`] : [];
  });
