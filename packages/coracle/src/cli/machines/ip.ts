/** `coracle ip NAME`: the addresses of a running machine, one a line. */

import { type CommandContext, CommandError } from '../command.ts';
import { machineWord } from '../machine-target.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { textOf, withMachine } from './find-machine.ts';
import { whyNotRunning } from './why-facts.ts';

/** Exit code 1 when it has none. */
export async function ip(context: CommandContext): Promise<number> {
  const { flags, print, signal } = context;
  return withMachine(context, machineWord(context.words, 'ip'), async (call) => {
    const { key, vmi } = call;
    if (isExplained(context))
      return equivalent(context, [
        ...['kubectl', 'get', 'vmi', key.name, '-n', key.namespace],
        ...['-o', 'jsonpath={.status.interfaces[*].ipAddress}'],
      ]);
    const addresses = (vmi?.status?.interfaces ?? []).flatMap(({ ipAddress, ipAddresses }) => [
      ...new Set([...(ipAddress ? [ipAddress] : []), ...(ipAddresses ?? [])]),
    ]);
    if (addresses.length === 0)
      throw new CommandError(`${textOf(key)} has no address: it ${await whyNotRunning(call.client, call, signal)}`);
    print(flags['json'] === true ? JSON.stringify(addresses) : addresses.join('\n'));
    return 0;
  });
}
