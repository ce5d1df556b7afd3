/** `qemu-img create`, always with explicit formats and names of ours. */
import { run } from '../../base/process/run.ts';

const TIMEOUT_MS = 60_000;

async function create(argv: readonly string[], directory: string, signal: AbortSignal): Promise<void> {
  const result = await run(['qemu-img', 'create', '-q', ...argv], { signal, timeoutMs: TIMEOUT_MS, cwd: directory });
  signal.throwIfAborted();
  if (!result.ok) throw new Error(result.message);
}

/** Makes the qcow2 file `name` over `backing` (a name in the same directory) with `size` bytes. */
export const createOverlay = (
  name: string,
  options: {
    readonly directory: string;
    readonly backing: string;
    readonly backingFormat: 'raw' | 'qcow2';
    readonly size: number;
    readonly signal: AbortSignal;
  },
): Promise<void> =>
  create(
    // Unopened (-u): what its own header names below it is not followed, and the layer may lie there under another name.
    ['-f', 'qcow2', '-u', '-b', options.backing, '-F', options.backingFormat, name, String(options.size)],
    options.directory,
    options.signal,
  );

/** Makes an empty qcow2 file of `size` bytes. */
export const createEmpty = (
  name: string,
  options: { readonly directory: string; readonly size: number; readonly signal: AbortSignal },
): Promise<void> => create(['-f', 'qcow2', name, String(options.size)], options.directory, options.signal);
