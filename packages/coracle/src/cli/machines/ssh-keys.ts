/** Where key pairs lie, and the public keys that a new machine is given: the user's own, those named, or a pair of ours where the user has none. */

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { plainEnv, run } from '@coracle/runtime/process/run';
import { dataDirAt, defaultDataDir, ensurePrivateDir } from '../../config/data-dir.ts';
import { type CommandContext, CommandError, fileProblem, listFlag, textFlag, UsageError } from '../command.ts';
import { readInputFile } from '../input-file.ts';

/** One line of an authorized_keys file without options, and no line break: it goes into the guest as it is. */
const PUBLIC_KEY = /^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\r\n]*)?$/;
const MAX_KEYS = 64;
const KEYGEN_MS = 30_000;
/** An agent that asks its user for leave to list keys is not waited for. */
const AGENT_MS = 5_000;
const CERTIFICATE = /^\S+-cert-v\d+@/;
/** In the order in which ssh itself looks for them. */
const KEY_NAMES = ['id_ed25519', 'id_ecdsa', 'id_rsa'] as const;

const rootOf = ({ flags, environment }: Pick<CommandContext, 'flags' | 'environment'>): string =>
  dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment)).root;

/** Where a key pair of our own lies, for users who have none. Makes nothing. */
export const ownKeyPath = (context: Pick<CommandContext, 'flags' | 'environment'>): string =>
  join(rootOf(context), 'ssh/id_ed25519');

/** `DIR/ssh`, made when it is not there. */
export function sshDirectory(context: Pick<CommandContext, 'flags' | 'environment'>): string {
  const root = rootOf(context);
  ensurePrivateDir(root);
  const directory = join(root, 'ssh');
  ensurePrivateDir(directory);
  return directory;
}

/** The user's own key files of that ending that are there. */
export function ownKeys({ environment }: Pick<CommandContext, 'environment'>, ending: '' | '.pub'): string[] {
  const home = environment['HOME'] || homedir();
  return KEY_NAMES.map((name) => join(home, '.ssh', `${name}${ending}`)).filter((path) => existsSync(path));
}

/**
 * `--ssh-key FILE` or the key itself, any number; `none` for no key; else the user's first key of `~/.ssh`, or of the SSH agent. Where there is none a
 * pair is made in the data directory, which `coracle ssh` shows then. Throws UsageError for what is no public key.
 */
export async function publicKeys(
  context: CommandContext,
  { mayMake }: { readonly mayMake: boolean },
): Promise<string[]> {
  const given = listFlag(context.flags, 'ssh-key');
  if (given.length > MAX_KEYS) throw new UsageError(`--ssh-key is given more than ${MAX_KEYS} times`);
  if (given.includes('none')) {
    if (given.length > 1) throw new UsageError('--ssh-key none means no key and goes with no other');
    return [];
  }
  if (given.length > 0)
    return given.flatMap((text) => (isPublicKey(text) ? [text] : keysOf(expandHome(context, text))));
  const [first] = ownKeys(context, '.pub');
  if (first !== undefined) return keysOf(first);
  const ofAgent = await agentKey(context);
  if (ofAgent !== undefined) return [ofAgent];
  const own = ownKeyPath(context);
  if (existsSync(`${own}.pub`)) return keysOf(`${own}.pub`);
  if (!mayMake) {
    context.note(
      'no SSH key is in the manifest: there is none in ~/.ssh (coracle create itself makes one, --ssh-key FILE names one)',
    );
    return [];
  }
  sshDirectory(context);
  const made = await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'coracle', '-f', own], {
    signal: context.signal,
    timeoutMs: KEYGEN_MS,
    env: plainEnv(),
  });
  if (!made.ok)
    throw new CommandError(
      `there is no key in ~/.ssh, and none could be made: ${made.message} (--ssh-key none: no key)`,
    );
  context.note(`made a key for coracle ssh: ${own}`);
  return keysOf(`${own}.pub`);
}

/** The first key of the user's SSH agent, if there is one. */
async function agentKey({ environment, signal }: CommandContext): Promise<string | undefined> {
  const socket = environment['SSH_AUTH_SOCK'];
  if (!socket) return undefined;
  const listed = await run(['ssh-add', '-L'], {
    signal,
    timeoutMs: AGENT_MS,
    env: { ...plainEnv(), SSH_AUTH_SOCK: socket },
  });
  const lines = listed.ok ? new TextDecoder().decode(listed.stdout).split('\n') : [];
  return lines.find((line) => isPublicKey(line) && !CERTIFICATE.test(line));
}

const expandHome = ({ environment }: Pick<CommandContext, 'environment'>, path: string): string =>
  path.startsWith('~/') ? join(environment['HOME'] || homedir(), path.slice(2)) : path;

/** Its data repeat its type, behind four bytes of length: what was cut off or pasted badly does not. */
function isPublicKey(line: string): boolean {
  if (!PUBLIC_KEY.test(line)) return false;
  const [type = '', data = ''] = line.split(' ');
  return Buffer.from(data, 'base64').toString('latin1', 4).startsWith(`${type}\0`);
}

/** The keys of a file, comments left out. */
function keysOf(path: string): string[] {
  const wrong = (why: string): UsageError =>
    new UsageError(`--ssh-key takes a public key or a file of them (none: no key): ${why}`);
  let text: string;
  try {
    text = readInputFile(path);
  } catch (error) {
    throw wrong(fileProblem(path, error));
  }
  const lines = text.split('\n').map((line) => line.trim());
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (text.includes('PRIVATE KEY'))
    throw wrong(`${path} is a private key${path.endsWith('.pub') ? '' : `, and its public one is ${path}.pub`}`);
  if (keys.length === 0 || !keys.every(isPublicKey))
    throw wrong(`${path} has no public keys as ssh-keygen writes them`);
  return keys;
}
