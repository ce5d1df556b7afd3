// Runs one of the build's tools to its end. Arguments are always an argv array, never a shell string.
import { spawn } from 'node:child_process';

/** What a tool is run with: where, with which environment, with what on its standard input. */
export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: Uint8Array;
  readonly signal?: AbortSignal | undefined;
}

/** Most a tool may write to standard output: an unpacked kernel is about 70 MB. */
const OUTPUT_LIMIT = 256 * 1024 * 1024;
/** Kept of standard error, for the message of a failure. */
const ERROR_LIMIT = 8 * 1024;

/** Runs `file` and returns its standard output; throws, with the end of its standard error, when it fails. */
export function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...process.env, LC_ALL: 'C', ...options.env },
      signal: options.signal,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const output: Buffer[] = [];
    let size = 0;
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > OUTPUT_LIMIT) child.kill('SIGKILL');
      else output.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString('latin1')).slice(-ERROR_LIMIT);
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'ENOENT' ? new Error(`cannot run ${file}: not found`, { cause: error }) : error);
    });
    child.on('close', (code, killedBy) => {
      if (code === 0) resolve(Buffer.concat(output));
      else reject(new Error(`${file} ${args.join(' ')} failed (${killedBy ?? `status ${code}`}): ${errors.trim()}`));
    });
    // A tool that stops reading early fails by its status, which says more than the broken pipe would.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input);
  });
}
