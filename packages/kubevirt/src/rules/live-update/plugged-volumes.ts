/**
 * What an instance's status says of the volumes that may be plugged into its guest, up to where the agent of its node
 * takes over, and which Pods hold them: pure. The agent plugs what has an `attachPodUID`, and says Ready; it takes out
 * what is Detaching, and says UnMountedFromPod; only then no Pod holds it any more, and its entry goes.
 *
 * One Pod holds all volumes whose claims are bound; when that is to hold others, the next one runs before it goes. A claim
 * that is not bound has a Pod of its own, which it may wait for: it keeps none of the others waiting.
 */
import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyClaim, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { type AttachedVolume, attachedVolumes, attachmentPodName, holdsVolumes } from '../launcher/attachment-pod.ts';
import { isHotpluggable } from '../machine/plug-room.ts';
import { type PlugState, volumeDetaching } from './disk-changes.ts';
import { isMoving } from './pending-changes.ts';

type VolumeStatus = NonNullable<NonNullable<VirtualMachineInstance['status']>['volumeStatus']>[number];

export interface PluggedVolumesInput {
  readonly vmi: ReadonlyVmi;
  /** The Pod its guest runs in. */
  readonly launcher: ReadonlyPod;
  /** All of its launchers, ended ones too. */
  readonly launchers: readonly ReadonlyPod[];
  /** Pods that say they hold volumes for it. */
  readonly attachments: readonly ReadonlyPod[];
  readonly claimOf: (name: string) => ReadonlyClaim | undefined;
}

export interface PluggedVolumes {
  /** As it is to be. */
  readonly volumeStatus: readonly VolumeStatus[];
  /** Pods to make, each by its volumes. */
  readonly attach: readonly (readonly AttachedVolume[])[];
  /** Pods to delete. */
  readonly detach: readonly ReadonlyPod[];
}

/** Phases before the agent has anything to do with a volume. */
const BEFORE_AGENT: readonly (string | undefined)[] = [undefined, '', 'Pending', 'Bound'];
/** Phases that are decided anew when the volume is in the spec: it has gone, or has not come. */
const NOT_THERE: readonly (string | undefined)[] = [...BEFORE_AGENT, 'UnMountedFromPod'];

/** A Pod that holds volumes of the instance. */
interface Holder {
  readonly pod: ReadonlyPod;
  readonly volumes: readonly AttachedVolume[];
}

/** Decides on all of them at once. */
export function pluggedVolumes(input: PluggedVolumesInput): PluggedVolumes {
  const { vmi, launcher, launchers, attachments, claimOf } = input;
  const before = new Map((vmi.status?.volumeStatus ?? []).map((one) => [one.name, one as VolumeStatus]));
  const after = new Map(before);
  const holders = attachments.flatMap((pod): Holder[] => {
    const volumes = attachedVolumes(pod, vmi, launchers);
    return volumes ? [{ pod, volumes }] : [];
  });
  // Those of a launcher that the guest has left, and those that have ended, hold nothing any more.
  const fresh = holders.filter(({ pod }) => !hasEnded(pod) && isOwnedBy(pod, launcher.metadata.uid));
  const wanted = (vmi.spec.volumes ?? []).filter(isHotpluggable).map((volume) => ({
    name: volume.name,
    claimName: volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name ?? '',
  }));
  const inSpec = new Set(wanted.map(({ name }) => name));
  const leaving = [...before.values()].filter(({ name, hotplugVolume }) => hotplugVolume && !inSpec.has(name));
  const isWithAgent = ({ phase }: VolumeStatus): boolean => !NOT_THERE.includes(phase);

  const isOwn = (claimName: string): boolean =>
    launcher.spec.volumes?.some((one) => one.persistentVolumeClaim?.claimName === claimName) ?? false;
  const ready = wanted.flatMap(({ name, claimName }): (AttachedVolume & { readonly isBound: boolean })[] => {
    const claim = claimOf(claimName);
    if (!claim || isDeleting(claim) || isOwn(claimName)) return [];
    return [{ name, claimName, isBlock: claim.spec?.volumeMode === 'Block', isBound: claim.status?.phase === 'Bound' }];
  });
  // What the guest still has is held on to.
  const kept = leaving
    .filter(isWithAgent)
    .flatMap(({ name }) => fresh.flatMap((one) => volumeNamed(one, name) ?? []).slice(0, 1));
  const joint = [...ready.filter(({ isBound }) => isBound), ...kept];
  const sets = [...(joint.length > 0 ? [joint] : []), ...ready.filter(({ isBound }) => !isBound).map((one) => [one])];
  const names = new Set(sets.map((volumes) => attachmentPodName(launcher, volumes)));
  const { attach, detach } = changes({ vmi, launcher, holders, fresh, sets });

  for (const { name, claimName } of wanted) {
    const own = isOwn(claimName);
    const claim = claimOf(claimName);
    const known = before.get(name);
    const isOpen = !own && NOT_THERE.includes(known?.phase);
    const pods = fresh.filter((one) => volumeNamed(one, name)?.claimName === claimName).map(({ pod }) => pod);
    const next = pods.find(({ metadata }) => names.has(metadata.name ?? ''));
    // One that the guest has stays with the Pod it has until the next one runs; one that comes waits for that.
    const last = isOpen ? undefined : pods.find((pod) => pod !== next && holdsVolumes(pod));
    const holder = own ? launcher : next && holdsVolumes(next) ? next : (last ?? next);
    const isHeld = holder !== undefined && holdsVolumes(holder) && (own || !isOpen || claim?.status?.phase === 'Bound');
    const state = isOpen ? (isHeld ? attached(holder, name) : waiting(claimName, claim)) : undefined;
    const hotplugVolume = {
      ...(holder?.metadata.name !== undefined && { attachPodName: holder.metadata.name }),
      ...(isHeld && { attachPodUID: holder.metadata.uid ?? '' }),
    };
    after.set(name, { target: '', ...known, name, ...state, hotplugVolume });
  }
  for (const known of leaving) {
    const { name, phase } = known;
    if (isWithAgent(known)) {
      if (phase !== 'Detaching') after.set(name, { ...known, ...volumeDetaching(name) });
      continue;
    }
    const pod = holders.find((one) => volumeNamed(one, name))?.pod;
    if (pod === undefined) after.delete(name);
    else after.set(name, { ...known, ...detached(pod, name) });
  }
  const volumeStatus = [...after.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return { volumeStatus, attach, detach };
}

/** The Pods to make and to delete so that there is one for each of the sets. */
function changes({
  vmi,
  launcher,
  holders,
  fresh,
  sets,
}: {
  readonly vmi: ReadonlyVmi;
  readonly launcher: ReadonlyPod;
  readonly holders: readonly Holder[];
  readonly fresh: readonly Holder[];
  readonly sets: readonly (readonly AttachedVolume[])[];
}): Pick<PluggedVolumes, 'attach' | 'detach'> {
  if (vmi.status?.phase !== 'Running' || isMoving(vmi)) return { attach: [], detach: [] };
  const known = new Map(fresh.map((one) => [one.pod.metadata.name, one]));
  const wanted = sets.map((volumes) => ({ volumes, holder: known.get(attachmentPodName(launcher, volumes)) }));
  const isReplaced = ({ volumes }: Holder): boolean =>
    wanted.every(
      ({ volumes: next, holder }) =>
        (holder && holdsVolumes(holder.pod)) || !next.some(({ name }) => volumes.some((one) => one.name === name)),
    );
  return {
    attach: wanted.filter(({ holder }) => !holder).map(({ volumes }) => volumes),
    detach: holders
      .filter((one) => !fresh.includes(one) || (!wanted.some(({ holder }) => holder === one) && isReplaced(one)))
      .map(({ pod }) => pod)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined),
  };
}

const volumeNamed = ({ volumes }: Holder, name: string): AttachedVolume | undefined =>
  volumes.find((one) => one.name === name);

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

function waiting(name: string, claim: ReadonlyClaim | undefined): PlugState {
  if (!claim) return { phase: 'Pending', reason: 'FailedPvcNotFound', message: `PVC ${name} not found` };
  const phase = claim.status?.phase ?? 'Pending';
  return {
    phase: phase === 'Bound' ? 'Bound' : 'Pending',
    reason: 'PVCNotReady',
    message: `PVC is in phase ${phase}`,
  };
}
