/** `coracle ssh NAME [-- COMMAND]`: the host's ssh, through the API to a guest. */

import { runForeground } from '@coracle/runtime/process/run-foreground';
import { type CommandContext, textFlag, UsageError } from '../command.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { withMachine } from './find-machine.ts';
import { hostOf, openSsh } from './open-ssh.ts';

/** Exit code of ssh: the command's own, 255 when it could not connect. */
export async function ssh(context: CommandContext): Promise<number> {
  const { words, flags, environment } = context;
  const [target, ...command] = words;
  if (target === undefined) throw new UsageError('ssh takes a machine (see: coracle ssh --help)');
  const at = target.lastIndexOf('@');
  const user = at > 0 ? target.slice(0, at) : undefined;
  return withMachine(context, target.slice(at + 1), async (call) => {
    if (isExplained(context)) {
      const login = user ?? textFlag(flags, 'login');
      const place = `vm/${call.key.name}/${call.key.namespace}`;
      const run = command.length > 0 ? ['--command', command.join(' ')] : [];
      return equivalent(context, ['virtctl', 'ssh', ...(login ? ['-l', login] : []), place, ...run]);
    }
    const options = await openSsh(context, call, user);
    return runForeground(['ssh', ...options, '--', hostOf(call), ...command], { env: environment });
  });
}
