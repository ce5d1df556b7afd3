/** Cables of a running guest's cards, pulled and put in again as its instance says (`interfaces[].state`). */
import type { LauncherState } from '../launcher/launcher-state.ts';
import { writeRecord } from '../launcher/vm-record.ts';
import type { Guest } from './guest.ts';

/** Does what is to be done now. False when it has to be tried again; it throws only with the end of the agent. */
export async function updateLinks(launcher: LauncherState, guest: Guest): Promise<boolean> {
  const { environment, record, vmi } = launcher;
  if (!record || !vmi || record.migration || launcher.isDeleting() || !guest.state.connected) return true;
  if (vmi.status?.phase !== 'Running' || vmi.status.nodeName !== environment.nodeName) return true;
  const isUp = (name: string): boolean =>
    vmi.spec.domain.devices.interfaces?.find((nic) => nic.name === name)?.state !== 'down';
  const changed = record.plan.interfaces.filter(({ name, linkUp }) => linkUp !== isUp(name));
  if (changed.length === 0) return true;
  try {
    for (const { id, name } of changed) await guest.qmp().execute('set_link', { name: id, up: isUp(name) });
    const interfaces = record.plan.interfaces.map((nic) => ({ ...nic, linkUp: isUp(nic.name) }));
    launcher.record = { ...record, plan: { ...record.plan, interfaces } };
    await writeRecord(environment.vmsDirectory, launcher.record);
    launcher.changed();
    return true;
  } catch (error) {
    environment.signal.throwIfAborted();
    launcher.log.warn('links not changed', { error: (error as Error).message });
    return false;
  }
}
