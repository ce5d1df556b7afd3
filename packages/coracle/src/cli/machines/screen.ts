/** Whether a machine has a screen now, as far as its objects tell. */
import { CommandError } from '../command.ts';
import { type MachineCall, textOf } from './find-machine.ts';
import { whyNotRunning } from './why-facts.ts';

/** Throws CommandError for a machine that does not run, or was made without a display. */
export async function checkScreen(call: MachineCall, signal: AbortSignal): Promise<void> {
  const { key, client, vm, vmi } = call;
  // Of what the caller may not look at, the server has the last word.
  if (vm === undefined && vmi === undefined) return;
  if (vmi?.status?.phase !== 'Running')
    throw new CommandError(`${textOf(key)} has no screen: it ${await whyNotRunning(client, call, signal)}`);
  if (vmi.spec.domain.devices.autoattachGraphicsDevice === false)
    throw new CommandError(`${textOf(key)} has no screen: its autoattachGraphicsDevice is false`);
}
