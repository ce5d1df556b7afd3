/**
 * The object graph of a virtual machine or an instance, as upstream draws it: same nodes, same order. It is drawn from
 * what the machine says; only the launcher Pod and the claim with its firmware state are looked up.
 */

import type { ReadonlyClaim, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { currentStateClaim, needsBackendStorage } from '../backend-storage/backend-storage.ts';
import { DOMAIN_ANNOTATION } from '../launcher/launcher-labels.ts';
import { type GraphKind, graphNode, type ObjectGraphNode } from './graph-node.ts';

type InstanceSpec = ReadonlyVmi['spec'];

/** What was looked up in the namespace of the machine. */
export interface MachineFacts {
  /** The Pods labelled as launchers, in the order of the list. */
  readonly launchers: readonly ReadonlyPod[];
  /** The claims labelled as this machine's state; asked for only where `hasStateClaim`. */
  readonly stateClaims: readonly ReadonlyClaim[];
}

/** Whether a machine keeps firmware state in a claim of its own. */
export const hasStateClaim = ({ spec }: ReadonlyVm): boolean =>
  spec.template?.spec !== undefined && needsBackendStorage(spec.template.spec);

/**
 * The graph of a virtual machine: its instance and launcher Pod once created, instance type and preference with their
 * revisions, credentials, volumes, networks. Upstream fails while the claim for the firmware state is not there yet; here
 * the rest is drawn.
 */
export function buildMachineGraph(vm: ReadonlyVm, { launchers, stateClaims }: MachineFacts): ObjectGraphNode {
  const key = keyOf(vm);
  const spec = vm.spec.template?.spec;
  const children: ObjectGraphNode[] = [];
  if (vm.status?.created)
    children.push(graphNode('VirtualMachineInstance', key, { children: launcherNodes(key, launchers) }));
  children.push(...sourceNodes(vm.spec.instancetype, vm.status?.instancetypeRef, key.namespace));
  children.push(...sourceNodes(vm.spec.preference, vm.status?.preferenceRef, key.namespace));
  if (spec !== undefined) {
    const claim = hasStateClaim(vm) ? stateClaimOf(stateClaims) : undefined;
    children.push(...specNodes(spec, key.namespace, claim?.metadata.name));
  }
  return graphNode('VirtualMachine', key, { children });
}

/** The graph of an instance: its launcher Pod, credentials, volumes, networks. */
export function buildInstanceGraph(vmi: ReadonlyVmi, launchers: MachineFacts['launchers']): ObjectGraphNode {
  const key = keyOf(vmi);
  const claim = needsBackendStorage(vmi.spec) ? currentStateClaim(vmi) : undefined;
  return graphNode('VirtualMachineInstance', key, {
    children: [...launcherNodes(key, launchers), ...specNodes(vmi.spec, key.namespace, claim)],
  });
}

interface Key {
  readonly namespace: string;
  readonly name: string;
}

const keyOf = ({ metadata: { namespace = '', name = '' } }: ReadonlyVm | ReadonlyVmi): Key => ({ namespace, name });

function launcherNodes({ namespace, name }: Key, launchers: MachineFacts['launchers']): ObjectGraphNode[] {
  const launcher = launchers.find(
    ({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.kind === 'VirtualMachineInstance' && owner.name === name) ||
      metadata.annotations?.[DOMAIN_ANNOTATION] === name,
  );
  return launcher ? [graphNode('Pod', { namespace, name: launcher.metadata.name ?? '' })] : [];
}

/** The only one labelled, even one that is going; of several the newest that stays. */
function stateClaimOf(claims: MachineFacts['stateClaims']): ReadonlyClaim | undefined {
  if (claims.length < 2) return claims[0];
  const age = ({ metadata }: ReadonlyClaim): string => metadata.creationTimestamp ?? '';
  return claims
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .reduce<ReadonlyClaim | undefined>(
      (newest, claim) => (newest === undefined || age(claim) > age(newest) ? claim : newest),
      undefined,
    );
}

/** Kinds of sources by their lower-case names, which upstream compares; a matcher without a kind gets no node. */
const SOURCE_KINDS: ReadonlyMap<string, GraphKind> = new Map(
  (
    [
      'VirtualMachineInstancetype',
      'VirtualMachineClusterInstancetype',
      'VirtualMachinePreference',
      'VirtualMachineClusterPreference',
    ] as const
  ).map((kind) => [kind.toLowerCase(), kind]),
);

/** An instance type or preference, and its revision beside it. */
function sourceNodes(
  matcher: ReadonlyVm['spec']['instancetype'] | ReadonlyVm['spec']['preference'],
  status: NonNullable<ReadonlyVm['status']>['instancetypeRef'],
  namespace: string,
): ObjectGraphNode[] {
  if (matcher === undefined) return [];
  const nodes: ObjectGraphNode[] = [];
  const kind = SOURCE_KINDS.get((matcher.kind ?? '').toLowerCase());
  if (kind !== undefined) {
    const isOfCluster = kind.startsWith('VirtualMachineCluster');
    nodes.push(graphNode(kind, { namespace: isOfCluster ? '' : namespace, name: matcher.name ?? '' }, OPTIONAL));
  }
  // The status, once there is one, even where it names no revision.
  const revision = status === undefined ? matcher.revisionName : status.controllerRevisionRef?.name;
  if (revision) nodes.push(graphNode('ControllerRevision', { namespace, name: revision }));
  return nodes;
}

const OPTIONAL = { optional: true };

/** Credentials, volumes with the claim of the firmware state behind them, networks. */
function specNodes(spec: InstanceSpec, namespace: string, stateClaim: string | undefined): ObjectGraphNode[] {
  const at = (kind: GraphKind, name: string | undefined): ObjectGraphNode[] =>
    name === undefined ? [] : [graphNode(kind, { namespace, name })];
  return [
    ...(spec.accessCredentials ?? []).flatMap(({ sshPublicKey, userPassword }) => {
      const secret = sshPublicKey?.source.secret ?? userPassword?.source.secret;
      return secret ? at('Secret', secret.secretName) : [];
    }),
    ...(spec.volumes ?? []).flatMap((volume) => volumeNodes(volume, at)),
    ...at('PersistentVolumeClaim', stateClaim),
    ...(spec.networks ?? []).flatMap(({ multus }) => networkNodes(multus?.networkName, namespace)),
  ];
}

type Volume = NonNullable<InstanceSpec['volumes']>[number];

function volumeNodes(
  volume: Volume,
  at: (kind: GraphKind, name: string | undefined) => ObjectGraphNode[],
): readonly ObjectGraphNode[] {
  const { dataVolume, persistentVolumeClaim, configMap, secret, serviceAccount } = volume;
  if (dataVolume)
    return at('DataVolume', dataVolume.name).map((node) => ({
      ...node,
      children: at('PersistentVolumeClaim', dataVolume.name),
    }));
  if (persistentVolumeClaim) return at('PersistentVolumeClaim', persistentVolumeClaim.claimName);
  if (configMap) return at('ConfigMap', configMap.name);
  if (secret) return at('Secret', secret.secretName);
  if (serviceAccount) return at('ServiceAccount', serviceAccount.serviceAccountName);
  const cloudInit = volume.cloudInitNoCloud ?? volume.cloudInitConfigDrive;
  return [...at('Secret', cloudInit?.secretRef?.name), ...at('Secret', cloudInit?.networkDataSecretRef?.name)];
}

/** A network by name, or by namespace and name. */
function networkNodes(network: string | undefined, namespace: string): ObjectGraphNode[] {
  if (!network) return [];
  const parts = network.split('/');
  const key = parts.length === 2 ? { namespace: parts[0]!, name: parts[1]! } : { namespace, name: network };
  return [graphNode('NetworkAttachmentDefinition', key, OPTIONAL)];
}
