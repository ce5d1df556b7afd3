/**
 * A disk image of another format into one of ours, by qemu-img with limits of memory, time and file size. Format and file
 * are named and no backing file is opened, whatever the image says.
 */
import { programPath } from '@coracle/runtime/process/program';
import { runConfined } from '@coracle/runtime/process/run-confined';
import { FillError } from './fill-error.ts';

export interface ConvertOptions {
  readonly from: { readonly path: string; readonly format: 'qcow2' | 'vmdk' | 'vdi' };
  readonly to: { readonly path: string; readonly format: 'raw' | 'qcow2' };
  /** Bytes of the volume. */
  readonly bytes: number;
  /** Private to the run. */
  readonly directory: string;
  readonly signal: AbortSignal;
  /** Hears of how much is done, 0 to 1. */
  readonly onProgress: (fraction: number) => void;
}

const CONVERT_MS = 6 * 3_600_000;
const MAX_MEMORY = 1024 ** 3;
/** What `qemu-img check` exits with where some clusters belong to nobody: no harm to who only reads. */
const ONLY_LEAKS = 3;
/** Tables of a qcow2 image take less than this much of it, and this at least. */
const METADATA_SHARE = 64;
const METADATA_BYTES = 64 * 1024 * 1024;

/** Throws FillError, or the signal's reason. */
export async function convert({ from, to, bytes, directory, signal, onProgress }: ConvertOptions): Promise<void> {
  const tool = programPath('qemu-img');
  if (tool === undefined) throw new FillError('Image', 'this node has no program "qemu-img"');
  const source = {
    driver: from.format,
    file: { driver: 'file', filename: from.path, locking: 'off' },
    ...(from.format !== 'vdi' && { backing: null }),
  };
  const limits = { cwd: directory, signal, timeoutMs: CONVERT_MS, maxMemory: MAX_MEMORY };
  // What lies beyond the end of a file that was cut off would be read as zeros.
  const sound = await runConfined([tool, 'check', '-q', `json:${JSON.stringify(source)}`], limits);
  signal.throwIfAborted();
  if (!sound.ok && sound.code !== ONLY_LEAKS)
    throw new FillError('Image', `the ${from.format} image is damaged: ${lastLine(sound.stderr) || sound.message}`);
  let text = '';
  const result = await runConfined(
    [tool, 'convert', '-p', '-W', '-t', 'writeback', '-O', to.format, `json:${JSON.stringify(source)}`, to.path],
    {
      ...limits,
      maxFile: bytes + Math.ceil(bytes / METADATA_SHARE) + METADATA_BYTES,
      onStdout: (chunk) => {
        // "    (12.50/100%)", over and over.
        text = (text + Buffer.from(chunk).toString('latin1')).slice(-64);
        const percent = [...text.matchAll(/\((\d+\.\d+)\/100%\)/g)].at(-1)?.[1];
        if (percent !== undefined) onProgress(Number(percent) / 100);
      },
    },
  );
  if (result.ok) return;
  signal.throwIfAborted();
  if (/No space left/.test(result.stderr)) throw new FillError('NoSpace', 'no room is left on the disk of the pool');
  throw new FillError('Image', `the ${from.format} image cannot be read: ${lastLine(result.stderr) || result.message}`);
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? '';
