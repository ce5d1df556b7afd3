/**
 * Whether a guest can be moved while it runs: upstream's conditions LiveMigratable and StorageLiveMigratable with its
 * reasons and words (virt-handler; constraints of the machine first, then its volumes), and the way its disks would go.
 */

import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';

export interface Obstacle {
  readonly reason: string;
  readonly message: string;
}

export interface Migratability {
  /** The first thing that keeps the guest where it is. */
  readonly obstacle: Obstacle | undefined;
  /** The same for a move of its storage: all of them in one sentence. */
  readonly storageObstacle: Obstacle | undefined;
  readonly method: 'BlockMigration' | 'LiveMigration';
}

const BRIDGE_ANNOTATION = 'kubevirt.io/allow-pod-bridge-network-live-migration';
const SHARED = 'live migration requires that all PVCs must be shared (using ReadWriteMany access mode)';

/** Decides on an instance. `agent` is what keeps the node's agent from it, if anything does. */
export function migratability(vmi: ReadonlyVmi, agent?: Obstacle): Migratability {
  const machine = machineObstacles(vmi);
  const { obstacle, block } = volumes(vmi);
  const all = machine.map(({ reason, message }) => `${reason}: ${message}`).join(', ');
  return {
    obstacle: machine[0] ?? obstacle ?? agent,
    storageObstacle: machine.length > 0 ? { reason: 'NotMigratable', message: all } : undefined,
    method: block ? 'BlockMigration' : 'LiveMigration',
  };
}

function machineObstacles(vmi: ReadonlyVmi): Obstacle[] {
  const { domain, networks } = vmi.spec;
  const { devices } = domain;
  const obstacles: Obstacle[] = [];
  const add = (reason: string, message: string): void => void obstacles.push({ reason, message });
  const pod = networks?.find((network) => network.pod !== undefined);
  const nic = devices.interfaces?.find(({ name }) => name === pod?.name);
  const annotated = Object.hasOwn(vmi.metadata.annotations ?? {}, BRIDGE_ANNOTATION);
  const has = (name: string): boolean => nic !== undefined && Object.hasOwn(nic, name);
  const fits = has('masquerade') || has('passt') || has('passtBinding') || (annotated && has('bridge'));
  if ((devices.interfaces?.length ?? 0) > 0 && !fits)
    add(
      'InterfaceNotLiveMigratable',
      `cannot migrate VMI which does not use masquerade, bridge with ${BRIDGE_ANNOTATION} VM annotation or a migratable plugin to connect to the pod network`,
    );
  if ((devices.hostDevices?.length ?? 0) > 0 || (devices.gpus?.length ?? 0) > 0)
    add('HostDeviceNotLiveMigratable', 'VMI uses a PCI host devices');
  const security = domain.launchSecurity as Readonly<Record<string, unknown>> | undefined;
  if (security?.['sev'] !== undefined || security?.['snp'] !== undefined) add('SEVNotLiveMigratable', 'VMI uses SEV');
  if (security?.['tdx'] !== undefined) add('TDXNotLiveMigratable', 'VMI uses TDX');
  const passthrough = domain.features?.hypervPassthrough;
  if (passthrough && passthrough.enabled !== false)
    add('HypervPassthroughNotLiveMigratable', 'VMI uses hyperv passthrough');
  return obstacles;
}

function volumes(vmi: ReadonlyVmi): { readonly obstacle?: Obstacle; readonly block: boolean } {
  const known = new Map((vmi.status?.volumeStatus ?? []).map((status) => [status.name, status]));
  const moved = (vmi.status?.migratedVolumes ?? []) as readonly { readonly volumeName?: string }[];
  const migrated = new Set(moved.map(({ volumeName }) => volumeName));
  let block = migrated.size > 0;
  const stuck = (message: string) => ({ block: true, obstacle: { reason: 'DisksNotLiveMigratable', message } });
  for (const volume of vmi.spec.volumes ?? []) {
    const info = known.get(volume.name)?.persistentVolumeClaimInfo;
    const shared = info?.accessModes?.includes('ReadWriteMany') === true;
    const claim = volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name;
    if (migrated.has(volume.name)) continue;
    if (claim !== undefined) {
      if (!info) return stuck(`cannot migrate VMI: Unable to determine if PVC ${claim} is shared, ${SHARED}`);
      if (!shared) return stuck(`cannot migrate VMI: PVC ${claim} is not shared, ${SHARED}`);
    } else if (volume.hostDisk) {
      if (info && !shared) return stuck(`cannot migrate VMI: PVC ${info.claimName ?? ''} is not shared, ${SHARED}`);
      if (!info && volume.hostDisk.shared !== true) return stuck('cannot migrate VMI with non-shared HostDisk');
    } else block = true;
  }
  return { block };
}
