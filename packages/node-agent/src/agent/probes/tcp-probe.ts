/**
 * Whether a guest takes a connection at a port. QEMU takes every connection to a forwarded port itself before it knocks at
 * the guest's, so an open one proves nothing: QEMU is asked how far it has come with the guest.
 */
import { createConnection } from 'node:net';
import type { ProbeOutcome } from '@coracle/kubevirt/rules/probe/probe-count';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Forwarder } from '../../network/forwarder.ts';

/** The guest has not answered yet. */
const KNOCKING = new Set(['SYN_SENT', 'SYN_RECEIVED']);
const POLL_MS = 30;

/**
 * Dials once. `name` is how the guest's port is called in messages. Rejects with the signal alone.
 * A server that closes at once without a word cannot be distinguished from a closed port, and counts as one.
 */
export async function probeTcp(
  forwarder: Forwarder,
  port: number,
  {
    name,
    clock,
    timeoutMs,
    signal,
  }: { readonly name: string; readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<ProbeOutcome> {
  const failure = (why: string): ProbeOutcome => ({ type: 'failure', output: `dial tcp ${name}: ${why}` });
  const target = await forwarder.endpoint(port);
  const limit = clock.monotonic() + timeoutMs;
  const socket = createConnection(target);
  let seen: ProbeOutcome | undefined;
  const see = (outcome: ProbeOutcome): void => {
    seen ??= outcome;
  };
  socket.once('data', () => see({ type: 'success' }));
  socket.once('error', (error) => see(failure(`connect: ${error.message}`)));
  socket.once('close', () => see(failure('connect: connection refused')));
  try {
    while (!seen && clock.monotonic() < limit) {
      const states = await forwarder.states(port);
      if (states.length > 0 && !states.some((state) => KNOCKING.has(state))) see({ type: 'success' });
      else await clock.sleep(POLL_MS, signal);
    }
    return seen ?? failure('i/o timeout');
  } finally {
    socket.destroy();
  }
}
