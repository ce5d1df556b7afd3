/** ISO 9660 images by xorriso. File names are checked here: they come from constant lists or from keys of objects. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { run } from '@coracle/runtime/process/run';

/** Path in the image (relative, `/` between parts) -> bytes. */
export type IsoFiles = ReadonlyMap<string, Uint8Array | string>;

const TIMEOUT_MS = 60_000;
const PART = /^[A-Za-z0-9_.-]{1,253}$/;
const LABEL = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$/;

/** True for a relative path that stays where it is put. */
export const isSafePath = (path: string): boolean =>
  path.split('/').every((part) => PART.test(part) && part !== '.' && part !== '..');

/** Makes `name` in `directory`. Throws on unsafe names and when xorriso fails. */
export async function createIso(
  name: string,
  options: {
    readonly directory: string;
    /** Volume id, at most 32 characters. */
    readonly label: string;
    readonly files: IsoFiles;
    /** Mode of the files as the guest sees them; they belong to its root. Default 0600. */
    readonly fileMode?: number;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { directory, label, files, fileMode = 0o600, signal } = options;
  if (!LABEL.test(label))
    throw new Error(
      `volume label ${JSON.stringify(label.slice(0, 64))} must be 1 to 32 letters, digits, dots or dashes`,
    );
  const stage = await mkdtemp(join(directory, 'iso-'));
  try {
    for (const [path, content] of files) {
      if (!isSafePath(path)) throw new Error(`${JSON.stringify(path.slice(0, 64))} cannot be a file name`);
      const target = join(stage, path);
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writeFile(target, content, { mode: 0o600, flag: 'wx' });
    }
    const modes = ['-file-mode', fileMode.toString(8).padStart(4, '0'), '-dir-mode', '0755', '-uid', '0', '-gid', '0'];
    const result = await run(
      ['xorriso', '-no_rc', '-as', 'mkisofs', '-quiet', '-V', label, '-joliet', '-rock', ...modes, '-o', name, stage],
      { signal, timeoutMs: TIMEOUT_MS, cwd: directory },
    );
    signal.throwIfAborted();
    if (!result.ok) throw new Error(result.message);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}
