/**
 * Network cards for a running guest, on networks beside that of Pods: what its instance is to have is plugged in, what it is
 * not to have any more (`state: absent`) is taken back once the guest has let go of it. The record follows each step; one
 * that ends between a step and its record finds what QEMU has, and goes on.
 */

import { segmentCards } from '@coracle/kubevirt/rules/launcher/network-attachments';
import type { PlannedInterface } from '@coracle/kubevirt/rules/machine/machine-plan';
import { machinePlan } from '@coracle/kubevirt/rules/machine/plan';
import { plugCard } from '@coracle/kubevirt/rules/machine/plug-card';
import { pluggedCard } from '../../qemu/cards.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { keepRecord, type VmRecord } from '../launcher/vm-record.ts';
import { joinNetworks } from '../network/join-networks.ts';
import type { Guest } from './guest.ts';
import {
  changeDevices,
  type DeviceStep,
  type DeviceStepInput,
  devicesOf,
  ignoreRefusal,
  mayChangeDevices,
  removeDevice,
} from './plugged-devices.ts';

/** Plugs and unplugs what may be now. False when it has to be tried again; it throws only with the end of the agent. */
export async function updateCards(launcher: LauncherState, guest: Guest): Promise<boolean> {
  const { record, vmi } = launcher;
  if (!record || !vmi || !mayChangeDevices(launcher, guest)) return true;
  const wanted = new Set(segmentCards(vmi).map(({ nic }) => nic.name));
  const here = new Set(record.plan.interfaces.flatMap(({ name, segment }) => (segment ? [name] : [])));
  const settled =
    (act: DeviceStep): DeviceStep =>
    async (_, turn) => {
      const isDone = await act(launcher, turn);
      if (isDone) launcher.cardTrouble.delete(turn.name);
      return isDone;
    };
  return changeDevices(launcher, { guest, vmi, note }, [
    [settled(takeCard), here.difference(wanted)],
    [settled(giveCard), wanted.difference(here)],
  ]);
}

/** Says once what a card waits for. */
function note(launcher: LauncherState, name: string, trouble: string): void {
  if (launcher.cardTrouble.get(name) === trouble) return;
  launcher.cardTrouble.set(name, trouble);
  const text = `interface ${name}: ${trouble}`;
  launcher.log.warn('card not changed', { error: text });
  launcher.event('Warning', 'FailedHotplug', text);
  launcher.machineEvent('Warning', 'FailedHotplug', text);
}

async function giveCard(launcher: LauncherState, { guest, vmi, name }: DeviceStepInput): Promise<boolean> {
  const { environment } = launcher;
  const record = launcher.record as VmRecord;
  const wanted = machinePlan(vmi, environment.facts).interfaces.find((card) => card.name === name);
  if (!wanted) throw new Error('the instance has no card of that name');
  const [joined = wanted] = await joinNetworks(environment, [wanted], environment.signal);
  const card = plugCard(record.plan, joined);
  if (!card) throw new Error('the machine of this guest has no free place for a card');
  const { netdev, device } = pluggedCard(card);
  const qmp = guest.qmp();
  // What an earlier try has left, or an agent that ended in the middle.
  if (!(await devicesOf(qmp)).has(device.id)) {
    await qmp.execute('netdev_del', { id: netdev.id }).catch(ignoreRefusal);
    await qmp.execute('netdev_add', netdev);
    await qmp.execute('device_add', device);
  }
  if (!card.linkUp) await qmp.execute('set_link', { name: card.id, up: false });
  return keep(launcher, record, [...record.plan.interfaces, card]);
}

async function takeCard(launcher: LauncherState, { guest, name }: DeviceStepInput): Promise<boolean> {
  const record = launcher.record as VmRecord;
  const card = record.plan.interfaces.find((one) => one.name === name);
  if (!card) return true;
  if (!card.place)
    throw new Error('it is in a slot from which no card can be unplugged; it is removed at the next start');
  const qmp = guest.qmp();
  // The guest is asked again each time: some overlook the first word.
  if (!(await removeDevice(qmp, card.id))) return false;
  await qmp.execute('netdev_del', { id: pluggedCard(card).netdev.id }).catch(ignoreRefusal);
  const left = record.plan.interfaces.filter((one) => one !== card);
  return keep(launcher, record, left);
}

async function keep(launcher: LauncherState, record: VmRecord, interfaces: PlannedInterface[]): Promise<true> {
  await keepRecord(launcher, { ...record, plan: { ...record.plan, interfaces } });
  // The status, and what the switch of the node knows, follow from the record.
  launcher.changed();
  return true;
}
