/** Devices that follow from what is written: a disk for every volume, an interface on the pod network. */
import type { VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import type { ClusterConfig } from './cluster-config.ts';

/** The settings of the cluster contradict what would have to be filled in. */
export class DefaultsError extends Error {
  override name = 'DefaultsError';
}

/** Adds a disk for each volume that neither a disk nor a file system names. Changes `spec`. */
export function addDisksForVolumes(spec: VirtualMachineInstanceSpec): void {
  const { devices } = spec.domain;
  const named = new Set([...(devices.disks ?? []), ...(devices.filesystems ?? [])].map(({ name }) => name));
  const missing = (spec.volumes ?? []).filter(({ name, memoryDump }) => memoryDump === undefined && !named.has(name));
  if (missing.length === 0) return;
  devices.disks = [...(devices.disks ?? []), ...missing.map(({ name }) => ({ name }))];
}

/**
 * Adds the network `default` and its interface when nothing is listed and nobody opted out. Changes `spec`.
 * @throws DefaultsError when the cluster's default binding is one that it does not permit
 */
export function addDefaultNetwork(spec: VirtualMachineInstanceSpec, config: ClusterConfig): void {
  const { devices } = spec.domain;
  if (devices.autoattachPodInterface === false) return;
  if ((spec.networks?.length ?? 0) > 0 || (devices.interfaces?.length ?? 0) > 0) return;
  const isMasquerade = config.defaultNetworkInterface === 'masquerade';
  if (!isMasquerade && !config.permitBridgeInterfaceOnPodNetwork)
    throw new DefaultsError(
      'Bridge interface is not enabled in kubevirt-config: set configuration.network.defaultNetworkInterface to masquerade, or permitBridgeInterfaceOnPodNetwork to true',
    );
  devices.interfaces = [{ name: 'default', ...(isMasquerade ? { masquerade: {} } : { bridge: {} }) }];
  spec.networks = [{ name: 'default', pod: {} }];
}
