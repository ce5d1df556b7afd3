/**
 * Processors and memory for a running guest: what its instance is to have, and its launcher Pod has been given, is
 * plugged in. Also on the target of a migration, once the guest is here: the Pod there was made for what is to come.
 */
import { KUBEVIRTS } from '@coracle/kubevirt/kinds/kinds';
import { FAIL_MEMORY_HOTPLUG_HOOK } from '@coracle/kubevirt/rules/launcher/functional-test-hooks';
import { type NextPlug, nextPlug } from '@coracle/kubevirt/rules/live-update/next-plug';
import { hasPendingCondition, pendingChanges } from '@coracle/kubevirt/rules/live-update/pending-changes';
import { podSizingOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import { HOT_MEMORY } from '../../qemu/argv.ts';
import type { HotpluggableCpu } from '../../qmp/commands.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import { hasHook } from '../launcher/functional-test-hooks.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { keepRecord, type VmRecord } from '../launcher/vm-record.ts';
import type { Guest } from './guest.ts';

/** Plugs what may be plugged now. False when it has to be tried again; it throws only with the end of the agent. */
export async function updateGuest(launcher: LauncherState, guest: Guest): Promise<boolean> {
  const { environment, record, pod, vmi } = launcher;
  if (!record || !pod || !vmi || record.migration || launcher.isDeleting() || !guest.state.connected) return true;
  if (vmi.status?.phase !== 'Running' || vmi.status.nodeName !== environment.nodeName) return true;
  const pending = pendingChanges(vmi);
  // Without its mark the change is not yet known to those who make room for it.
  if (!(pending.vcpus || pending.memory) || !hasPendingCondition(vmi)) return true;
  try {
    const { items } = await environment.client.list(KUBEVIRTS, { signal: environment.signal });
    const plug = nextPlug(vmi, pod, { plan: record.plan, sizing: podSizingOf(items[0]) });
    refuse(launcher, plug);
    if (plug.sockets !== undefined) await plugSockets(launcher, guest, plug.sockets);
    if (plug.requestedBytes !== undefined) {
      if (await hasHook(launcher, FAIL_MEMORY_HOTPLUG_HOOK))
        failMemory(launcher, 'simulated failure of memory hotplug');
      else await requestMemory(launcher, guest, plug.requestedBytes);
    }
    return true;
  } catch (error) {
    environment.signal.throwIfAborted();
    const message = (error as Error).message;
    launcher.log.warn('guest not updated', { error: message });
    if (launcher.plugTrouble !== message) launcher.event('Warning', 'FailedHotplug', message);
    launcher.plugTrouble = message;
    return false;
  }
}

/** What the machine has no room for: processors wait for a restart, memory is said to have failed. */
function refuse(launcher: LauncherState, { impossible }: NextPlug): void {
  const text = impossible?.vcpus;
  if (text !== undefined && launcher.plugTrouble !== text) {
    launcher.plugTrouble = text;
    launcher.event('Warning', 'FailedHotplug', text);
    launcher.changed();
  }
  if (impossible?.memory !== undefined) failMemory(launcher, impossible.memory);
}

function failMemory(launcher: LauncherState, why: string): void {
  if (launcher.memoryPlugFailed) return;
  launcher.memoryPlugFailed = true;
  launcher.event('Warning', 'FailedHotplug', why);
  launcher.changed();
}

async function plugSockets(launcher: LauncherState, guest: Guest, sockets: number): Promise<void> {
  // What is plugged already is seen in QEMU itself: an earlier agent may have ended in the middle.
  const places = await guest.qmp().execute('query-hotpluggable-cpus');
  const wanted = places.filter((place) => place['qom-path'] === undefined && axis(place, 'socket-id') < sockets);
  for (const place of wanted.sort(inOrder)) {
    const id = `vcpu-${AXES.map((name) => axis(place, name)).join('-')}`;
    await guest.qmp().execute('device_add', { driver: place.type, id, ...place.props });
  }
  const { plan } = launcher.record as VmRecord;
  await keep(launcher, { ...plan, cpu: { ...plan.cpu, sockets } });
  const count = sockets * plan.cpu.cores * plan.cpu.threads;
  launcher.event('Normal', 'VCPUsPlugged', `The guest was given processors: it has ${count} now.`);
}

async function requestMemory(launcher: LauncherState, guest: Guest, requestedBytes: number): Promise<void> {
  const path = `/machine/peripheral/${HOT_MEMORY.device}`;
  try {
    await guest.qmp().execute('qom-set', { path, property: 'requested-size', value: requestedBytes });
  } catch (error) {
    if (!(error instanceof QmpError) || error.failure !== 'refused') throw error;
    failMemory(launcher, `QEMU does not change the memory of the guest: ${error.message}`);
    return;
  }
  const { plan } = launcher.record as VmRecord;
  if (plan.hotMemory) await keep(launcher, { ...plan, hotMemory: { ...plan.hotMemory, requestedBytes } });
  const mebibytes = Math.round((plan.memoryBytes + requestedBytes) / 2 ** 20);
  launcher.event('Normal', 'MemoryRequested', `The guest may now use ${mebibytes} MiB of memory.`);
}

async function keep(launcher: LauncherState, plan: VmRecord['plan']): Promise<void> {
  await keepRecord(launcher, { ...(launcher.record as VmRecord), plan });
  launcher.plugTrouble = undefined;
  // The status follows from the record.
  launcher.changed();
}

const AXES = ['socket-id', 'die-id', 'core-id', 'thread-id'] as const;
const axis = ({ props }: HotpluggableCpu, name: (typeof AXES)[number]): number => props[name] ?? 0;

/** As QEMU numbers them. */
function inOrder(a: HotpluggableCpu, b: HotpluggableCpu): number {
  const differs = AXES.find((name) => axis(a, name) !== axis(b, name));
  return differs ? axis(a, differs) - axis(b, differs) : 0;
}
