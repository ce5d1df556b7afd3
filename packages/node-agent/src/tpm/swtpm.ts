/**
 * The process that is a guest's TPM. It is detached like QEMU and ends with it: QEMU holds the only connection, and swtpm
 * ends when that closes. One that QEMU never came to is found by the name of its socket, which no other process has.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeFacts } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import { findProcesses, identify, isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { isProgram } from '@coracle/runtime/process/program';
import { spawnDetached } from '@coracle/runtime/process/spawn-detached';
import { terminate } from '@coracle/runtime/process/terminate';
import { writeFileAtomic } from '../image/atomic-file.ts';

export const TPM_PROGRAM = 'swtpm';

/** In the directory of a VM, closed to everybody else: all that the process needs. */
const DIRECTORY = 'tpm';
/** Below it: the state, a directory or a link to where it lasts. */
const STATE = 'state';
const PROCESS = 'process.json';
const LOG = 'swtpm.log';

const LISTEN_MS = 10_000;
const POLL_MS = 20;
const GRACE_MS = 1000;

export interface TpmOptions {
  /** Of the VM. */
  readonly directory: string;
  /** Absolute path of the directory whose state lasts; without it the TPM starts empty, and its state goes with the VM. */
  readonly lastingState?: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Whether a guest on this host can have a TPM: looked up each time, since the program may be installed at any time. */
export const tpmFacts = (): Pick<NodeFacts, 'tpm'> => (isProgram(TPM_PROGRAM) ? { tpm: true } : {});

/**
 * Name of the control socket relative to the directory of the VM. It holds nothing of a path, since swtpm splits its
 * options at commas, and yet no two directories of VMs have the same one.
 */
export const tpmSocket = (directory: string): string => join(DIRECTORY, socketName(directory));

/** Where the TPM of the VM in this directory keeps its state: a directory, or a link to one that lasts. */
export const tpmStateOf = (directory: string): string => join(directory, DIRECTORY, STATE);

const socketName = (directory: string): string =>
  `${createHash('sha256').update(directory).digest('hex').slice(0, 24)}.sock`;

/** The argument vector of the TPM of the VM in this directory; it runs in `tpm/` below it. */
export const swtpmArgv = (directory: string): string[] => [
  TPM_PROGRAM,
  'socket',
  '--tpm2',
  '--tpmstate',
  `dir=${STATE},mode=0600`,
  '--ctrl',
  `type=unixio,path=${socketName(directory)},mode=0600`,
  // It confines itself by seccomp, and ends with the connection of QEMU.
  '--seccomp',
  'action=kill',
  '--terminate',
];

/** Starts the TPM; it listens when this resolves. What an earlier start left is ended first. Throws when it cannot be had. */
export async function startTpm(options: TpmOptions): Promise<ProcessIdentity> {
  const { directory, lastingState, clock, signal } = options;
  await endTpm(directory, options);
  const own = join(directory, DIRECTORY);
  await rm(own, { recursive: true, force: true });
  await mkdir(own, { mode: 0o700 });
  if (lastingState === undefined) await mkdir(join(own, STATE), { mode: 0o700 });
  else {
    await mkdir(lastingState, { recursive: true, mode: 0o700 });
    await symlink(lastingState, join(own, STATE));
  }
  const child = await spawnDetached(swtpmArgv(directory), { cwd: own, outputFile: join(own, LOG) });
  await writeFileAtomic(join(own, PROCESS), JSON.stringify(child.identity));
  const deadline = clock.monotonic() + LISTEN_MS;
  // It binds and listens in one go; the file is there when it does.
  while (!(await stat(join(own, socketName(directory))).catch(() => undefined))) {
    if (!(await isRunning(child.identity)))
      throw new Error(`${TPM_PROGRAM} ended: ${(await readFile(join(own, LOG), 'utf8').catch(() => '')).trim()}`);
    if (clock.monotonic() > deadline) throw new Error(`${TPM_PROGRAM} does not listen`);
    await clock.sleep(POLL_MS, signal);
  }
  return child.identity;
}

/** The TPM process of the VM in this directory, also one that nobody wrote down; undefined when there is none. */
export async function findTpm(directory: string): Promise<ProcessIdentity | undefined> {
  const noted = await readFile(join(directory, DIRECTORY, PROCESS), 'utf8')
    .then((text) => JSON.parse(text) as ProcessIdentity)
    .catch(() => undefined);
  if (noted && (await isRunning(noted))) return noted;
  if (!(await stat(join(directory, DIRECTORY)).catch(() => undefined))) return undefined;
  const [, , , , , , socket = ''] = swtpmArgv(directory);
  const [pid] = await findProcesses((argv) => argv.includes(socket));
  return pid === undefined ? undefined : identify(pid);
}

/** Sees to it that no TPM process of the VM in this directory is left; for when its QEMU has ended, or was never there. */
export async function endTpm(
  directory: string,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const process = await findTpm(directory);
  // It writes its state as it changes: there is nothing to save.
  if (process) await terminate(process, { clock, signal, graceMs: GRACE_MS });
}
