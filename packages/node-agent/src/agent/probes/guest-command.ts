/** A command in a guest, by its agent. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { GuestAgent } from '../../qmp/guest-agent.ts';

export interface CommandEnd {
  /** Undefined when the time was over first: the command goes on in the guest, which nobody can end from here. */
  readonly exitCode: number | undefined;
  /** What it wrote, cut to MAX_OUTPUT characters. */
  readonly output: string;
}

const MAX_OUTPUT = 10 * 1024;
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 500;

/** Runs it without a shell and waits for its end. Throws QmpError. */
export async function runInGuest(
  agent: GuestAgent,
  command: readonly string[],
  { clock, timeoutMs, signal }: { readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<CommandEnd> {
  const limit = clock.monotonic() + timeoutMs;
  const [path = '', ...arg] = command;
  const started = await agent.converse((ask) => ask('guest-exec', { path, arg, 'capture-output': true }));
  const pid = fieldOf(started, 'pid');
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(2 * pause, MAX_POLL_MS)) {
    // Others talk with the agent between two looks.
    const status = await agent.converse((ask) => ask('guest-exec-status', { pid }));
    if (fieldOf(status, 'exited') === true) {
      const exitCode = fieldOf(status, 'exitcode');
      const output = textOf(fieldOf(status, 'out-data')) + textOf(fieldOf(status, 'err-data'));
      // Ended by a signal: a shell would say 128 and more.
      return { exitCode: typeof exitCode === 'number' ? exitCode : 128, output: output.slice(0, MAX_OUTPUT) };
    }
    const left = limit - clock.monotonic();
    if (left <= 0) return { exitCode: undefined, output: '' };
    await clock.sleep(Math.min(pause, left), signal);
  }
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
const textOf = (value: unknown): string =>
  typeof value === 'string' ? Buffer.from(value.slice(0, 2 * MAX_OUTPUT), 'base64').toString('utf8') : '';
