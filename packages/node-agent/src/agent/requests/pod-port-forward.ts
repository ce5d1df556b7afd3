/**
 * `kubectl port-forward` to a launcher Pod: in a SPDY session each connection is a pair of streams, one for bytes and
 * one for what went wrong (kubelet/pkg/cri/streaming/portforward).
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { type Backpressure, createBackpressure, dialGuest, passOn, portNumber } from './guest-line.ts';
import { type SpdyStream, serveSpdy } from './spdy-session.ts';

export interface ForwardTarget {
  readonly pod: string;
  /** Where a port of the guest is reached on this host. Rejects with one line. */
  endpoint(port: number): Promise<{ readonly host: string; readonly port: number }>;
}

/** Serves connections until the far end closes the session. */
export function forwardPorts(socket: MessageSocket, target: ForwardTarget, { clock }: { readonly clock: Clock }): void {
  /** By request id: error streams whose data stream has not come yet. */
  const waiting = new Map<string, SpdyStream>();
  const brake = createBackpressure(socket);
  serveSpdy(socket, (stream) => {
    const type = stream.headers.get('streamtype');
    const id = stream.headers.get('requestid') ?? '';
    if (type === 'error') {
      waiting.set(id, stream);
      stream.onClose = () => waiting.delete(id);
      return;
    }
    if (type !== 'data') return stream.reset();
    const errors = waiting.get(id);
    waiting.delete(id);
    void connect(stream, errors, { socket, target, clock, brake });
  });
}

async function connect(
  stream: SpdyStream,
  errors: SpdyStream | undefined,
  { socket, target, clock, brake }: { socket: MessageSocket; target: ForwardTarget; clock: Clock; brake: Backpressure },
): Promise<void> {
  const text = stream.headers.get('port') ?? '';
  const early: Uint8Array[] = [];
  let ended = false;
  let gone = false;
  stream.onData = (bytes) => early.push(bytes);
  stream.onEnd = () => {
    ended = true;
  };
  stream.onClose = () => {
    gone = true;
  };
  const fail = (why: string): void => {
    errors?.write(Buffer.from(`error forwarding port ${text} to pod ${target.pod}, uid : ${why}`));
    errors?.end();
    stream.end();
    stream.reset();
  };
  const port = portNumber(text);
  if (port === undefined) return fail(`${JSON.stringify(text)} is not a port`);
  let address: { readonly host: string; readonly port: number };
  try {
    address = await target.endpoint(port);
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
  if (gone) return;
  const line = dialGuest({ ...address, allowHalfOpen: true }, clock, brake);
  const pass = (bytes: Buffer): void => stream.write(bytes);
  passOn(line, { pass, waiting: () => socket.buffered + stream.buffered, open: () => !gone }, clock);
  let failed = false;
  line.once('end', () => stream.end());
  line.once('error', (error) => {
    failed = true;
    if (!gone) fail(error.message);
  });
  line.once('close', () => {
    if (failed) return;
    stream.end();
    errors?.end();
  });
  stream.onClose = () => {
    gone = true;
    line.destroy();
  };
  stream.onData = (bytes) => brake.give(line, bytes);
  stream.onEnd = () => void line.end();
  for (const bytes of early) line.write(bytes);
  if (ended) line.end();
}
