/**
 * What the agent writes into the status of a VMI from Scheduled on: pure. Each function returns the top-level status
 * fields that change, ready for a merge patch; an empty object means there is nothing to write.
 */
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kinds.ts';
import type { VirtualMachineInstanceStatus, VmCondition } from '../../api/kinds/kubevirt/status.ts';
import { type DeepReadonly, formatTime } from '../../api/meta/object.ts';
import type { MachinePlan } from '../../domain/machine/machine-plan.ts';
import type { GuestState } from './guest.ts';
import { sameJson } from './pod-status.ts';
import type { VmResult } from './vm-result.ts';

type Vmi = DeepReadonly<VirtualMachineInstance>;
type StatusChange = Partial<Record<keyof VirtualMachineInstanceStatus, unknown>>;

export interface RunningView {
  readonly plan: MachinePlan;
  readonly guest: GuestState;
  readonly address: string;
  /** Declared ports that could not be forwarded, one sentence each. */
  readonly portProblems: readonly string[];
}

/** Run states in which the guest counts as running; upstream counts paused ones too. */
const RUNNING = new Set(['running', 'paused', 'io-error', 'suspended', 'watchdog', 'prelaunch', 'save-vm', 'debug']);

/** True when the agent owns the phase of this VMI. */
export const isClaimed = (vmi: Vmi): boolean => vmi.status?.phase === 'Scheduled' || vmi.status?.phase === 'Running';

/** The changes that make the status tell what the guest is. */
export function runningStatus(vmi: Vmi, view: RunningView, now: number): StatusChange {
  const status = vmi.status ?? {};
  if (!isClaimed(vmi)) return {};
  const change: StatusChange = {};
  const put = (field: keyof VirtualMachineInstanceStatus, value: unknown): void => {
    if (!sameJson(status[field], value)) change[field] = value;
  };
  if (status.phase === 'Scheduled') {
    if (!RUNNING.has(view.guest.runState)) return {};
    put('phase', 'Running');
    put('phaseTransitionTimestamps', stamps(vmi, 'Running', now));
  }
  const { plan } = view;
  put('machine', { type: plan.machine.type });
  const { sockets, cores, threads } = plan.cpu;
  put('currentCPUTopology', { cores, sockets, threads });
  if (!status.memory?.guestAtBoot) {
    const { memory, resources } = vmi.spec.domain;
    const amount = String(memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory']);
    put('memory', { ...status.memory, guestAtBoot: amount, guestCurrent: amount, guestRequested: amount });
  }
  put('interfaces', interfacesOf(vmi, view));
  put('volumeStatus', volumesOf(vmi, plan));
  put('conditions', conditionsOf(vmi, view, now));
  return change;
}

/** The changes that make the VMI final. */
export function finalStatus(vmi: Vmi, result: VmResult, now: number): StatusChange {
  if (!isClaimed(vmi)) return {};
  return {
    phase: result.phase,
    phaseTransitionTimestamps: stamps(vmi, result.phase, now),
    ...(result.phase === 'Failed' && { reason: result.reason }),
    conditions: (vmi.status?.conditions ?? []).filter(
      ({ type }) => type !== 'Paused' && type !== 'AgentConnected' && type !== 'DiskFull',
    ),
  };
}

function stamps(vmi: Vmi, phase: string, now: number): unknown {
  const before = vmi.status?.phaseTransitionTimestamps ?? [];
  return before.some((stamp) => stamp.phase === phase)
    ? before
    : [...before, { phase, phaseTransitionTimestamp: formatTime(now) }];
}

function interfacesOf(vmi: Vmi, { plan, address }: RunningView): unknown {
  const before = vmi.status?.interfaces ?? [];
  return plan.interfaces.map((nic, index) => ({
    // What a guest agent told of the interface stays.
    ...before.find((known) => known.name === nic.name),
    name: nic.name,
    mac: nic.mac,
    // Only the first interface has the address of the VM.
    ...(index === 0 && { ipAddress: address, ipAddresses: [address], podInterfaceName: 'eth0' }),
    infoSource: 'domain',
    queueCount: 1,
    linkState: nic.linkUp ? 'up' : 'down',
  }));
}

/** The target of each disk; entries and fields of others stay. */
function volumesOf(vmi: Vmi, plan: MachinePlan): unknown {
  const before = vmi.status?.volumeStatus ?? [];
  const targets = new Map(plan.disks.filter((disk) => disk.hasVolume).map((disk) => [disk.name, disk.target]));
  const kept = before.map((known) => ({ ...known, target: targets.get(known.name) ?? known.target ?? '' }));
  const fresh = [...targets].filter(([name]) => !before.some((known) => known.name === name));
  const all = [...kept, ...fresh.map(([name, target]) => ({ name, target }))];
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function conditionsOf(vmi: Vmi, { plan, guest, portProblems }: RunningView, now: number): unknown {
  const before = vmi.status?.conditions ?? [];
  const conditions = new Map<string, VmCondition>(
    before.map((condition) => [condition.type, condition as VmCondition]),
  );
  const set = (type: string, status: 'True' | 'False' | 'Unknown', reason: string, message: string): void => {
    const old = conditions.get(type);
    if (old && old.status === status && (old.reason ?? '') === reason && (old.message ?? '') === message) return;
    const lastTransitionTime =
      old?.status === status && old.lastTransitionTime ? old.lastTransitionTime : formatTime(now);
    conditions.set(type, {
      type,
      status,
      lastTransitionTime,
      lastProbeTime: null,
      ...(reason !== '' && { reason }),
      ...(message !== '' && { message }),
    } as unknown as VmCondition);
  };
  const migratable = migratability(vmi);
  set('LiveMigratable', 'False', migratable.reason, migratable.message);
  if (!guest.connected) {
    // What was last known of the guest stays; that its agent cannot be asked is said.
    set('AgentConnected', 'Unknown', 'MonitorUnreachable', `QEMU does not answer: ${guest.trouble ?? 'no connection'}`);
    return [...conditions.values()];
  }
  if (guest.agentConnected) set('AgentConnected', 'True', '', '');
  else conditions.delete('AgentConnected');

  if (guest.runState === 'io-error')
    set('Paused', 'True', 'PausedIOError', 'VMI was paused, low-level IO error detected');
  else if (guest.runState === 'paused' || (guest.runState === 'prelaunch' && plan.startPaused))
    set('Paused', 'True', 'PausedByUser', 'VMI was paused by user');
  else conditions.delete('Paused');
  if (guest.runState === 'io-error' && guest.ioError === 'nospace')
    set(
      'DiskFull',
      'True',
      'NoSpaceOnNode',
      'the node has no room for the disks; the guest goes on when there is room again',
    );
  else conditions.delete('DiskFull');
  if (portProblems.length > 0)
    set('PortsForwarded', 'False', 'PortNotAvailable', portProblems.join('; ').slice(0, 1000));
  return [...conditions.values()];
}

/** This agent moves no guests yet; upstream's own reasons come first where they apply. */
function migratability(vmi: Vmi): { reason: string; message: string } {
  const volumes = vmi.spec.volumes ?? [];
  const local = volumes.find((volume) => volume.persistentVolumeClaim ?? volume.dataVolume ?? volume.hostDisk);
  if (local) return { reason: 'DisksNotLiveMigratable', message: `volume ${local.name} is local to the node` };
  return { reason: 'NodeNotLiveMigratable', message: 'this node agent does not move running guests' };
}
