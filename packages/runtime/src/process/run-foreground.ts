/**
 * Runs a program in the user's place: it has our terminal, input and output, until it ends. For programs of the user's own
 * host that talk to the user, such as ssh.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** As shells tell that a signal ended a program. */
const SIGNALLED = 128;

/**
 * Resolves to its exit code, 128 and more when a signal ended it. Ctrl-C is the program's as long as it runs. Rejects with one
 * line when it cannot be started. `env` is its whole environment.
 */
export function runForeground(
  argv: readonly string[],
  { env }: { readonly env: Readonly<Record<string, string | undefined>> },
): Promise<number> {
  const [tool = '', ...args] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(tool, args, { env: { ...env }, stdio: 'inherit' });
    const leave = (): void => {};
    process.on('SIGINT', leave);
    const over = (): void => void process.off('SIGINT', leave);
    child.once('error', (error: NodeJS.ErrnoException) => {
      over();
      reject(new Error(`${tool}: ${error.code === 'ENOENT' ? 'not found in PATH; install it' : error.message}`));
    });
    child.once('exit', (code, signal) => {
      over();
      resolve(code ?? SIGNALLED + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}
