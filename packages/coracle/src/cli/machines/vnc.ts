/** `coracle vnc NAME`: the screen of a machine at a port of this host, for any VNC viewer, as long as the command runs. */

import { type CommandContext, numberFlag, textFlag } from '../command.ts';
import { askForStream } from '../machine-stream.ts';
import { machineWord } from '../machine-target.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { textOf, withMachine } from './find-machine.ts';
import { checkScreen } from './screen.ts';
import { DEFAULT_ADDRESS, serveLocally } from './serve-locally.ts';

/** `coracle vnc`. */
export async function vnc(context: CommandContext): Promise<number> {
  const { flags, signal } = context;
  const address = textFlag(flags, 'address') ?? DEFAULT_ADDRESS;
  const local = numberFlag(flags, 'port', { min: 0, max: 65_535, or: 0 });
  const preserve = flags['preserve-session'] === true;
  return withMachine(context, machineWord(context.words, 'vnc'), async (call) => {
    const { key, cluster } = call;
    if (isExplained(context))
      return equivalent(context, [
        ...['virtctl', 'vnc', key.name, '-n', key.namespace, '--proxy-only'],
        ...(local === 0 ? [] : [`--port=${local}`]),
        ...(address === DEFAULT_ADDRESS ? [] : [`--address=${address}`]),
        ...(preserve ? ['--preserve-session'] : []),
      ]);
    await checkScreen(call, signal);
    const query = preserve ? 'preserveSession=true' : '';
    await serveLocally(context, address, [
      {
        local,
        what: `the screen of ${textOf(key)}`,
        join: async (socket) => (await askForStream(cluster, key, { subresource: 'vnc', query, signal }))(socket),
      },
    ]);
    return 0;
  });
}
