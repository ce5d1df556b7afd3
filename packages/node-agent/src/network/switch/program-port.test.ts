import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  A,
  B,
  hello,
  newSwitch,
  SERVICE,
  setState,
  since,
  stateOf,
} from '../../../../../test/testkit/switch-guests.ts';
import { type Clock, systemClock } from '../../../../runtime/src/clock/clock.ts';
import { createFrameStream, noteOf, withLength } from '../frame-stream.ts';
import { ipv4Of, makeFrame, numberOf, portsOf, put16, TCP, textOf } from '../ipv4-frame.ts';
import { dialHere } from './peer-links.ts';
import { connectProgram } from './program-port.ts';
import type { Entry } from './switch-state.ts';
import { ACK, FIN, makeSegment, RST, type Segment, SYN, segmentOf } from './tcp-connection.ts';

/** What is sent again comes sooner. */
const clock: Clock = { ...systemClock, schedule: (ms, fire) => systemClock.schedule(ms / 40, fire) };
const pause = (ms: number): Promise<void> => systemClock.sleep(ms, AbortSignal.timeout(60_000));
const NO_BYTES = new Uint8Array(0);
const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const OPTIONS = { largest: Uint8Array.from([2, 4, 5, 0xb4]), shifted: Uint8Array.from([2, 4, 5, 0xb4, 3, 3, 7, 1]) };

/** A switch with guest A, and a program at B behind the Service, which leads to a server of this process. */
async function world(serve: (socket: Socket) => void, more: { readonly ingress?: readonly string[] } = {}) {
  const server = createServer({ allowHalfOpen: true }, serve).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const network = newSwitch();
  const services: Entry<'services'>[] = [
    { address: SERVICE, protocol: 'tcp', port: 443, targets: [{ address: B, port: 8443 }] },
  ];
  const state = stateOf('one', [since(A), since(B)], { services });
  const pods = state.pods.map((pod) => (pod.address === B ? { ...pod, ...more } : pod));
  setState(network, { ...state, pods });
  const far = new Set<Duplex>();
  const connect = async (): Promise<Duplex> => {
    const socket = await dialHere({ host: '127.0.0.1', port });
    far.add(socket);
    return socket;
  };
  const end = connectProgram(network, { address: B, port: 8443 }, { clock, connect });
  return {
    network,
    server,
    far,
    close(): void {
      end();
      server.close();
    },
  };
}

/**
 * The TCP of a guest, as small as can be: what comes in order is kept, all else is asked for again. `loses` says of each segment
 * that is on its way, in either direction, whether it gets lost.
 */
function client(
  { network }: Pick<Awaited<ReturnType<typeof world>>, 'network'>,
  {
    loses = () => false,
    options = OPTIONS.shifted,
    window = 512,
    to = [SERVICE, 443] as const,
  }: {
    readonly loses?: () => boolean;
    readonly options?: Uint8Array;
    readonly window?: number;
    readonly to?: readonly [string, number];
  } = {},
) {
  const got: Uint8Array[] = [];
  const seen: Segment[] = [];
  let [sequence, expected, isOpen, isOver, isReset] = [7000, 0, false, false, false];
  let wide = window;
  /** What is to be sent, from `sequence` on; undefined behind its end. */
  let out: Uint8Array = NO_BYTES;
  let wake = (): void => {};
  const send = (segment: Partial<Segment>): void => {
    if (loses()) return;
    const bytes = makeSegment({
      sequence,
      confirmed: expected,
      flags: ACK,
      window: wide,
      options: NO_BYTES,
      data: NO_BYTES,
      ...segment,
    });
    put16(bytes, 0, 5000);
    put16(bytes, 2, to[1]);
    end.take(
      withLength(
        makeFrame({ protocol: TCP, source: numberOf('10.0.2.2'), destination: numberOf(to[0]), payload: bytes }),
      ),
    );
  };
  const take = (segment: Segment): void => {
    seen.push(segment);
    if (segment.flags & RST) isReset = true;
    else if (segment.flags & SYN) {
      expected = (segment.sequence + 1) >>> 0;
      if (!isOpen) sequence += 1;
      isOpen = true;
      send({});
    } else if (isOpen) {
      const confirmed = (segment.confirmed - sequence) | 0;
      if (confirmed > 0) {
        out = out.subarray(confirmed);
        sequence = segment.confirmed;
      }
      if (segment.sequence === expected && segment.data.length > 0) {
        got.push(Uint8Array.from(segment.data));
        expected = (expected + segment.data.length) >>> 0;
      }
      if (segment.flags & FIN && (segment.sequence + segment.data.length) >>> 0 === expected && !isOver) {
        expected = (expected + 1) >>> 0;
        isOver = true;
      }
      if (segment.data.length > 0 || segment.flags & FIN) send({});
    }
    wake();
  };
  const stream = createFrameStream((frame): undefined => {
    const packet = noteOf(frame) === undefined ? ipv4Of(frame) : undefined;
    if (packet?.protocol !== TCP || loses()) return;
    assert.deepEqual([textOf(packet.source), portsOf(frame, packet)?.source], [...to]);
    const segment = segmentOf(frame, packet);
    assert.ok(segment);
    const copy = { ...segment, data: segment.data.slice(), options: segment.options.slice() };
    setImmediate(() => take(copy));
  });
  const end = network.connectGuest(hello(A), { write: (bytes) => void stream.take(bytes) });
  const until = async (what: string, holds: () => boolean, again: () => void = () => {}): Promise<void> => {
    const limit = Date.now() + 60_000;
    while (!holds()) {
      assert.ok(Date.now() < limit, `${what}: ${got.length} pieces`);
      again();
      let cancel = (): void => {};
      await new Promise<void>((resolve) => {
        wake = resolve;
        cancel = systemClock.schedule(4, resolve);
      });
      cancel();
    }
  };
  return {
    send,
    seen,
    open: () =>
      until(
        'open',
        () => isOpen || isReset,
        () => send({ sequence: 7000, flags: SYN, options, confirmed: 0 }),
      ),
    /** Sends all of it, and its end. */
    async say(bytes: Uint8Array): Promise<void> {
      out = Buffer.concat([bytes, Buffer.of(0)]);
      await until(
        'said',
        () => out.length === 0,
        () => {
          const data = out.subarray(0, Math.min(1460, out.length - 1));
          const isLast = data.length === out.length - 1;
          send({ data, flags: ACK | (isLast ? FIN : 0) });
        },
      );
    },
    heard: () => until('heard', () => isOver || isReset),
    widen(now: number): void {
      wide = now;
      send({});
    },
    until,
    bytes: () => Buffer.concat(got),
    get isReset() {
      return isReset;
    },
  };
}

// S-1580: A guest reaches a program of a node, as the server of exports, by its Service: every byte comes once and in order,
//   whatever gets lost on the way, both directions end for themselves, and nobody is at any other port.
test('what a server of the node says reaches the guest whole, and the other way', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.infiniteStream(fc.integer({ min: 0, max: 99 })),
      fc.integer({ min: 0, max: 12 }),
      fc.constantFrom(OPTIONS.largest, OPTIONS.shifted, NO_BYTES),
      fc.integer({ min: 1, max: 300_000 }),
      async (random, lossPercent, options, size) => {
        const [down, up] = [randomBytes(size), randomBytes(Math.min(size, 20_000))];
        const heard: Buffer[] = [];
        const at = await world((socket) => {
          socket.on('data', (chunk: Buffer) => heard.push(chunk));
          socket.on('end', () => socket.end(down));
        });
        const guest = client(at, { loses: () => (random.next().value ?? 0) < lossPercent, options, window: 2000 });
        await guest.open();
        await guest.say(up);
        await guest.heard();
        at.close();
        assert.equal(sha(guest.bytes()), sha(down));
        assert.equal(sha(Buffer.concat(heard)), sha(up));
      },
    ),
    { numRuns: 12 },
  );
});

// S-1580
test('a guest that takes nothing is waited for, and no more is read for it than has room', async () => {
  const down = randomBytes(3_000_000);
  const at = await world((socket) => void socket.end(down));
  const guest = client(at, { window: 100 });
  await guest.open();
  await guest.until('some', () => guest.bytes().length >= 12_800);
  guest.widen(0);
  await pause(100);
  const [far] = at.far;
  assert.ok(guest.bytes().length < 40_000 && (far as Socket).bytesRead < 600_000, 'both wait');
  guest.widen(512);
  await guest.heard();
  at.close();
  assert.equal(sha(guest.bytes()), sha(down));
});

// S-1580
test('a server that does not answer, breaks off, or is asked at another port', async () => {
  const refusing = await world(() => {});
  refusing.server.close();
  const first = client(refusing);
  await first.open();
  assert.ok(first.isReset, 'nobody listens');
  refusing.close();

  const at = await world((socket) => socket.once('data', () => socket.resetAndDestroy()));
  const second = client(at);
  await second.open();
  second.send({ data: Uint8Array.of(1) });
  await second.heard();
  assert.ok(second.isReset, 'it broke off');
  // A segment of a connection that nobody knows.
  const third = client(at, { to: [B, 8443] });
  third.send({ data: Uint8Array.of(1) });
  await third.heard();
  const other = client(at, { to: [B, 22] });
  other.send({ sequence: 7000, flags: SYN, confirmed: 0 });
  await pause(50);
  assert.deepEqual(other.seen, []);
  at.close();
});

// S-1581: NetworkPolicies hold for guests that speak to a program of a node, as for any Pod.
test('a policy keeps a guest from a program', async () => {
  const at = await world((socket) => void socket.end('x'), { ingress: [] });
  const guest = client(at);
  guest.send({ sequence: 7000, flags: SYN, confirmed: 0 });
  await pause(100);
  assert.deepEqual([guest.seen.length, at.far.size], [0, 0]);
  at.close();
});
