/**
 * What the agent writes into the status of a VMI from Scheduled on: pure. Each function returns the top-level status
 * fields that change, ready for a merge patch; an empty object means there is nothing to write.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime } from '@coracle/apimachinery/meta/object';
import {
  formatQuantity,
  parseQuantity,
  quantityFromBytes,
  quantityValue,
} from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyVmi, VirtualMachineInstanceStatus, VmCondition } from '@coracle/kubevirt/kinds/kinds';
import { unsupportedReason } from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import { POD_INTERFACE } from '@coracle/kubevirt/rules/launcher/network-attachments';
import { podAddressOf } from '@coracle/kubevirt/rules/launcher/pod-address';
import {
  type PlugState,
  volumeDetaching,
  volumeReady,
  volumeUnmounted,
} from '@coracle/kubevirt/rules/live-update/disk-changes';
import type { DiskPause } from '@coracle/kubevirt/rules/machine/disk-room';
import type { HotMemoryPlan, MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import { type Migratability, migratability } from '@coracle/kubevirt/rules/migration/migratability';
import type { CredentialsState } from '../credentials/keep-credentials.ts';
import type { GuestState } from '../guest/guest.ts';
import type { GuestInterface } from '../guest/guest-agent-facts.ts';
import { guestCondition } from '../guest/run-state.ts';
import type { VmResult } from './vm-result.ts';

type StatusChange = Partial<Record<keyof VirtualMachineInstanceStatus, unknown>>;

/** Upstream has no such case: its handlers always know each other. */
const NO_PEER = 'NodeNotLiveMigratable';
const MEMORY_PLUG_FAILED = 'memory hotplug failed, the VM configuration is not supported';
const LIMIT_REACHED =
  "the disks and logs of the guest have reached its Pod's limit of ephemeral-storage; restart it with a higher limit, or free space within it";
const NO_SPACE = 'the node has no space for the disks; the guest resumes when there is space again';

export interface RunningView {
  /** Why this agent cannot send a guest to another now, if it cannot. */
  readonly peerObstacle?: string | undefined;
  /** This node: an instance that is on another one is not reported on. */
  readonly node: string;
  readonly plan: MachinePlan;
  readonly guest: GuestState;
  readonly address: string;
  /** Declared ports that could not be forwarded, one sentence each. */
  readonly portProblems: readonly string[];
  /** Why the agent has paused the guest, if it has. */
  readonly diskPause?: DiskPause | undefined;
  /** The guest's memory was to be changed and could not be. */
  readonly memoryPlugFailed?: boolean;
  /** Disks that are to come or to go, and what the last try met. */
  readonly plugging?: ReadonlyMap<string, { readonly trouble?: string }>;
  /** How far the guest has what its agent brings it; absent where it brings nothing. */
  readonly credentials?: CredentialsState | undefined;
}

/** The guest counts as running; upstream counts paused ones too. */
const isLive = (state: GuestState['runState']): boolean =>
  ['runs', 'stopped', 'stalled'].includes(guestCondition(state));

/** It stands still until somebody lets it run; before its first step only where that was asked for. */
const isPaused = ({ runState }: GuestState, plan: MachinePlan): boolean =>
  // It stands still for a dump of its memory, and goes on by itself.
  runState !== 'save-vm' && guestCondition(runState) === 'stopped' && (runState !== 'prelaunch' || plan.startPaused);

/** True when the VMI is on this node, or nobody has said where it is. */
const isOn = (vmi: ReadonlyVmi, node: string): boolean =>
  (vmi.status?.nodeName ?? '') === '' || vmi.status?.nodeName === node;

/** Its migration did not come to an end while it ran. */
const isPausedByMonitor = (vmi: ReadonlyVmi): boolean => {
  const state = vmi.status?.migrationState;
  return state?.mode === 'Paused' && state.completed !== true;
};

/** True when the agent owns the phase of this VMI. */
export const isClaimed = (vmi: ReadonlyVmi): boolean =>
  vmi.status?.phase === 'Scheduled' || vmi.status?.phase === 'Running';

/** The changes that make the status tell what the guest is. */
export function runningStatus(vmi: ReadonlyVmi, view: RunningView, now: number): StatusChange {
  const status = vmi.status ?? {};
  if (!isClaimed(vmi) || !isOn(vmi, view.node)) return {};
  const change: StatusChange = {};
  const put = (field: keyof VirtualMachineInstanceStatus, value: unknown): void => {
    if (!deepEqual(status[field], value)) change[field] = value;
  };
  if (status.phase === 'Scheduled') {
    if (!isLive(view.guest.runState)) return {};
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
  } else if (plan.hotMemory)
    put('memory', pluggedMemory(vmi, plan.memoryBytes, plan.hotMemory, view.guest.pluggedBytes));
  put('interfaces', interfacesOf(vmi, view));
  put('volumeStatus', volumesOf(vmi, view));
  const { agentFacts } = view.guest;
  if (agentFacts) {
    put('guestOSInfo', agentFacts.os);
    if (agentFacts.frozen) put('fsFreezeStatus', agentFacts.frozen);
    else if (status.fsFreezeStatus !== undefined) change.fsFreezeStatus = null;
  }
  const { peerObstacle: message } = view;
  const moves = migratability(vmi, message === undefined ? undefined : { reason: NO_PEER, message });
  put('migrationMethod', moves.method);
  put('conditions', conditionsOf(vmi, view, moves, now));
  return change;
}

/** What the guest has been asked to use, and uses, in the words of its spec where they mean the same. */
function pluggedMemory(
  { spec, status }: ReadonlyVmi,
  bootBytes: number,
  { requestedBytes }: HotMemoryPlan,
  pluggedBytes: number | undefined,
): unknown {
  const { memory } = status ?? {};
  const known = [spec.domain.memory?.guest, memory?.guestRequested, memory?.guestCurrent, memory?.guestAtBoot];
  const text = (bytes: number): string => {
    const same = known.find((one) => one !== undefined && quantityValue(parseQuantity(String(one))) === bytes);
    return same === undefined ? formatQuantity(quantityFromBytes(bytes)) : String(same);
  };
  return {
    ...memory,
    guestRequested: text(bootBytes + requestedBytes),
    ...(pluggedBytes !== undefined && { guestCurrent: text(bootBytes + pluggedBytes) }),
  };
}

/**
 * The changes that make the VMI final. `guestless`: UID of a Pod that ends without ever having had a guest. An instance
 * that runs is ended by such a one only where it counts as its active Pod: else another one has the guest.
 */
export function finalStatus(
  vmi: ReadonlyVmi,
  result: VmResult,
  { node, now, guestless }: { readonly node: string; readonly now: number; readonly guestless?: string | undefined },
): StatusChange {
  if (!isClaimed(vmi) || !isOn(vmi, node)) return {};
  if (guestless !== undefined && vmi.status?.phase === 'Running' && vmi.status.activePods?.[guestless] === undefined)
    return {};
  return {
    phase: result.phase,
    phaseTransitionTimestamps: stamps(vmi, result.phase, now),
    ...(result.phase === 'Failed' && { reason: result.reason }),
    conditions: (vmi.status?.conditions ?? []).filter(
      ({ type }) => type !== 'Paused' && type !== 'AgentConnected' && type !== 'DiskFull',
    ),
  };
}

function stamps(vmi: ReadonlyVmi, phase: string, now: number): unknown {
  const before = vmi.status?.phaseTransitionTimestamps ?? [];
  return before.some((stamp) => stamp.phase === phase)
    ? before
    : [...before, { phase, phaseTransitionTimestamp: formatTime(now) }];
}

/**
 * The planned interfaces, with what the guest's agent says of each (matched by MAC), then those that only the guest knows.
 * That of the network of Pods keeps the address of the VM: as behind masquerade, the guest's own leads nowhere.
 */
function interfacesOf(vmi: ReadonlyVmi, { plan, address, guest }: RunningView): unknown {
  const before = vmi.status?.interfaces ?? [];
  const answered = guest.agentFacts?.interfaces ?? [];
  const planned = plan.interfaces.map((nic) => {
    const known = before.find(({ name }) => name === nic.name) ?? {};
    const { interfaceName: _, ipAddress: __, ipAddresses: ___, ...kept } = known;
    const inside = answered.find(({ mac }) => mac === nic.mac.toLowerCase());
    return {
      ...kept,
      name: nic.name,
      mac: nic.mac,
      ...(nic.segment
        ? inside && addressesOf(inside)
        : { ipAddress: podAddressOf(address), ipAddresses: [podAddressOf(address)] }),
      podInterfaceName: nic.segment?.podInterface ?? POD_INTERFACE,
      ...(inside && { interfaceName: inside.name }),
      infoSource: ['domain', ...(inside ? ['guest-agent'] : []), ...(nic.segment ? ['multus-status'] : [])].join(', '),
      queueCount: 1,
      linkState: nic.linkUp ? 'up' : 'down',
    };
  });
  const macs = new Set(plan.interfaces.map(({ mac }) => mac.toLowerCase()));
  const own = answered
    .filter(({ mac }) => !macs.has(mac))
    .map((nic) => ({
      ...(nic.mac !== '' && { mac: nic.mac }),
      ...addressesOf(nic),
      interfaceName: nic.name,
      infoSource: 'guest-agent',
    }));
  return [...planned, ...own];
}

/** The first address is an IPv4 one, if there is any. */
function addressesOf({ addresses }: GuestInterface): { ipAddress?: string; ipAddresses?: string[] } {
  const first = addresses.find(({ type }) => type === 'ipv4') ?? addresses[0];
  return first ? { ipAddress: first.address, ipAddresses: addresses.map((one) => one.address) } : {};
}

/** The target of each disk, and how far those are that may be plugged; entries and fields of others stay. */
function volumesOf(vmi: ReadonlyVmi, { plan, plugging }: RunningView): unknown {
  const before = vmi.status?.volumeStatus ?? [];
  const disks = new Map(plan.disks.filter((disk) => disk.hasVolume).map((disk) => [disk.name, disk]));
  const wanted = new Set((vmi.spec.volumes ?? []).map(({ name }) => name));
  const stateOf = (name: string, phase: string | undefined): PlugState | undefined => {
    const trouble = plugging?.get(name)?.trouble;
    if (disks.get(name)?.hotpluggable) return wanted.has(name) ? volumeReady(name) : volumeDetaching(name, trouble);
    if (disks.has(name)) return undefined;
    if (!wanted.has(name)) return phase === 'Detaching' ? volumeUnmounted(name) : undefined;
    return phase === 'AttachedToNode' && trouble !== undefined
      ? { phase, reason: 'FailedHotplug', message: trouble }
      : undefined;
  };
  const kept = before.map((known) => ({
    ...known,
    target: disks.get(known.name)?.target ?? (known.hotplugVolume ? '' : (known.target ?? '')),
    ...stateOf(known.name, known.phase),
  }));
  const fresh = [...disks.values()].filter(({ name }) => !before.some((known) => known.name === name));
  const all = [...kept, ...fresh.map(({ name, target }) => ({ name, target, ...stateOf(name, undefined) }))];
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function conditionsOf(
  vmi: ReadonlyVmi,
  { plan, guest, portProblems, memoryPlugFailed, diskPause, credentials }: RunningView,
  moves: Migratability,
  now: number,
): unknown {
  const before = vmi.status?.conditions ?? [];
  const conditions = new Map(before.map((condition) => [condition.type, condition as VmCondition]));
  const set = (type: string, status: 'True' | 'False' | 'Unknown', reason: string, message: string): void => {
    const old = conditions.get(type);
    if (old && old.status === status && (old.reason ?? '') === reason && (old.message ?? '') === message) return;
    conditions.set(type, {
      type,
      status,
      lastTransitionTime: (old?.status === status && old.lastTransitionTime) || formatTime(now),
      lastProbeTime: null,
      ...(reason !== '' && { reason }),
      ...(message !== '' && { message }),
    } as unknown as VmCondition);
  };
  for (const [type, obstacle] of [
    ['LiveMigratable', moves.obstacle],
    ['StorageLiveMigratable', moves.storageObstacle],
  ] as const)
    set(type, obstacle ? 'False' : 'True', obstacle?.reason ?? '', obstacle?.message ?? '');
  if (memoryPlugFailed) set('HotMemoryChange', 'False', 'Memory Hotplug Failed', MEMORY_PLUG_FAILED);
  if (!guest.connected) {
    // What was last known of the guest stays; that its agent cannot be asked is said.
    set('AgentConnected', 'Unknown', 'MonitorUnreachable', `QEMU does not answer: ${guest.trouble ?? 'no connection'}`);
    return [...conditions.values()];
  }
  if (guest.agentConnected) set('AgentConnected', 'True', '', '');
  else conditions.delete('AgentConnected');
  const lack = guest.agentFacts && unsupportedReason(vmi.spec, guest.agentFacts.missing);
  if (lack !== undefined) set('AgentVersionNotSupported', 'True', lack, '');
  else if (guest.agentFacts || !guest.agentConnected) conditions.delete('AgentVersionNotSupported');
  if (credentials?.type === 'synchronized') set('AccessCredentialsSynchronized', 'True', '', '');
  if (credentials?.type === 'failed')
    set('AccessCredentialsSynchronized', 'False', credentials.reason, credentials.message);

  const isDiskPaused = diskPause !== undefined && guest.runState === 'paused';
  if (guest.runState === 'io-error' || isDiskPaused)
    set('Paused', 'True', 'PausedIOError', 'VMI was paused, low-level IO error detected');
  else if (guest.runState === 'paused' && isPausedByMonitor(vmi))
    set('Paused', 'True', 'PausedByMigrationMonitor', 'VMI was paused by the migration monitor');
  else if (isPaused(guest, plan)) set('Paused', 'True', 'PausedByUser', 'VMI was paused by user');
  else conditions.delete('Paused');
  if (isDiskPaused && diskPause === 'limit') set('DiskFull', 'True', 'EphemeralStorageLimitReached', LIMIT_REACHED);
  else if (isDiskPaused || (guest.runState === 'io-error' && guest.ioError === 'nospace'))
    set('DiskFull', 'True', 'NoSpaceOnNode', NO_SPACE);
  else conditions.delete('DiskFull');
  if (portProblems.length > 0)
    set('PortsForwarded', 'False', 'PortNotAvailable', portProblems.join('; ').slice(0, 1000));
  else conditions.delete('PortsForwarded');
  return [...conditions.values()];
}
