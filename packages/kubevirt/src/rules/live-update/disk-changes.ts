/** Which disks of a running guest are to come and to go, from what its instance says. */
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { MachinePlan } from '../machine/machine-plan.ts';
import { isHotpluggable } from '../machine/plug-room.ts';

/** Names of disks. */
export interface DiskChanges {
  readonly plug: readonly string[];
  readonly unplug: readonly string[];
}

/** A volume comes once a Pod of this node holds its claim, by which the node may read it; it goes when the spec has none. */
export function diskChanges({ spec, status }: ReadonlyVmi, { disks }: Pick<MachinePlan, 'disks'>): DiskChanges {
  const has = new Set(disks.filter(({ hasVolume }) => hasVolume).map(({ name }) => name));
  const isHeld = (name: string): boolean =>
    (status?.volumeStatus?.find((one) => one.name === name)?.hotplugVolume?.attachPodUID ?? '') !== '';
  const wanted = new Set((spec.volumes ?? []).map(({ name }) => name));
  return {
    plug: (spec.volumes ?? [])
      .filter((volume) => isHotpluggable(volume) && !has.has(volume.name) && isHeld(volume.name))
      .map(({ name }) => name),
    unplug: disks
      .filter(({ name, hasVolume, hotpluggable }) => hotpluggable && hasVolume && !wanted.has(name))
      .map(({ name }) => name),
  };
}

/** How far a volume is that may be plugged: `volumeStatus[].phase`. */
export type PlugPhase =
  | 'Pending'
  | 'Bound'
  | 'AttachedToNode'
  | 'MountedToPod'
  | 'Ready'
  | 'Detaching'
  | 'UnMountedFromPod';

/** A phase with its reason and message. */
export interface PlugState {
  readonly phase: PlugPhase;
  readonly reason: string;
  readonly message: string;
}

/** The guest has the disk. */
export const volumeReady = (name: string): PlugState => ({
  phase: 'Ready',
  reason: 'VolumeReady',
  message: `Successfully attach hotplugged volume ${name} to VM`,
});

/** The node has opened the volume, and the guest does not have it yet. */
export const volumeMounted = (name: string): PlugState => ({
  phase: 'MountedToPod',
  reason: 'VolumeMountedToPod',
  message: `Volume ${name} has been mounted in virt-launcher pod`,
});

/** The guest has it no more, and nor has the node. */
export const volumeUnmounted = (name: string): PlugState => ({
  phase: 'UnMountedFromPod',
  reason: 'VolumeUnMountedFromPod',
  message: `Volume ${name} has been unmounted from virt-launcher pod`,
});

/** The guest is to give it back. `why`: what it waits for. */
export const volumeDetaching = (name: string, why?: string): PlugState => ({
  phase: 'Detaching',
  reason: 'VolumeDetaching',
  message: why ?? `Volume ${name} is taken from the guest`,
});
