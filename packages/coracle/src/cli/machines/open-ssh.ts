/** What ssh and scp need of a machine: that it runs, that its SSH server answers, and where its host key is kept. */

import { accessSync, constants, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ensurePrivateDir } from '../../config/data-dir.ts';
import { MAIN_FILE } from '../../config/program-files.ts';
import {
  type CommandContext,
  CommandError,
  fileProblem,
  listFlag,
  numberFlag,
  textFlag,
  UsageError,
} from '../command.ts';
import { shellWord } from './equivalent.ts';
import type { MachineCall } from './find-machine.ts';
import { awaitRunning } from './follow-start.ts';
import { cloudInitUser, hasLastingRoot } from './login-user.ts';
import { sshArguments } from './ssh-arguments.ts';
import { ownKeyPath, ownKeys, sshDirectory } from './ssh-keys.ts';

const SSH_PORT = 22;
const DEFAULT_TIMEOUT_S = 120;
const LONGEST_TIMEOUT_S = 3_600;
/** Files of host keys that are kept, the last used ones. */
const MAX_KNOWN = 256;

/**
 * Waits until the machine runs, at most `--timeout` seconds, for which the way to its port waits for an answer too; resolves to the arguments that ssh and
 * scp have in common. Throws CommandError that says why it cannot be reached.
 */
export async function openSsh(
  context: CommandContext,
  call: MachineCall,
  user: string | undefined,
): Promise<readonly string[]> {
  const { flags, note, signal } = context;
  const { key, client } = call;
  const identity = identityFile(context);
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: LONGEST_TIMEOUT_S, or: DEFAULT_TIMEOUT_S });
  const port = numberFlag(flags, 'port', { min: 1, max: 65_535, or: SSH_PORT });
  const vmi = await awaitRunning({ client, key, signal, note }, call, seconds);
  const lasts = hasLastingRoot(call.vm?.spec.template.spec ?? vmi.spec);
  const machine = call.vm?.metadata.uid ?? vmi.metadata.uid ?? '';
  const alias = lasts ? machine : (vmi.metadata.uid ?? '');
  const own = ownKeyPath(context);
  return sshArguments({
    user: user ?? textFlag(flags, 'login') ?? cloudInitUser(call.vm?.spec.template.spec ?? vmi.spec),
    hostKeyAlias: alias,
    knownHosts: knownHostsFile(join(sshDirectory(context), 'known-hosts'), { machine, alias }),
    proxy: proxyCommand(context, call, { port, seconds }),
    identities: identity !== undefined ? [identity] : existsSync(own) ? [own, ...ownKeys(context, '')] : [],
    more: listFlag(flags, 'option'),
  });
}

/** The key that `--identity` names. Throws UsageError for one that ssh would pass over, and ask for passwords instead. */
function identityFile({ flags }: CommandContext): string | undefined {
  const given = textFlag(flags, 'identity');
  if (given === undefined) return undefined;
  try {
    accessSync(given, constants.R_OK);
  } catch (error) {
    throw new UsageError(`--identity takes a file of a key: ${fileProblem(given, error)}`);
  }
  const file = statSync(given);
  if (file.isDirectory()) throw new UsageError(`--identity takes a file of a key: ${given} is a directory`);
  if ((file.mode & 0o077) !== 0 && file.uid === process.getuid?.() && !given.endsWith('.pub'))
    throw new UsageError(
      `--identity: others may read ${given}, and ssh takes no such key (chmod 600 ${shellWord(given)})`,
    );
  return resolve(given);
}

/** This program, as the way to the port: with the same cluster, whatever directory ssh starts it in. */
function proxyCommand(
  { flags }: CommandContext,
  { key }: MachineCall,
  { port, seconds }: { readonly port: number; readonly seconds: number },
): string[] {
  const [kubeconfig, dataDir] = [textFlag(flags, 'kubeconfig'), textFlag(flags, 'data-dir')];
  return [
    ...[process.execPath, ...process.execArgv, MAIN_FILE, 'port-forward', '--stdio', '--wait', String(seconds)],
    ...(kubeconfig === undefined ? [] : ['--kubeconfig', resolve(kubeconfig)]),
    ...(dataDir === undefined ? [] : ['--data-dir', resolve(dataDir)]),
    ...['--namespace', key.namespace, `vm/${key.name}`, String(port)],
  ];
}

/**
 * The file of a machine's host keys. What it holds of earlier instances, whose disks are gone, is forgotten; so are the machines
 * that were not asked for longest, past 256.
 */
function knownHostsFile(
  directory: string,
  { machine, alias }: { readonly machine: string; readonly alias: string },
): string {
  if (!/^[\w-]+$/.test(machine) || directory.includes('"'))
    throw new CommandError(`cannot choose a file of host keys for ${machine} in ${directory}`);
  ensurePrivateDir(directory);
  const file = join(directory, machine);
  const isOld = existsSync(file) && !readFileSync(file, 'utf8').includes(alias);
  if (isOld) rmSync(file, { force: true });
  const others = readdirSync(directory).filter((name) => name !== machine);
  if (others.length < MAX_KNOWN) return file;
  const byUse = others
    .map((name) => ({ path: join(directory, name), at: statSync(join(directory, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { path } of byUse.slice(MAX_KNOWN - 1)) rmSync(path, { force: true });
  return file;
}

/** Who logs in, as far as it is known, and with which key besides the user's own: of virtctl's ssh and scp, for `--explain`. */
export function virtctlLogin(context: CommandContext, call: MachineCall, user: string | undefined) {
  const key = textFlag(context.flags, 'identity') ?? [ownKeyPath(context)].find((path) => existsSync(path));
  const port = textFlag(context.flags, 'port');
  return {
    user: user ?? textFlag(context.flags, 'login') ?? cloudInitUser((call.vm?.spec.template ?? call.vmi)?.spec),
    options: [...(key === undefined ? [] : ['-i', key]), ...(port === undefined ? [] : ['-p', port])],
  };
}

/** Where ssh and scp say they are: the name of the machine as its cluster has it. */
export const hostOf = ({ key }: Pick<MachineCall, 'key'>): string => `${key.name}.${key.namespace}`;
