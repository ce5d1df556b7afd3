/** `coracle ssh NAME [COMMAND]`: the host's ssh, through the API to a guest. */

import { runForeground } from '@coracle/runtime/process/run-foreground';
import { type CommandContext, UsageError } from '../command.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { withMachine } from './find-machine.ts';
import { hostOf, openSsh, virtctlLogin } from './open-ssh.ts';

/** Exit code of ssh: the command's own, 255 when it could not connect. */
export async function ssh(context: CommandContext): Promise<number> {
  const { words, environment } = context;
  const [target, ...command] = words;
  if (target === undefined) throw new UsageError('ssh takes a machine (see: coracle ssh --help)');
  const at = target.lastIndexOf('@');
  const user = at > 0 ? target.slice(0, at) : undefined;
  return withMachine(context, target.slice(at + 1), async (call) => {
    if (isExplained(context)) {
      const login = virtctlLogin(context, call, user);
      const place = `vm/${call.key.name}/${call.key.namespace}`;
      const run = command.length > 0 ? ['--command', command.join(' ')] : [];
      const who = login.user === undefined ? [] : ['-l', login.user];
      return equivalent(context, ['virtctl', 'ssh', ...who, ...login.options, place, ...run]);
    }
    const options = await openSsh(context, call, user);
    return runForeground(['ssh', ...options, '--', hostOf(call), ...command], { env: environment });
  });
}
