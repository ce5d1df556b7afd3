/** What an earlier agent started is taken over: a guest that runs, or the end of one that does not. */
import { join } from 'node:path';
import { isRunning } from '@coracle/runtime/process/identity';
import { type Guest, openGuest } from '../guest/guest.ts';
import { attachVolumes } from '../guest/guest-volumes.ts';
import { keepNetFilter } from '../guest/net-filter.ts';
import { goOn } from '../memory/go-on.ts';
import { movedAway, resumeSent } from '../migration/settle-sender.ts';
import { resumeEnded, resumeReceiver } from '../migration/take-over.ts';
import type { LauncherState } from './launcher-state.ts';
import { ended, type StageOutcomes } from './launcher-step.ts';
import { letRun } from './start-vm.ts';
import type { VmRecord } from './vm-record.ts';
import { HOST_REBOOTED, resultOf, type VmResult } from './vm-result.ts';

const ANSWER_MS = 10_000;

/** Rejects only with the end of the agent. */
export async function adoptGuest(launcher: LauncherState, record: VmRecord): Promise<StageOutcomes['adopt']> {
  const { process } = record;
  const isHere = process && record.bootId === launcher.environment.bootId && !hasLeft(record);
  if (record.result || !isHere || !(await isRunning(process))) return ended(await endOf(launcher, record));
  const guest = openGuest({
    directory: join(launcher.environment.vmsDirectory, record.vmiUid),
    plan: record.plan,
    address: record.address,
    identity: process,
    clock: launcher.environment.clock,
    log: launcher.log,
    signal: launcher.environment.signal,
    onChange: () => launcher.changed(),
  });
  launcher.guest = guest;
  await connect(launcher, guest, record);
  const result = record.migration?.role === 'target' ? await resumeReceiver(launcher, guest) : undefined;
  return result ? ended(result) : { type: 'runs' };
}

const hasLeft = ({ migration }: VmRecord): boolean => migration?.role === 'source' && migration.phase === 'left';

/** How a guest ended of which no process is left. */
async function endOf(launcher: LauncherState, record: VmRecord): Promise<VmResult> {
  const { role, phase } = record.migration ?? {};
  if (record.result) return record.result;
  if (role === 'source' && (phase === 'left' || phase === 'feeding')) return movedAway(record);
  if (record.bootId !== launcher.environment.bootId) return HOST_REBOOTED;
  // Whose it was when it ended, the API knows.
  if (role === 'target') return resumeEnded(launcher);
  if (role === 'source' && phase === 'sent') return resumeSent(launcher);
  // The end of a guest that shut down is never missed: QEMU waits for us then. So this one broke off.
  return resultOf({});
}

/** Takes up what the earlier agent was in the middle of. A guest that does not answer keeps its phase. */
async function connect(launcher: LauncherState, guest: Guest, record: VmRecord): Promise<void> {
  const { environment, log } = launcher;
  try {
    await guest.ready(ANSWER_MS);
    await attachVolumes(launcher, guest);
    const directory = join(environment.vmsDirectory, record.vmiUid);
    const { plan, address } = record;
    const filtered = keepNetFilter(guest, { directory, plan, address, clock: environment.clock, log });
    filtered.catch(() => {});
    if (!guest.state.connected) return;
    await filtered;
    await guest.forwarder?.load();
    // The earlier agent ended between spawn and go.
    if (guest.state.runState === 'prelaunch' && !record.migration) await letRun(guest, record);
    if (record.saving || record.resuming) await goOn(launcher, guest);
    log.info('guest adopted', { pid: record.process?.pid, state: guest.state.runState });
  } catch (error) {
    environment.signal.throwIfAborted();
    // It lives but does not answer: we keep asking.
    log.warn('guest does not answer', { error: (error as Error).message });
  }
}
