/**
 * The older way to forward ports, over a WebSocket with the sub-protocol `v4.channel.k8s.io`, as client libraries other
 * than kubectl's do it: the ports stand in the query, and each has two channels, one for bytes and one for what went
 * wrong (kubelet/pkg/cri/streaming/portforward/websocket.go). The first byte of a message is its channel; the first
 * message on each channel is the port, low byte first.
 */
import type { Socket } from 'node:net';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { CONNECT_MS, createBackpressure, dialGuest, MAX_BUFFERED, passOn, portNumber } from './guest-line.ts';
import type { ForwardTarget } from './pod-port-forward.ts';

export const CHANNEL_PROTOCOL = 'v4.channel.k8s.io';
/** Ports of one WebSocket. */
const MAX_PORTS = 32;

/** The ports asked for. Throws ApiError 400 when there are none, too many, or one is no port. */
export function portsOf(query: string): readonly number[] {
  const texts = new URLSearchParams(query).getAll('ports').flatMap((text) => text.split(','));
  if (texts.length === 0) throw badRequest('query parameter "ports" is required');
  if (texts.length > MAX_PORTS) throw badRequest(`more than ${MAX_PORTS} ports`);
  return texts.map((text) => {
    const port = portNumber(text);
    if (port === undefined) throw badRequest(`invalid port ${JSON.stringify(text)}`);
    return port;
  });
}

/** Connects to every port and pumps until all of them, or the far end, have closed. */
export function forwardChannels(
  socket: MessageSocket,
  ports: readonly number[],
  { target, clock }: { readonly target: ForwardTarget; readonly clock: Clock },
): void {
  const lines = new Map<number, Socket>();
  const early = new Map<number, Uint8Array[]>();
  const brake = createBackpressure(socket);
  let left = ports.length;
  let open = true;
  const say = (channel: number, bytes: Uint8Array): void => {
    if (open) socket.send(Buffer.concat([Buffer.of(channel), bytes]));
  };
  const done = (): void => {
    if (--left === 0 && open) socket.close(1000, '');
  };
  const connect = async (port: number, channel: number): Promise<void> => {
    const fail = (why: string): void =>
      say(channel + 1, Buffer.from(`error forwarding port ${port} to pod ${target.pod}, uid : ${why}`));
    let line: Socket;
    try {
      line = dialGuest(await target.endpoint(port), clock, brake);
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
      return done();
    }
    if (!open) return void line.destroy();
    lines.set(channel, line);
    const pass = (bytes: Buffer): void => say(channel, bytes);
    passOn(line, { pass, waiting: () => socket.buffered, open: () => open }, clock);
    line.once('error', (error) => fail(error.message));
    line.once('close', done);
    for (const bytes of early.get(channel) ?? []) brake.give(line, bytes);
    early.delete(channel);
  };

  for (const [i, port] of ports.entries()) {
    const number = Buffer.of(port & 0xff, port >> 8);
    say(2 * i, number);
    say(2 * i + 1, number);
    early.set(2 * i, []);
    void connect(port, 2 * i);
  }
  let waiting = 0;
  socket.onMessage((message) => {
    const [channel = 0] = message;
    const bytes = message.subarray(1);
    const line = lines.get(channel);
    if (line) return brake.give(line, bytes);
    waiting += bytes.length;
    if (waiting > MAX_BUFFERED) return socket.close(1009, 'nothing is connected yet');
    early.get(channel)?.push(bytes);
  });
  socket.onClose(() => {
    open = false;
    for (const line of lines.values()) line.end();
    // What was received is still delivered.
    clock.schedule(CONNECT_MS, () => {
      for (const line of lines.values()) line.destroy();
    });
  });
}
