/** A connection that is being made. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';

/** Waits until it is open. Rejects, and destroys it, on a failure, after `timeoutMs` with the text `late`, or on abort. */
export async function awaitConnection(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly late: string; readonly signal: AbortSignal },
): Promise<void> {
  const limit = createLinkedController(options.signal);
  const cancel = options.clock.schedule(options.timeoutMs, () => limit.abort(new Error(options.late)));
  socket.on('error', () => {});
  try {
    await once(socket, event, { signal: limit.signal });
  } catch (error) {
    socket.destroy();
    throw limit.signal.aborted ? limit.signal.reason : error;
  } finally {
    cancel();
    limit.release();
  }
}
