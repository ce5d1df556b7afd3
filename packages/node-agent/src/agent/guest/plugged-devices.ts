/** Devices that come to a running guest, and go, as QEMU has them. */
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import { type QmpConnection, QmpError } from '../../qmp/qmp-connection.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import type { Guest } from './guest.ts';

/** True once the guest has let go of it. It is asked again each time: some overlook the first word. */
export async function removeDevice(qmp: QmpConnection, id: string): Promise<boolean> {
  if (!(await devicesOf(qmp)).has(id)) return true;
  // Refused while the guest is asked already.
  await qmp.execute('device_del', { id }).catch(ignoreRefusal);
  return !(await devicesOf(qmp)).has(id);
}

/** Ids of the devices that were given one. */
export async function devicesOf(qmp: QmpConnection): Promise<ReadonlySet<string>> {
  return new Set((await qmp.execute('qom-list', { path: '/machine/peripheral' })).map(({ name }) => name));
}

/** Throws what is no answer of QEMU. */
export function ignoreRefusal(error: unknown): void {
  if (!(error instanceof QmpError && error.failure === 'refused')) throw error;
}

/** One device of a running guest that is given or taken. */
export interface DeviceStepInput {
  readonly guest: Guest;
  readonly vmi: ReadonlyVmi;
  readonly name: string;
}

/** Gives or takes it; false when it has to be tried again. */
export type DeviceStep = (launcher: LauncherState, turn: DeviceStepInput) => Promise<boolean>;

/** True while the guest runs here and is connected, and neither moves, is saved nor goes. */
export function mayChangeDevices(launcher: LauncherState, guest: Guest): boolean {
  const { environment, record, vmi } = launcher;
  if (record?.migration || record?.saving || launcher.isDeleting() || !guest.state.connected) return false;
  return vmi?.status?.phase === 'Running' && vmi.status.nodeName === environment.nodeName;
}

/**
 * Does each act for its devices, one after the other; `note` reports what one waits for. False when one has to be tried
 * again; it throws only with the end of the agent.
 */
export async function changeDevices(
  launcher: LauncherState,
  {
    note,
    ...turn
  }: Omit<DeviceStepInput, 'name'> & {
    readonly note: (launcher: LauncherState, name: string, trouble: string) => void;
  },
  acts: readonly (readonly [act: DeviceStep, names: Iterable<string>])[],
): Promise<boolean> {
  let isDone = true;
  for (const [act, names] of acts)
    for (const name of names)
      try {
        if (!(await act(launcher, { ...turn, name }))) isDone = false;
      } catch (error) {
        launcher.environment.signal.throwIfAborted();
        isDone = false;
        note(launcher, name, (error as Error).message);
      }
  return isDone;
}
