/**
 * What the VMI controller writes into an instance's status, from the instance and its Pod: pure. It owns the phase
 * until Scheduled; the agent owns it from there, and this controller only steps in when the Pod is gone.
 */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isConditionTrue, isDeleting, isFinal } from '@coracle/apimachinery/meta/object-state';
import type { PodCondition, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { DATA_VOLUMES_READY } from '../../rules/data-volume/readiness.ts';
import { DUPLICATE_FIRMWARE_UUID, FIRMWARE_UUID_IN_USE } from '../../rules/identity/shared-uuids.ts';
import {
  EVICTION_SOURCE_ANNOTATION,
  MIGRATION_TARGET_NODE_LABEL,
  NODE_NAME_LABEL,
  UNPAUSED_GATE,
} from '../../rules/launcher/launcher-labels.ts';
import { overheadText } from '../../rules/launcher/launcher-resources.ts';
import { CHANGE_CONDITIONS, isMoving, pendingChanges } from '../../rules/live-update/pending-changes.ts';
import type { PodSizing } from '../../rules/machine-defaults/cluster-config.ts';

type Status = NonNullable<VirtualMachineInstance['status']>;
type Condition = NonNullable<Status['conditions']>[number];

export interface SyncProblem {
  readonly reason: string;
  readonly message: string;
}

export interface VmiStatusInput {
  /** Edited in place. */
  readonly vmi: VirtualMachineInstance;
  /** The one the guest runs in, or will. */
  readonly pod: ReadonlyPod | undefined;
  /** Launcher Pods of the instance beside it: of a migration, or ended. */
  readonly otherPods?: readonly ReadonlyPod[];
  /** The pod was made in this pass or is expected: not seen yet, not missing either. */
  readonly podExpected: boolean;
  readonly problem: SyncProblem | undefined;
  /** A claim the instance needs is not there. */
  readonly missingClaim: string | undefined;
  /** Whether all claims of its DataVolumes are filled; undefined where it names no DataVolume. */
  readonly dataVolumesReady?: boolean | undefined;
  /** Who else has the firmware UUID of an instance without a VirtualMachine; undefined when nobody has. */
  readonly duplicateUuid?: string | undefined;
  /** What a change of the running guest waits for. */
  readonly waiting?: string | undefined;
  readonly sizing: PodSizing;
  readonly now: number;
}

/** As node-lifecycle writes it on Pods of a node that is silent. */
const NODE_NOT_READY = 'NodeNotReady';
/** Why the containers of a Pod wait, where somebody must do something about it: images, volumes, and what an agent met. */
const WAITING_PROBLEMS = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'FailedCreatePodSandBox',
  'FailedMount',
  'FailedResume',
  'FailedStart',
]);

/** True when the Pod's compute container runs: the node holds everything the guest needs. Whether it is ready the guest's own probe says. */
const isComputeRunning = (pod: ReadonlyPod): boolean =>
  pod.status?.phase === 'Running' &&
  (pod.status.containerStatuses?.some((c) => c.name === 'compute' && (c.ready || c.state?.running !== undefined)) ??
    false);

/** Pods by UID with their nodes: those that have one and have not ended. */
const activeBeside = (pods: readonly ReadonlyPod[]): Record<string, string> =>
  Object.fromEntries(
    pods
      .filter((pod) => pod.spec.nodeName && !hasEnded(pod))
      .map((pod) => [pod.metadata.uid ?? '', pod.spec.nodeName ?? '']),
  );

export const claimIsMissing = (namespace: string, name: string): string =>
  `PVC ${namespace}/${name} does not exist, waiting for it to appear`;

/** True when a missing claim has been reported already. */
export const saysClaimIsMissing = (vmi: ReadonlyVmi): boolean =>
  conditionOf(vmi, 'Synchronized')?.reason === 'FailedPvcNotFound';

/** Phases in which the agent writes the phase. */
const isClaimed = (phase: string): boolean => phase === 'Scheduled' || phase === 'Running';

function nextPhase({ vmi, pod, podExpected }: VmiStatusInput): string {
  const phase = vmi.status?.phase ?? '';
  const deleting = isDeleting(vmi);
  if (isFinal(phase)) return phase;
  if (isClaimed(phase))
    return pod === undefined || (hasEnded(pod) && pod.status?.reason === 'NodeLost') ? 'Failed' : phase;
  if (pod === undefined) {
    if (!podExpected) return phase === 'Scheduling' || deleting ? 'Failed' : phase || 'Pending';
    return deleting ? phase || 'Pending' : 'Scheduling';
  }
  if (hasEnded(pod)) return 'Failed';
  if (isComputeRunning(pod)) return 'Scheduled';
  return 'Scheduling';
}

/** Writes phase, node, conditions and the rest. Returns the node-name label the instance must carry, if any. */
export function applyVmiStatus(input: VmiStatusInput): { readonly nodeLabel: string | undefined } {
  const { vmi, pod, now } = input;
  vmi.status ??= {} as Status;
  const status = vmi.status;
  // A struct that Go never leaves out.
  status.guestOSInfo ??= {};
  const before = status.phase ?? '';
  const phase = nextPhase(input);
  if (phase !== before) {
    status.phase = phase as NonNullable<Status['phase']>;
    // An instance that ended before the agent claimed it: its Pod is all that tells why.
    if (phase === 'Failed' && pod?.status?.reason) status.reason = pod.status.reason;
    status.phaseTransitionTimestamps ??= [];
    if (!status.phaseTransitionTimestamps.some((stamp) => stamp.phase === phase))
      status.phaseTransitionTimestamps.push({ phase: status.phase, phaseTransitionTimestamp: formatTime(now) });
  }
  if (pod && !isFinal(phase)) {
    const uid = pod.metadata.uid ?? '';
    const node = pod.spec.nodeName ?? '';
    // Where a Pod that is still being prepared lies is not worth a write of its own.
    const active = { ...activeBeside(input.otherPods ?? []), [uid]: node };
    if (!deepEqual(status.activePods, active) && (phase !== 'Scheduling' || before !== phase))
      status.activePods = active;
    const image = pod.spec.containers[0]?.image;
    if (image && status.launcherContainerImageVersion !== image) status.launcherContainerImageVersion = image;
  }
  if (phase === 'Scheduled' && before !== 'Scheduled' && pod) {
    status.nodeName = pod.spec.nodeName ?? '';
    status.migrationTransport = 'Unix' as NonNullable<Status['migrationTransport']>;
    if (pod.status?.qosClass) status.qosClass = pod.status.qosClass;
  }
  if (pod && !isFinal(phase)) applyMemoryOverhead(vmi, input.sizing);
  const revision = startRevisionOf(vmi);
  if (revision && status.virtualMachineRevisionName !== revision) status.virtualMachineRevisionName = revision;
  applyConditions(input, { before, phase });
  return { nodeLabel: isFinal(phase) || phase === 'Pending' || phase === 'Scheduling' ? undefined : status.nodeName };
}

/** What the launcher takes beside the guest: that of before until a change of its size has come through. */
function applyMemoryOverhead({ spec, status }: VirtualMachineInstance, sizing: PodSizing): void {
  const { memory } = status ?? {};
  const { vcpus, memory: grows } = pendingChanges({ spec, status } as VirtualMachineInstance);
  if (memory?.memoryOverhead !== undefined && (vcpus || grows || isMoving({ status } as VirtualMachineInstance)))
    return;
  const overhead = overheadText(spec, sizing);
  if (memory?.memoryOverhead !== overhead) status!.memory = { ...memory, memoryOverhead: overhead };
}

/** The start revision follows from the owner and the generation it was built from. */
function startRevisionOf(vmi: VirtualMachineInstance): string | undefined {
  const owner = controllerOf(vmi, 'VirtualMachine');
  const generation = vmi.metadata.annotations?.['kubevirt.io/vm-generation'];
  if (vmi.status?.virtualMachineRevisionName) return undefined;
  return owner && generation !== undefined ? `revision-start-vm-${owner.uid}-${generation}` : undefined;
}

function applyConditions(
  input: VmiStatusInput,
  { before, phase }: { readonly before: string; readonly phase: string },
): void {
  const { vmi, pod, now } = input;
  const conditions = new Map<string, Condition>((vmi.status!.conditions ?? []).map((c) => [c.type, c]));
  const set = (type: string, status: 'True' | 'False', reason?: string, message?: string): void => {
    const known = conditions.get(type);
    const isStill = known?.status === status;
    if (isStill && (known.reason ?? '') === (reason ?? '') && (known.message ?? '') === (message ?? '')) return;
    const lastTransitionTime = (isStill && known.lastTransitionTime) || formatTime(now);
    // Upstream writes null where there is no probe time.
    conditions.set(type, {
      type,
      status,
      lastTransitionTime,
      lastProbeTime: null,
      ...(reason && { reason }),
      ...(message && { message }),
    } as unknown as Condition);
  };
  set('Ready', ...readyCondition(pod, phase));

  const problem =
    input.problem ??
    (phase === 'Scheduling' && pod ? waitingProblem(pod) : undefined) ??
    (phase === 'Failed' && !isClaimed(before) && !isFinal(before) && pod ? endProblem(pod) : undefined);
  if (input.missingClaim !== undefined) {
    const message = claimIsMissing(vmi.metadata.namespace ?? '', input.missingClaim);
    set('PodScheduled', 'False', 'Unschedulable', message);
    set('Synchronized', 'False', 'FailedPvcNotFound', message);
  } else if (problem) set('Synchronized', 'False', problem.reason, problem.message);
  // The agent reports its own trouble under the same type once it has claimed the instance.
  else if (!isClaimed(before) && !isFinal(before)) conditions.delete('Synchronized');

  if (input.missingClaim === undefined && phase !== 'Running' && !isFinal(phase)) {
    const scheduled = conditionOf(pod, 'PodScheduled');
    if (scheduled?.status === 'False') set('PodScheduled', 'False', scheduled.reason, scheduled.message);
    else conditions.delete('PodScheduled');
  }
  if (vmi.status!.evacuationNodeName) set('EvictionRequested', 'True', 'EvictionRequested', evictionMessage(vmi));
  // It stays until the note of who asked is gone too: the note is written before the mark, and only what had a mark loses it.
  else if (vmi.metadata.annotations?.[EVICTION_SOURCE_ANNOTATION] === undefined) conditions.delete('EvictionRequested');
  if (input.dataVolumesReady === undefined) conditions.delete(DATA_VOLUMES_READY);
  else if (input.dataVolumesReady)
    set(DATA_VOLUMES_READY, 'True', 'AllDVsReady', "All of the VMI's DVs are bound and not running");
  else set(DATA_VOLUMES_READY, 'False', 'NotAllDVsReady', "Not all of the VMI's DVs are ready");
  if (input.duplicateUuid === undefined) conditions.delete(DUPLICATE_FIRMWARE_UUID);
  else set(DUPLICATE_FIRMWARE_UUID, 'True', FIRMWARE_UUID_IN_USE, input.duplicateUuid);
  const pending = phase === 'Running' ? pendingChanges(vmi) : { vcpus: false, memory: false };
  for (const change of ['vcpus', 'memory'] as const) {
    const type = CHANGE_CONDITIONS[change];
    // One that failed stays: only a restart helps.
    if (conditions.get(type)?.status === 'False') continue;
    if (pending[change]) set(type, 'True', undefined, input.waiting);
    else conditions.delete(type);
  }
  vmi.status!.conditions = [...conditions.values()];
}

/** Who waits for whom: an eviction that nobody acts on must not be a riddle. */
const evictionMessage = ({ spec, status }: VirtualMachineInstance): string =>
  spec.evictionStrategy === 'External'
    ? `VMI is marked for eviction: from node ${status?.evacuationNodeName}, and waits for an outside controller to move or delete it (eviction strategy External)`
    : 'VMI is marked for eviction';

type Ready = readonly [status: 'True' | 'False', reason?: string | undefined, message?: string | undefined];

function readyCondition(pod: ReadonlyPod | undefined, phase: string): Ready {
  if (!pod) return ['False', 'PodNotExists', 'virt-launcher pod has not yet been scheduled'];
  const ready = conditionOf(pod, 'Ready');
  // Of a Pod whose node is silent nothing else is known, also when it is to be deleted.
  const isLost = ready?.reason === NODE_NOT_READY && phase === 'Running';
  if (isDeleting(pod) && !isLost) return ['False', 'PodTerminating', 'virt-launcher pod is terminating'];
  if (phase !== 'Running') return ['False', 'GuestNotRunning', 'Guest VM is not reported as running'];
  if (!ready) return ['False', 'PodConditionMissing', 'virt-launcher pod is missing the Ready condition'];
  return [ready.status === 'True' ? 'True' : 'False', ready.reason, ready.message];
}

/**
 * What the Pod's readiness gate should say: a paused guest is not ready. Undefined where it says so already, or where
 * the Pod has no gate.
 */
export function unpausedCondition(vmi: ReadonlyVmi, pod: ReadonlyPod, now: number): PodCondition | undefined {
  if (!pod.spec.readinessGates?.some((gate) => gate.conditionType === UNPAUSED_GATE)) return undefined;
  const [status, reason, message] = isConditionTrue(vmi, 'Paused')
    ? (['False', 'Paused', 'the virtual machine is paused'] as const)
    : (['True', 'NotPaused', 'the virtual machine is not paused'] as const);
  if (conditionOf(pod, UNPAUSED_GATE)?.status === status) return undefined;
  return { type: UNPAUSED_GATE, status, reason, message, lastTransitionTime: formatTime(now) } as PodCondition;
}

/** Why a Pod ended before it had a guest: a machine that cannot be built, for one. */
const endProblem = ({ status }: ReadonlyPod): SyncProblem | undefined =>
  status?.reason && status.message ? { reason: status.reason, message: status.message } : undefined;

function waitingProblem(pod: ReadonlyPod): SyncProblem | undefined {
  for (const container of [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]) {
    const waiting = container.state?.waiting;
    if (waiting?.reason && WAITING_PROBLEMS.has(waiting.reason))
      return { reason: waiting.reason, message: waiting.message ?? '' };
  }
  return undefined;
}

/**
 * Takes off what named a migration or an eviction that is over: the target's label, by which its agent was notified, and who
 * asked for the eviction. The agents write status only. `labelled`: the node that the label named before this pass.
 */
export function clearMigrationMarks(vmi: VirtualMachineInstance, labelled: string | undefined): void {
  const { labels = {}, annotations = {} } = vmi.metadata;
  const state = vmi.status?.migrationState;
  const isOver = state === undefined || state.completed === true || state.failed === true;
  // The node's own label first: an agent that looks for either must find one of them.
  const isSettled = labels[NODE_NAME_LABEL] === (vmi.status?.nodeName ?? '');
  if (isOver && isSettled && labels[MIGRATION_TARGET_NODE_LABEL] !== undefined) {
    const { [MIGRATION_TARGET_NODE_LABEL]: _, ...rest } = labels;
    vmi.metadata.labels = rest;
  }
  // An eviction may be over before its mark was seen here: then the guest has moved.
  const hasMoved = state?.completed === true && labelled !== vmi.status?.nodeName;
  const wasMarked = hasMoved || conditionOf(vmi, 'EvictionRequested') !== undefined;
  if (!vmi.status?.evacuationNodeName && wasMarked && annotations[EVICTION_SOURCE_ANNOTATION] !== undefined) {
    const { [EVICTION_SOURCE_ANNOTATION]: _, ...rest } = annotations;
    vmi.metadata.annotations = rest;
  }
}
