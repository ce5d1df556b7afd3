/** What a start needs of its launcher, and what it reports on the way. */
import type { ImageEvent } from '../../disk/volume-request.ts';
import type { LauncherState } from './launcher-state.ts';
import type { StartRequest } from './start-vm.ts';

/** Undefined once the guest is not to be started any more. */
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
