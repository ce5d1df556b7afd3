/** `coracle cp SOURCE... TARGET`: the host's scp, through the API to a guest. */

import { runForeground } from '@coracle/runtime/process/run-foreground';
import { type CommandContext, UsageError } from '../command.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { withMachine } from './find-machine.ts';
import { hostOf, openSsh, virtctlLogin } from './open-ssh.ts';

const USAGE = 'cp takes files, one side of them in a machine: cp FILE... NAME:PATH, or cp NAME:PATH... FILE';

interface Place {
  readonly machine: string | undefined;
  readonly user: string | undefined;
  readonly path: string;
}

/** As scp reads a word: a colon before any slash divides the machine from the path. */
export function readPlace(word: string): Place {
  const [, before, path = ''] = /^([^/:]+(?:\/[^/:]+)?):(.*)$/s.exec(word) ?? [];
  // `vm/NAME:` names a machine, `./name:with-colon` a file.
  if (before === undefined || before.startsWith('.') || (before.includes('/') && !/^vmi?\//.test(before)))
    return { machine: undefined, user: undefined, path: word };
  const at = before.lastIndexOf('@');
  return { machine: before.slice(at + 1), user: at > 0 ? before.slice(0, at) : undefined, path };
}

/** `coracle cp`. */
export async function cp(context: CommandContext): Promise<number> {
  const { words, flags, environment } = context;
  const places = words.map(readPlace);
  const sources = places.slice(0, -1);
  const target = places.at(-1);
  const remote = target?.machine === undefined ? sources : [target];
  const local = target?.machine === undefined ? [target] : sources;
  const [first] = remote;
  if (sources.length === 0 || first?.machine === undefined || local.some((place) => place?.machine !== undefined))
    throw new UsageError(`${USAGE} (see: coracle cp --help)`);
  if (remote.some(({ machine, user }) => machine !== first.machine || user !== first.user))
    throw new UsageError(`${USAGE}; all of it in the same machine`);
  const recursive = flags['recursive'] === true ? ['-r'] : [];
  return withMachine(context, first.machine, async (call) => {
    const wordsFor = (host: string): string[] =>
      places.map(({ machine, path }) => (machine === undefined ? localPath(path) : `${host}:${path}`));
    if (isExplained(context)) {
      const host = `vm/${call.key.name}/${call.key.namespace}`;
      const { user, options } = virtctlLogin(context, call, first.user);
      return equivalent(context, [
        ...['virtctl', 'scp', ...recursive.map(() => '--recursive'), ...options],
        ...wordsFor(user === undefined ? host : `${user}@${host}`),
      ]);
    }
    const options = await openSsh(context, call, first.user);
    return runForeground(['scp', ...recursive, ...options, '--', ...wordsFor(hostOf(call))], { env: environment });
  });
}

/** A file whose name has a colon is none of a machine. */
const localPath = (path: string): string => (/^[^/]*:/.test(path) ? `./${path}` : path);
