/**
 * The files of a machine's firmware state, in `files/` of its claim:
 *
 *   efi-vars.fd        the EFI variables, QEMU's own file
 *   tpm-ID/            the state of the TPM, swtpm's own directory
 *   tpm.json           names the one of these that counts
 *
 * A guest that comes from another node brings the state of its TPM along and gets a directory of its own, so that the two
 * processes never have one in common; it counts once the guest is here for good (`keepTpmState`).
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { STATE_VOLUME } from '@coracle/kubevirt/rules/backend-storage/backend-storage';
import { writeFileAtomic } from '../image/atomic-file.ts';
import { VolumeError } from './volume-request.ts';

export const EFI_VARS = 'efi-vars.fd';
const TPM_POINTER = 'tpm.json';
const TPM_PREFIX = 'tpm-';
const TPM_DIRECTORY = /^tpm-[0-9a-f-]{12,36}$/;

export const stateFailed = (why: string): VolumeError =>
  new VolumeError('FailedMount', STATE_VOLUME, `firmware state: ${why}`);

/** The variables as the last guest left them; the first one gets those of the firmware. */
export async function lastingVariables(directory: string, template: string): Promise<string> {
  const file = join(directory, EFI_VARS);
  const known = await stat(file).catch(() => undefined);
  const { size } = await stat(template);
  if (!known) await writeFileAtomic(file, await readFile(template));
  else if (known.size !== size)
    throw stateFailed(
      `its EFI variables take ${known.size} bytes, and the firmware of this node wants ${size} (${template})`,
    );
  return file;
}

/** The directory that counts, made and named when there is none yet; what migrations left that came to nothing goes. */
export async function lastingTpmState(directory: string): Promise<string> {
  let name = await countingTpmState(directory);
  if (name === undefined) {
    name = `${TPM_PREFIX}${randomBytes(6).toString('hex')}`;
    await mkdir(join(directory, name), { mode: 0o700 });
    await writePointer(directory, name);
  }
  await sweep(directory, name);
  await mkdir(join(directory, name), { recursive: true, mode: 0o700 });
  return join(directory, name);
}

/** An empty one for a guest that is on its way. */
export async function arrivingTpmState(directory: string, migration: string): Promise<string> {
  const path = join(directory, `${TPM_PREFIX}${migration}`);
  if (!TPM_DIRECTORY.test(basename(path))) throw stateFailed('the migration has no usable UID');
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { mode: 0o700 });
  return path;
}

async function countingTpmState(directory: string): Promise<string | undefined> {
  const text = await readFile(join(directory, TPM_POINTER), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const { version, directory: name } = JSON.parse(text) as { version?: number; directory?: string };
  // Never replaced by an empty one: what a guest has sealed to its TPM would be lost.
  if (version !== 1 || typeof name !== 'string' || !TPM_DIRECTORY.test(name))
    throw stateFailed(`${TPM_POINTER} is not of this version`);
  return name;
}

const writePointer = (directory: string, name: string): Promise<void> =>
  writeFileAtomic(join(directory, TPM_POINTER), JSON.stringify({ version: 1, directory: name }));

async function sweep(directory: string, kept: string): Promise<void> {
  for (const name of await readdir(directory))
    if (TPM_DIRECTORY.test(name) && name !== kept) await rm(join(directory, name), { recursive: true, force: true });
}

/**
 * A guest that came from another node is here for good: the state that it brought counts from now on, and that of its
 * source goes. Called before it runs, with where its TPM keeps its state; does nothing for a state that does not last.
 */
export async function keepTpmState(link: string): Promise<void> {
  const path = await readlink(link).catch(() => undefined);
  if (path === undefined) return;
  const [directory, name] = [dirname(path), basename(path)];
  if ((await countingTpmState(directory)) !== name) await writePointer(directory, name);
  await sweep(directory, name);
}
