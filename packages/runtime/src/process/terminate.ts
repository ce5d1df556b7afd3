/** The kill ladder for a process we may not be the parent of. */
import type { Clock } from '../clock/clock.ts';
import { isRunning, type ProcessIdentity, signalProcess } from './identity.ts';

export interface TerminateOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Between SIGTERM and SIGKILL; 0 sends SIGKILL at once. */
  readonly graceMs: number;
}

const POLL_MS = 50;

/** Resolves true when the process is gone within `ms`. */
export async function waitGone(
  identity: ProcessIdentity,
  ms: number,
  { clock, signal }: Pick<TerminateOptions, 'clock' | 'signal'>,
): Promise<boolean> {
  const deadline = clock.monotonic() + ms;
  for (;;) {
    if (!(await isRunning(identity))) return true;
    if (clock.monotonic() >= deadline) return false;
    await clock.sleep(POLL_MS, signal);
  }
}

/** SIGTERM, wait, SIGKILL, wait. Resolves when the process is gone; throws when it survives SIGKILL for 10 s. */
export async function terminate(identity: ProcessIdentity, options: TerminateOptions): Promise<void> {
  if (options.graceMs > 0) {
    await signalProcess(identity, 'SIGTERM');
    if (await waitGone(identity, options.graceMs, options)) return;
  }
  await signalProcess(identity, 'SIGKILL');
  if (await waitGone(identity, 10_000, options)) return;
  throw new Error(`process ${identity.pid} did not end within 10 s of SIGKILL (stuck in the kernel?)`);
}
