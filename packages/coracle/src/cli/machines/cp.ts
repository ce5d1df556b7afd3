/** `coracle cp SOURCE... TARGET`: the host's scp, through the API to a guest. */

import { posix } from 'node:path';
import { run } from '@coracle/runtime/process/run';
import { runForeground } from '@coracle/runtime/process/run-foreground';
import { type CommandContext, CommandError, UsageError } from '../command.ts';
import { sizeText } from '../size-text.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type MachineCall, textOf, withMachine } from './find-machine.ts';
import { hostOf, openSsh, virtctlLogin } from './open-ssh.ts';

const USAGE = 'cp takes files, one side of them in a machine: cp FILE... NAME:PATH, or cp NAME:PATH... FILE';

/** Its exit code where it reached the machine, which 255 says that it did not. */
const SCP_FAILED = 1;
const ROOM_MS = 20_000;
const KIB = 1024;
/** A file system with less has refused a block of scp's. */
const FULL_BYTES = 256 * KIB;

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
    const argv = ['scp', ...recursive, ...options, '--', ...wordsFor(hostOf(call))];
    const code = await runForeground(argv, { env: environment });
    if (code === SCP_FAILED && target?.machine !== undefined)
      await needRoom(context, call, { options, path: target.path });
    return code;
  });
}

/** Of a guest whose disk is full scp says "Failure" alone: its SSH server is asked. Throws CommandError. */
async function needRoom(
  { environment, signal }: CommandContext,
  call: MachineCall,
  { options, path }: { readonly options: readonly string[]; readonly path: string },
): Promise<void> {
  if (/[\r\n]/.test(path)) return; // a line is a command of sftp
  const there = path.replace(/^~(?=\/|$)/, '.') || '.';
  const places = [there, posix.dirname(there)].map((place) => `-df "${place.replace(/["\\]/g, '\\$&')}"\n`);
  const asked = await run(['sftp', '-q', '-b', '-', ...options, '--', hostOf(call)], {
    signal,
    timeoutMs: ROOM_MS,
    env: { ...(environment as Record<string, string>), LC_ALL: 'C' },
    input: new TextEncoder().encode(places.join('')),
  });
  const [, size, free] = /^ *(\d+) +\d+ +(\d+) +\d+ +\d+%/m.exec(new TextDecoder().decode(asked.stdout)) ?? [];
  if (free === undefined || Number(free) * KIB >= FULL_BYTES) return;
  throw new CommandError(
    `no space is left for ${path || '.'} in ${textOf(call.key)} (${sizeText(Number(size) * KIB)} in all): the copy is not complete; free some there, and copy again`,
  );
}

/** A file whose name has a colon is none of a machine. */
const localPath = (path: string): string => (/^[^/]*:/.test(path) ? `./${path}` : path);
