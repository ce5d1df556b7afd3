/** A guest is started from its disks, or from its saved memory (`start-vm`). */
import { unservedTexts } from '@coracle/kubevirt/rules/machine/unserved-fields';
import type { ImageEvent } from '../../disk/volume-request.ts';
import { attachVolumes } from '../guest/guest-volumes.ts';
import type { LauncherState } from './launcher-state.ts';
import { ended, type StageOutcomes } from './launcher-step.ts';
import { afterFailure, DELETED_BEFORE_START } from './start-failure.ts';
import { type StartRequest, startVm } from './start-vm.ts';
import type { VmRecord } from './vm-record.ts';

const MAX_EVENTS = 20;

/** Rejects only with the end of the agent. */
export async function coldStart(launcher: LauncherState, attempt: number): Promise<StageOutcomes['cold-start']> {
  const request = startRequest(launcher);
  if (!request) return ended(DELETED_BEFORE_START);
  let reported: Promise<unknown> | undefined;
  // The Pod runs while its guest is loaded: whoever waits for that to go on with the instance need not wait for both.
  const onLoading = (record: VmRecord): void => {
    const { startedAt, address, imageIds } = record;
    // It rejects with the end of the agent only, of which `startVm` hears too.
    reported = launcher.report({ state: 'running', startedAt, address, imageIds }).catch(() => {});
  };
  try {
    const started = await startVm(launcher.environment, { ...request, onLoading });
    launcher.record = started.record;
    launcher.guest = started.guest;
    await attachVolumes(launcher, started.guest);
    reportPlan(launcher, started.record);
    return { type: 'runs' };
  } catch (error) {
    // What is reported of the failure comes after it.
    await reported;
    return afterFailure(launcher, error, attempt);
  }
}

function reportPlan(launcher: LauncherState, record: VmRecord): void {
  const { vmi } = launcher;
  // These its controller has reported of the machine already.
  const known = new Set(unservedTexts(vmi?.spec));
  for (const text of record.plan.unsupported.slice(0, MAX_EVENTS)) {
    launcher.event('Warning', 'NotSupported', text);
    if (!known.has(text)) launcher.machineEvent('Warning', 'NotSupported', text);
  }
  for (const text of record.portProblems.slice(0, MAX_EVENTS)) launcher.event('Warning', 'PortNotForwarded', text);
}

/** What a start needs of its launcher, here or from another node; undefined once the guest is not to be started any more. */
export function startRequest(launcher: LauncherState): StartRequest | undefined {
  const { pod, vmi } = launcher;
  if (!pod || !vmi || launcher.isDeleting()) return undefined;
  return {
    pod,
    vmi,
    signal: launcher.starting.signal,
    onImage: (event) => reportImage(launcher, event),
    onChange: () => launcher.changed(),
    onNotResumed: (why) => launcher.event('Warning', 'BootedInstead', why),
  };
}

function reportImage(launcher: LauncherState, event: ImageEvent): void {
  const name = JSON.stringify(event.image);
  if (event.type === 'pulling') launcher.podEvent('Normal', 'Pulling', `Pulling image ${name}`);
  if (event.type === 'pulled') launcher.podEvent('Normal', 'Pulled', `Successfully pulled image ${name}`);
  if (event.type === 'present')
    launcher.podEvent('Normal', 'Pulled', `Container image ${name} already present on machine`);
}
