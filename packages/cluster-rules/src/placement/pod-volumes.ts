/**
 * What the claims of a Pod say about where it may go (kube-scheduler's VolumeBinding): volumes are reached from some
 * nodes only, and claims that wait for their first Pod get their volumes where it goes. Pure, as the other filters.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '@coracle/apimachinery/types/types';
import { claimsOfPod, classNameOf, holdingOf } from '@coracle/apimachinery/types/volume-claims';
import { BIND_COMPLETED, SELECTED_NODE } from '../storage/claim-step.ts';
import { matchVolume, reachesVolume } from '../storage/match-volume.ts';
import { POOL_DRIVER, POOL_LABEL } from '../storage/pool-names.ts';
import { matchesTerm } from './node-affinity.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;
type Volume = DeepReadonly<PersistentVolume>;

export interface VolumeFacts {
  readonly claimNamed: (namespace: string, name: string) => Claim | undefined;
  readonly volumeNamed: (name: string) => Volume | undefined;
  readonly classNamed: (name: string) => DeepReadonly<StorageClass> | undefined;
  readonly volumes: () => readonly Volume[];
}

/** A claim that waits for its first Pod, and what it gets on one node: a volume that is there, or a new one. */
export interface ClaimChoice {
  readonly claim: Claim;
  readonly volume: Volume | undefined;
}

export interface PodVolumes {
  /** Why no node takes the Pod now. */
  readonly refusal: string | undefined;
  /** Why this node does not. */
  refusalOf(node: DeepReadonly<Node>): string | undefined;
  /** What is to be given to the claims that wait, when the Pod goes to this node; empty when none does. */
  choices(node: DeepReadonly<Node>): readonly ClaimChoice[];
}

const NONE: PodVolumes = { refusal: undefined, refusalOf: () => undefined, choices: () => [] };
const NO_PROVISIONER = 'kubernetes.io/no-provisioner';
const CONFLICT = "node(s) didn't match PersistentVolume's node affinity";
const NOT_FOUND = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE = 'node(s) did not have enough free storage';
const GONE = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)';
const UNBOUND = 'pod has unbound immediate PersistentVolumeClaims';

/** Reads the claims of the Pod. */
export function podVolumes(pod: DeepReadonly<Pod>, facts: VolumeFacts): PodVolumes {
  const names = claimsOfPod(pod);
  if (names.length === 0) return NONE;
  const refused = (refusal: string): PodVolumes => ({ ...NONE, refusal });
  const bound: (Volume | undefined)[] = [];
  const waiting: Claim[] = [];
  for (const name of new Set(names)) {
    const claim = facts.claimNamed(pod.metadata.namespace ?? '', name);
    if (!claim) return refused(`persistentvolumeclaim "${name}" not found`);
    if (isDeleting(claim)) return refused(`persistentvolumeclaim "${name}" is being deleted`);
    const volumeName = claim.spec?.volumeName ?? '';
    if (claim.status?.phase === 'Lost')
      return refused(`persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${volumeName}"`);
    if (volumeName !== '' && claim.metadata.annotations?.[BIND_COMPLETED] !== undefined) {
      const volume = facts.volumeNamed(volumeName);
      bound.push(volume && holdingOf(volume, claim) === 'bound' ? volume : undefined);
    } else if (volumeName === '' && waitsForPod(claim, facts)) waiting.push(claim);
    else return refused(UNBOUND);
  }
  return {
    refusal: undefined,
    refusalOf(node) {
      if (bound.some((volume) => volume === undefined)) return GONE;
      if (bound.some((volume) => !reachesVolume(node, volume!))) return CONFLICT;
      const plan = planFor(waiting, node, facts);
      return typeof plan === 'string' ? plan : undefined;
    },
    choices(node) {
      const plan = planFor(waiting, node, facts);
      return typeof plan === 'string' ? [] : plan;
    },
  };
}

const waitsForPod = (claim: Claim, { classNamed }: VolumeFacts): boolean =>
  classNamed(classNameOf(claim))?.volumeBindingMode === 'WaitForFirstConsumer';

/** A choice for each claim, no volume twice; a reason when there is none for some claim. */
function planFor(claims: readonly Claim[], node: DeepReadonly<Node>, facts: VolumeFacts): ClaimChoice[] | string {
  const taken = new Set<string>();
  const choices: ClaimChoice[] = [];
  for (const claim of claims) {
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (selected !== undefined && selected !== node.metadata.name) return NOT_FOUND;
    const volume = selected === undefined ? matchVolume(claim, facts.volumes(), { node, taken }) : undefined;
    if (volume) {
      taken.add(volume.metadata.name ?? '');
      choices.push({ claim, volume });
      continue;
    }
    const storageClass = facts.classNamed(classNameOf(claim));
    if (!storageClass || storageClass.provisioner === NO_PROVISIONER) return NOT_FOUND;
    if (!allows(storageClass, node)) return NOT_FOUND;
    if (storageClass.provisioner === POOL_DRIVER && node.metadata.labels?.[POOL_LABEL] === undefined) return NO_SPACE;
    choices.push({ claim, volume: undefined });
  }
  return choices;
}

interface TopologyTerm {
  readonly matchLabelExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[];
}

/** True when the node is one of those where the class makes volumes. */
function allows(storageClass: DeepReadonly<StorageClass>, node: DeepReadonly<Node>): boolean {
  const { allowedTopologies: terms = [] } = storageClass as { allowedTopologies?: readonly TopologyTerm[] };
  if (terms.length === 0) return true;
  return terms.some(({ matchLabelExpressions = [] }) =>
    matchesTerm(node, {
      matchExpressions: matchLabelExpressions.map(({ key, values }) => ({ key, operator: 'In', values: [...values] })),
    }),
  );
}
