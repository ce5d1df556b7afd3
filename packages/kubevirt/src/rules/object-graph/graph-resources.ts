/** The resource behind each kind of an object graph: how its objects are read. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import {
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  RESOURCE_CLAIMS,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '@coracle/apimachinery/types/resource-types';
import { VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kinds/kinds.ts';
import {
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINE_EXPORTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_INSTANCETYPES,
  VIRTUAL_MACHINE_PREFERENCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import type { GraphKind } from './graph-node.ts';

const custom = (group: string, version: string, resource: string, kind: string): ResourceType<KubeObject> => ({
  group,
  version,
  resource,
  kind,
  namespaced: true,
});

/** Addresses that a network keeps for a machine, labelled with its name. Not every server has them. */
export const IPAM_CLAIMS: ResourceType<KubeObject> = custom('k8s.cni.cncf.io', 'v1alpha1', 'ipamclaims', 'IPAMClaim');

/** Label of an IPAMClaim: the machine. */
export const IPAM_MACHINE_LABEL = 'kubevirt.io/vm';

export const GRAPH_RESOURCES: Readonly<Record<GraphKind, ResourceType<KubeObject>>> = {
  VirtualMachine: VIRTUAL_MACHINES,
  VirtualMachineInstance: VIRTUAL_MACHINE_INSTANCES,
  Pod: PODS,
  VirtualMachineInstancetype: VIRTUAL_MACHINE_INSTANCETYPES,
  VirtualMachineClusterInstancetype: VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VirtualMachinePreference: VIRTUAL_MACHINE_PREFERENCES,
  VirtualMachineClusterPreference: VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  ControllerRevision: CONTROLLER_REVISIONS,
  ConfigMap: CONFIG_MAPS,
  Secret: SECRETS,
  ServiceAccount: SERVICE_ACCOUNTS,
  DataVolume: custom('cdi.kubevirt.io', 'v1beta1', 'datavolumes', 'DataVolume'),
  PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIMS,
  NetworkAttachmentDefinition: NETWORK_ATTACHMENT_DEFINITIONS,
  PersistentVolume: PERSISTENT_VOLUMES,
  VirtualMachineSnapshot: VIRTUAL_MACHINE_SNAPSHOTS,
  VirtualMachineSnapshotContent: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VirtualMachineRestore: VIRTUAL_MACHINE_RESTORES,
  VolumeSnapshot: VOLUME_SNAPSHOTS,
  VirtualMachineBackup: VIRTUAL_MACHINE_BACKUPS,
  VirtualMachineBackupTracker: VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VirtualMachineExport: VIRTUAL_MACHINE_EXPORTS,
  VirtualMachineClone: VIRTUAL_MACHINE_CLONES,
  IPAMClaim: IPAM_CLAIMS,
  ResourceClaim: RESOURCE_CLAIMS,
  ResourceClaimTemplate: custom('resource.k8s.io', 'v1', 'resourceclaimtemplates', 'ResourceClaimTemplate'),
};

const KINDS_BY_RESOURCE: ReadonlyMap<string, GraphKind> = new Map(
  Object.entries(GRAPH_RESOURCES).map(([kind, { group, resource }]) => [`${group}/${resource}`, kind as GraphKind]),
);

/** The kind of a resource; undefined for what no graph has. */
export const graphKindOf = ({
  group,
  resource,
}: {
  readonly group: string;
  readonly resource: string;
}): GraphKind | undefined => KINDS_BY_RESOURCE.get(`${group}/${resource}`);
