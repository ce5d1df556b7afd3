/**
 * What an instance's status says of the volumes that may be plugged into its guest, up to where the agent of its node
 * takes over, and which Pods hold them: pure. The agent plugs what has an `attachPodUID`, and says Ready; it takes out
 * what is Detaching, and says UnMountedFromPod; only then the Pod goes, and the volume's entry with it.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim, Pod } from '@coracle/apimachinery/types/types';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { attachedVolume, holdsVolumes } from '../launcher/attachment-pod.ts';
import { isPodFinal } from '../launcher/launcher-pods.ts';
import { isHotpluggable } from '../machine/plug-room.ts';
import { type PlugState, volumeDetaching } from './disk-changes.ts';
import { isMoving } from './pending-changes.ts';

type ReadonlyPod = DeepReadonly<Pod>;
type VolumeStatus = NonNullable<NonNullable<VirtualMachineInstance['status']>['volumeStatus']>[number];

export interface PluggedVolumesInput {
  readonly vmi: DeepReadonly<VirtualMachineInstance>;
  /** The Pod its guest runs in. */
  readonly launcher: ReadonlyPod;
  /** All of its launchers, ended ones too. */
  readonly launchers: readonly ReadonlyPod[];
  /** Pods that say they hold volumes for it. */
  readonly attachments: readonly ReadonlyPod[];
  readonly claimOf: (name: string) => DeepReadonly<PersistentVolumeClaim> | undefined;
}

export interface PluggedVolumes {
  /** As it is to be. */
  readonly volumeStatus: readonly VolumeStatus[];
  /** Pods to make. */
  readonly attach: readonly { readonly name: string; readonly claimName: string; readonly isBlock: boolean }[];
  /** Pods to delete. */
  readonly detach: readonly ReadonlyPod[];
}

/** Phases before the agent has anything to do with a volume. */
const BEFORE_AGENT: readonly (string | undefined)[] = [undefined, '', 'Pending', 'Bound'];
/** Phases that are decided anew when the volume is in the spec: it has gone, or has not come. */
const NOT_THERE: readonly (string | undefined)[] = [...BEFORE_AGENT, 'UnMountedFromPod'];

/** Decides on all of them at once. */
export function pluggedVolumes(input: PluggedVolumesInput): PluggedVolumes {
  const { vmi, launcher, launchers, attachments, claimOf } = input;
  const before = new Map((vmi.status?.volumeStatus ?? []).map((one) => [one.name, one as VolumeStatus]));
  const after = new Map(before);
  const attach: { name: string; claimName: string; isBlock: boolean }[] = [];
  const detach = new Set<ReadonlyPod>();
  const podsOf = new Map<string, ReadonlyPod[]>();
  for (const pod of attachments) {
    const volume = attachedVolume(pod, vmi, launchers);
    if (volume !== undefined) podsOf.set(volume, [...(podsOf.get(volume) ?? []), pod]);
  }
  const isSettled = vmi.status?.phase === 'Running' && !isMoving(vmi);

  const wanted = (vmi.spec.volumes ?? []).filter(isHotpluggable);
  for (const volume of wanted) {
    const { name } = volume;
    const claimName = volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name ?? '';
    const own = launcher.spec.volumes?.some((one) => one.persistentVolumeClaim?.claimName === claimName);
    const pods = podsOf.get(name) ?? [];
    // Those of a launcher that the guest has left, and those that have ended, hold nothing any more.
    const stale = pods.filter((pod) => isPodFinal(pod) || own || !isOwnedBy(pod, launcher));
    if (isSettled) for (const pod of stale) detach.add(pod);
    const fresh = pods.find((pod) => !stale.includes(pod));
    const holder = own ? launcher : fresh;
    const claim = claimOf(claimName);
    if (!holder && isSettled && claim && claim.metadata.deletionTimestamp === undefined)
      attach.push({ name, claimName, isBlock: claim.spec?.volumeMode === 'Block' });
    const known = before.get(name);
    const isHeld = holder !== undefined && holdsVolumes(holder);
    const isOpen = !own && NOT_THERE.includes(known?.phase);
    const state = isOpen ? (isHeld ? attached(holder, name) : waiting(claimName, claim)) : undefined;
    const hotplugVolume = {
      ...(holder?.metadata.name !== undefined && { attachPodName: holder.metadata.name }),
      ...(isHeld && { attachPodUID: holder.metadata.uid ?? '' }),
    };
    after.set(name, { target: '', ...known, name, ...state, hotplugVolume });
  }

  const inSpec = new Set(wanted.map(({ name }) => name));
  for (const [name, known] of before) {
    if (inSpec.has(name) || !known.hotplugVolume) continue;
    const pods = podsOf.get(name) ?? [];
    if (!BEFORE_AGENT.includes(known.phase) && known.phase !== 'UnMountedFromPod') {
      if (known.phase !== 'Detaching') after.set(name, { ...known, ...volumeDetaching(name) });
      continue;
    }
    for (const pod of pods) detach.add(pod);
    if (pods.length === 0) after.delete(name);
    else after.set(name, { ...known, ...detached(pods[0], name) });
  }
  const volumeStatus = [...after.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return { volumeStatus, attach, detach: [...detach].filter((pod) => pod.metadata.deletionTimestamp === undefined) };
}

const isOwnedBy = (pod: ReadonlyPod, { metadata }: ReadonlyPod): boolean =>
  pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) ?? false;

const attached = (pod: ReadonlyPod, name: string): PlugState => ({
  phase: 'AttachedToNode',
  reason: 'SuccessfulCreate',
  message: `Created hotplug attachment pod ${pod.metadata.name}, for volume ${name}`,
});

const detached = (pod: ReadonlyPod | undefined, name: string) => ({
  phase: 'UnMountedFromPod',
  reason: 'SuccessfulDelete',
  message: `Deleted hotplug attachment pod ${pod?.metadata.name}, for volume ${name}`,
});

function waiting(name: string, claim: DeepReadonly<PersistentVolumeClaim> | undefined): PlugState {
  if (!claim) return { phase: 'Pending', reason: 'FailedPvcNotFound', message: `PVC ${name} not found` };
  const phase = claim.status?.phase ?? 'Pending';
  return {
    phase: phase === 'Bound' ? 'Bound' : 'Pending',
    reason: 'PVCNotReady',
    message: `PVC is in phase ${phase}`,
  };
}
