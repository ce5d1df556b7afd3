/**
 * What the volume controller does next for a claim (pkg/controller/volume/persistentvolume, syncClaim): one decision
 * over what is known, without calls. Words of events are upstream's: people search for them.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '@coracle/apimachinery/types/types';
import { classNameOf, holdingOf, mismatchOf, namesNoClass } from '@coracle/apimachinery/types/volume-claims';
import { defaultClassOf } from './default-class.ts';
import { matchVolume } from './match-volume.ts';

type Volume = DeepReadonly<PersistentVolume>;
type Claim = DeepReadonly<PersistentVolumeClaim>;

export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
export const STORAGE_PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner';
/** Provisioners of Kubernetes itself: none of them is built in here. */
const BUILT_IN = 'kubernetes.io/';

export interface ClaimEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export type ClaimStep =
  /** Make volume and claim each other's. */
  | { readonly type: 'bind'; readonly volume: Volume }
  /** Ask an external provisioner for a volume. */
  | { readonly type: 'provision'; readonly provisioner: string; readonly event: ClaimEvent }
  /** The claim names no class, and by now there is a default one. */
  | { readonly type: 'set-class'; readonly name: string }
  | { readonly type: 'pending'; readonly event?: ClaimEvent }
  | { readonly type: 'lost'; readonly event: ClaimEvent };

export interface ClaimFacts {
  /** All volumes; looked at only for a claim that names none. */
  readonly volumes: () => readonly Volume[];
  readonly volumeNamed: (name: string) => Volume | undefined;
  readonly classNamed: (name: string) => DeepReadonly<StorageClass> | undefined;
  readonly classes: () => readonly DeepReadonly<StorageClass>[];
  /** Pods without a node that use the claim, by name. */
  readonly waitingPods: () => readonly string[];
}

const event = (type: ClaimEvent['type'], reason: string, message: string): ClaimEvent => ({ type, reason, message });
const pending = (event?: ClaimEvent): ClaimStep => ({ type: 'pending', ...(event && { event: event }) });
const lost = (reason: string, message: string): ClaimStep => ({
  type: 'lost',
  event: event('Warning', reason, message),
});

/** Decides for one claim. */
export function claimStep(claim: Claim, facts: ClaimFacts): ClaimStep {
  if (claim.metadata.annotations?.[BIND_COMPLETED] !== undefined) return boundStep(claim, facts);
  return (claim.spec?.volumeName ?? '') === '' ? searchStep(claim, facts) : namedStep(claim, facts);
}

function boundStep(claim: Claim, { volumeNamed }: ClaimFacts): ClaimStep {
  const name = claim.spec?.volumeName ?? '';
  if (name === '')
    return lost('ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!');
  const volume = volumeNamed(name);
  if (!volume) return lost('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
  const reference = volume.spec?.claimRef;
  if (!reference || reference.uid === claim.metadata.uid) return { type: 'bind', volume };
  return lost('ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly');
}

function namedStep(claim: Claim, { volumeNamed }: ClaimFacts): ClaimStep {
  const volume = volumeNamed(claim.spec?.volumeName ?? '');
  if (!volume) return pending();
  const name = volume.metadata.name ?? '';
  switch (holdingOf(volume, claim)) {
    case 'free': {
      const mismatch = mismatchOf(volume, claim);
      if (mismatch === undefined) return { type: 'bind', volume };
      return pending(event('Warning', 'VolumeMismatch', `Cannot bind to requested volume "${name}": ${mismatch}`));
    }
    case 'reserved':
    case 'bound':
      return { type: 'bind', volume };
    case 'other':
      return pending(event('Warning', 'FailedBinding', `volume "${name}" already bound to a different claim.`));
  }
}

function searchStep(claim: Claim, facts: ClaimFacts): ClaimStep {
  const className = classNameOf(claim);
  const storageClass = className === '' ? undefined : facts.classNamed(className);
  const waitsForPod = storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
  const volume = matchVolume(claim, facts.volumes(), { waitsForPod });
  if (volume) return { type: 'bind', volume };
  if (namesNoClass(claim)) {
    const name = defaultClassOf(facts.classes())?.metadata.name;
    if (name !== undefined) return { type: 'set-class', name };
  }
  if (waitsForPod && claim.metadata.annotations?.[SELECTED_NODE] === undefined) return pending(waiting(facts));
  if (className === '')
    return pending(
      event('Normal', 'FailedBinding', 'no persistent volumes available for this claim and no storage class is set'),
    );
  if (!storageClass)
    return pending(event('Warning', 'ProvisioningFailed', `storageclass.storage.k8s.io "${className}" not found`));
  const { provisioner } = storageClass;
  if (provisioner.startsWith(BUILT_IN))
    return pending(event('Warning', 'ProvisioningFailed', `no volume plugin matched name: ${provisioner}`));
  const message = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
  return { type: 'provision', provisioner, event: event('Normal', 'ExternalProvisioning', message) };
}

function waiting({ waitingPods }: ClaimFacts): ClaimEvent {
  const pods = waitingPods();
  if (pods.length === 0)
    return event('Normal', 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding');
  const names = pods.length === 1 ? `pod ${pods[0]}` : `pods ${pods.join(',')}`;
  return event('Normal', 'WaitForPodScheduled', `waiting for ${names} to be scheduled`);
}
