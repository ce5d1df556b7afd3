/**
 * A program of this node as a Pod of the network: it has an address, and its one port is a server that the node reaches. The
 * switch gives it frames like a guest, so that Services, policies and switches of other nodes do what they do for guests.
 */
import type { Duplex } from 'node:stream';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createFrameStream, noteOf, withLength } from '../frame-stream.ts';
import { ipv4Of, makeFrame, numberOf, opensConnection, portsOf, put16, TCP } from '../ipv4-frame.ts';
import type { ClusterSwitch } from './cluster-switch.ts';
import { refusalOf } from './refusal.ts';
import type { GuestHello, NetworkProgram } from './switch-state.ts';
import { makeSegment, RST, type Segment, segmentOf, TcpConnection } from './tcp-connection.ts';

/** Of one program, as many as its server takes. */
const MAX_CONNECTIONS = 64;
/** As a guest of QEMU's user-mode network knows itself. */
const INSIDE = { inside: '10.0.2.2', gateway: '10.0.2.1', dns: '10.0.2.3', mac: '02:00:00:00:00:00' } as const;

const NO_BYTES = new Uint8Array(0);

export interface ProgramPortOptions {
  readonly clock: Clock;
  /** Connects to the server; rejects when it does not answer. */
  readonly connect: () => Promise<Duplex>;
}

/** Connects it to the switch. The function that is returned ends it with all its connections. */
export function connectProgram(
  network: Pick<ClusterSwitch, 'connectGuest'>,
  { address, port }: NetworkProgram,
  { clock, connect }: ProgramPortOptions,
): () => void {
  const self = numberOf(INSIDE.inside);
  /** By the address and port of the guest; undefined while the server has not answered. */
  const connections = new Map<string, TcpConnection | undefined>();
  const send = (destination: number, ownPort: number, otherPort: number, segment: Segment): void => {
    const payload = makeSegment(segment);
    put16(payload, 0, ownPort);
    put16(payload, 2, otherPort);
    end.take(withLength(makeFrame({ protocol: TCP, source: self, destination, payload })));
  };
  const refuse = (frame: Uint8Array): void => {
    const packet = ipv4Of(frame);
    const refusal = packet && refusalOf(frame, packet);
    if (refusal) end.take(withLength(refusal));
  };
  const open = async (frame: Uint8Array, key: string, reply: (segment: Segment) => void): Promise<void> => {
    const packet = ipv4Of(frame);
    const opening = packet && segmentOf(frame, packet);
    if (!opening) return;
    if (connections.size >= MAX_CONNECTIONS) return refuse(frame);
    connections.set(key, undefined);
    const far = await connect().catch(() => undefined);
    if (!far || isOver) {
      far?.destroy();
      connections.delete(key);
      return refuse(frame);
    }
    const initial = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
    const forget = (): void => void connections.delete(key);
    connections.set(key, new TcpConnection(opening, { far, send: reply, clock, initial, forget }));
  };
  let isOver = false;
  const stream = createFrameStream((frame): undefined => {
    const packet = noteOf(frame) === undefined ? ipv4Of(frame) : undefined;
    const ports = packet?.protocol === TCP && !packet.isPart ? portsOf(frame, packet) : undefined;
    if (!packet || !ports || ports.destination !== port) return;
    const key = `${packet.source}/${ports.source}`;
    const segment = segmentOf(frame, packet);
    if (!segment) return;
    const known = connections.get(key);
    if (known) known.take(segment);
    else if (opensConnection(frame, packet) && !connections.has(key)) {
      const reply = (answer: Segment): void => send(packet.source, port, ports.source, answer);
      // A copy: the frame is the switch's.
      void open(Uint8Array.prototype.slice.call(frame), key, reply);
    } else if (!connections.has(key) && !(segment.flags & RST)) {
      // Of a connection to an earlier switch.
      const { confirmed: sequence } = segment;
      send(packet.source, port, ports.source, { ...segment, sequence, flags: RST, options: NO_BYTES, data: NO_BYTES });
    }
  });
  const hello: GuestHello = { type: 'guest', address, ...INSIDE, ports: [{ protocol: 'tcp', port }] };
  const end = network.connectGuest(hello, { write: (bytes) => void stream.take(bytes) });
  return () => {
    isOver = true;
    for (const connection of connections.values()) connection?.reset();
    end.close();
  };
}
