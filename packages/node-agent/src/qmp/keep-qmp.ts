/** Keeps a QMP connection open: reconnects until stopped, after its first second with a growing pause. Events between two connections are lost. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { QmpEvent } from './commands.ts';
import { connectQmp, type QmpConnection } from './qmp-connection.ts';

export interface KeepQmpOptions {
  readonly clock: Clock;
  /** Ends the keeping and the connection. */
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  readonly onEvent: (event: QmpEvent) => void;
  /** A fresh connection: query everything again. */
  readonly onConnected: (connection: QmpConnection) => void;
  /** The connection, or an attempt, failed. */
  readonly onLost: (reason: string) => void;
}

const FIRST_PAUSE_MS = 20;
/** A QEMU that starts listens after a tenth of a second: until then the pause does not grow. */
const STARTING_MS = 1000;
const MAX_PAUSE_MS = 2000;

/** Runs until the signal fires. Never rejects. */
export async function keepQmp(path: string, options: KeepQmpOptions): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  const began = options.clock.monotonic();
  while (!options.signal.aborted) {
    try {
      const connection = await connectQmp(path, {
        clock: options.clock,
        signal: options.signal,
        onEvent: options.onEvent,
        ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
      });
      pause = FIRST_PAUSE_MS;
      options.onConnected(connection);
      options.onLost(await connection.closed);
    } catch (error) {
      if (options.signal.aborted) return;
      options.onLost(error instanceof Error ? error.message : String(error));
    }
    await options.clock.sleep(pause, options.signal).catch(() => {});
    if (options.clock.monotonic() - began >= STARTING_MS) pause = Math.min(pause * 2, MAX_PAUSE_MS);
  }
}
