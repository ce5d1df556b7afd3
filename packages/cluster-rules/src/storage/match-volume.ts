/**
 * Which volume a claim gets (component-helpers/storage/volume FindMatchingVolume, and the volume controller's index by
 * access modes): one that is kept for it, else the smallest that fits, of those with the fewest access modes.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import {
  EVERYTHING,
  fromLabelSelectorObject,
  type LabelSelectorObject,
  matchesLabels,
} from '@coracle/apimachinery/selector/label-selector';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { attributesClassOf, classNameOf, holdingOf } from '@coracle/apimachinery/types/volume-claims';
import { matchesNodeSelector } from '../placement/node-affinity.ts';

type Volume = DeepReadonly<PersistentVolume>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

export interface MatchOptions {
  /** The scheduler asks for this node: only volumes that can be reached from it. */
  readonly node?: DeepReadonly<Node>;
  /** Volumes that were given to other claims of the same Pod. */
  readonly taken?: ReadonlySet<string>;
  /** The claim waits for its first Pod: without a node it gets only a volume that is kept for it. */
  readonly waitsForPod?: boolean;
}

const bytesOf = (amount: unknown): number => (amount === undefined ? 0 : quantityToBytes(String(amount)));
export const capacityOf = ({ spec }: Volume): number => bytesOf(spec?.capacity?.['storage']);
export const requestOf = ({ spec }: Claim): number => bytesOf(spec?.resources?.requests?.['storage']);
export const modeOf = ({ spec }: Volume | Claim): 'Filesystem' | 'Block' => spec?.volumeMode ?? 'Filesystem';

/** True when its node affinity lets the node reach it. */
export const reachesVolume = (node: DeepReadonly<Node>, { spec }: Volume): boolean => {
  const required = spec?.nodeAffinity?.required;
  return required === undefined || matchesNodeSelector(node, required);
};

const offersModes = (volume: Volume, claim: Claim): boolean => {
  const offered = new Set(volume.spec?.accessModes ?? []);
  return (claim.spec?.accessModes ?? []).every((mode) => offered.has(mode));
};

/** The volume for the claim among `volumes`; undefined when there is none. */
export function matchVolume(claim: Claim, volumes: readonly Volume[], options: MatchOptions = {}): Volume | undefined {
  const { node, taken, waitsForPod = false } = options;
  const wanted = requestOf(claim);
  const selector = claim.spec?.selector
    ? fromLabelSelectorObject(claim.spec.selector as LabelSelectorObject)
    : EVERYTHING;
  const possible = volumes.filter(
    (volume) =>
      holdingOf(volume, claim) !== 'other' &&
      !taken?.has(volume.metadata.name ?? '') &&
      capacityOf(volume) >= wanted &&
      modeOf(volume) === modeOf(claim) &&
      attributesClassOf(volume) === attributesClassOf(claim) &&
      !isDeleting(volume) &&
      offersModes(volume, claim),
  );
  const reaches = (volume: Volume): boolean => node === undefined || reachesVolume(node, volume);
  const kept = possible.filter((volume) => volume.spec?.claimRef !== undefined).sort(byFit)[0];
  if (kept) return reaches(kept) ? kept : undefined;
  if (waitsForPod && node === undefined) return undefined;
  return possible
    .filter(
      (volume) =>
        volume.status?.phase === 'Available' &&
        classNameOf(volume) === classNameOf(claim) &&
        matchesLabels(selector, volume.metadata.labels ?? {}) &&
        reaches(volume),
    )
    .sort(byFit)[0];
}

/** Fewest access modes, then smallest, then by name: the same answer whatever the order of the list. */
const byFit = (a: Volume, b: Volume): number =>
  new Set(a.spec?.accessModes).size - new Set(b.spec?.accessModes).size ||
  capacityOf(a) - capacityOf(b) ||
  ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1);
