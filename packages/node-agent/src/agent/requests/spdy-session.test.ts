import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { constants, createDeflate, createInflate } from 'node:zlib';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { createMessagePair } from '../../../../runtime/src/http/message-pair.ts';
import { forwardPorts } from './pod-port-forward.ts';
import { encodeFrame, INITIAL_WINDOW, type SpdyFrame } from './spdy-frames.ts';
import { SPDY_DICTIONARY } from './spdy-header-codec.ts';

test('the dictionary is the protocol`s', () => {
  let [a, b] = [1, 0];
  for (const byte of SPDY_DICTIONARY) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  assert.equal(SPDY_DICTIONARY.length, 1423);
  assert.equal(((b << 16) | a) >>> 0, 0xe3c6a7c2);
});

/** A client as kubectl is one: it opens streams, and gathers what each is sent. */
function client(endpoint: (port: number) => Promise<{ host: string; port: number }>) {
  const [near, far] = createMessagePair('');
  forwardPorts(far, { pod: 'p', endpoint }, { clock: systemClock });
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY, flush: constants.Z_SYNC_FLUSH });
  const inflate = createInflate({ dictionary: SPDY_DICTIONARY });
  const replies: string[] = [];
  inflate.on('data', (chunk: Buffer) => replies.push(chunk.toString('hex')));
  const streams = new Map<number, { text: string; fin: boolean; reset: boolean }>();
  const pings: number[] = [];
  const windows = new Map<number, number>();
  let closed = false;
  let pending = Buffer.alloc(0);
  const of = (id: number) => {
    const known = streams.get(id) ?? { text: '', fin: false, reset: false };
    streams.set(id, known);
    return known;
  };
  near.onClose(() => {
    closed = true;
  });
  near.onMessage((bytes) => {
    pending = Buffer.concat([pending, bytes]);
    while (pending.length >= 8) {
      const length = pending.readUInt32BE(4) & 0xff_ffff;
      if (pending.length < 8 + length) return;
      const [first, flags, payload] = [pending.readUInt32BE(0), pending[4]!, pending.subarray(8, 8 + length)];
      pending = pending.subarray(8 + length);
      if (first >>> 31 === 0) {
        of(first).text += payload.toString();
        of(first).fin ||= (flags & 1) !== 0;
      } else if ((first & 0xffff) === 2) inflate.write(payload.subarray(4));
      else if ((first & 0xffff) === 3) of(payload.readUInt32BE(0)).reset = true;
      else if ((first & 0xffff) === 6) pings.push(payload.readUInt32BE(0));
      else if ((first & 0xffff) === 9) {
        const id = payload.readUInt32BE(0);
        windows.set(id, (windows.get(id) ?? 0) + payload.readUInt32BE(4));
      }
    }
  });
  const frame = (first: number, flags: number, payload: Uint8Array): void => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(first >>> 0, 0);
    head.writeUInt32BE(payload.length, 4);
    head[4] = flags;
    // In two pieces: frames need not come whole.
    near.send(head.subarray(0, 5));
    near.send(Buffer.concat([head.subarray(5), payload]));
  };
  const open = async (id: number, headers: Record<string, string>, flags = 0): Promise<void> => {
    const parts: Buffer[] = [];
    const word = (text: string): void => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(text.length);
      parts.push(length, Buffer.from(text));
    };
    const count = Buffer.alloc(4);
    count.writeUInt32BE(Object.keys(headers).length);
    parts.push(count);
    for (const [name, value] of Object.entries(headers)) {
      word(name);
      word(value);
    }
    const block = await new Promise<Buffer>((resolve) => {
      const chunks: Buffer[] = [];
      const take = (chunk: Buffer): number => chunks.push(chunk);
      deflate.on('data', take);
      deflate.write(Buffer.concat(parts), () =>
        deflate.flush(constants.Z_SYNC_FLUSH, () => {
          deflate.off('data', take);
          resolve(Buffer.concat(chunks));
        }),
      );
    });
    const head = Buffer.alloc(10);
    head.writeUInt32BE(id, 0);
    frame(0x80030001, flags, Buffer.concat([head, block]));
  };
  const until = async (wanted: () => boolean): Promise<void> => {
    while (!wanted()) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    open,
    until,
    streams: of,
    pings,
    replies,
    isClosed: () => closed,
    /** What may be sent more, as the server has said, by stream. */
    windows,
    frame: (one: SpdyFrame) => near.send(encodeFrame(one)),
    send: (id: number, text: string, flags = 0) => frame(id, flags, Buffer.from(text)),
    ping: (id: number) => {
      const payload = Buffer.alloc(4);
      payload.writeUInt32BE(id);
      frame(0x80030006, 0, payload);
    },
    raw: (bytes: Uint8Array) => near.send(bytes),
    close: () => near.close(),
  };
}

/** Says back what it hears, in capitals. */
async function echo(): Promise<{ port: number; close(): void }> {
  const server = createServer({ allowHalfOpen: true }, (line) => {
    line.on('data', (chunk) => line.write(chunk.toString().toUpperCase()));
    line.on('end', () => line.end());
    line.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as { port: number }).port, close: () => server.close() };
}

const pair = (id: string, port = '80') => [
  { streamtype: 'error', port, requestid: id },
  { streamtype: 'data', port, requestid: id },
];

test('forwardPorts(): connections one after the other and side by side reach the guest and end apart', async () => {
  const guest = await echo();
  const asked: number[] = [];
  const kubectl = client(async (port) => {
    asked.push(port);
    return { host: '127.0.0.1', port: guest.port };
  });
  for (const [n, id] of [
    [1, '0'],
    [5, '1'],
  ] as const) {
    const [errors, data] = pair(id);
    await kubectl.open(n, errors!, 1);
    await kubectl.open(n + 2, data!);
  }
  kubectl.send(3, 'hello');
  kubectl.send(7, 'world');
  await kubectl.until(() => kubectl.streams(3).text === 'HELLO' && kubectl.streams(7).text === 'WORLD');
  kubectl.send(3, '', 1);
  await kubectl.until(() => kubectl.streams(3).fin && kubectl.streams(1).fin);
  assert.equal(kubectl.streams(1).text, '');
  kubectl.send(7, '!');
  await kubectl.until(() => kubectl.streams(7).text === 'WORLD!');
  assert.deepEqual(asked, [80, 80]);
  assert.equal(kubectl.replies.join('').startsWith('00000000'), true);
  kubectl.ping(1);
  await kubectl.until(() => kubectl.pings[0] === 1);
  kubectl.close();
  guest.close();
});

test('forwardPorts(): what went wrong is reported on the error stream', async () => {
  const kubectl = client(() => Promise.reject(new Error('no such port')));
  const [errors, data] = pair('0', '9');
  await kubectl.open(1, errors!, 1);
  await kubectl.open(3, data!);
  await kubectl.until(() => kubectl.streams(1).fin);
  assert.equal(kubectl.streams(1).text, 'error forwarding port 9 to pod p, uid : no such port');
  const [, odd] = pair('1', 'x');
  await kubectl.open(5, odd!);
  await kubectl.until(() => kubectl.streams(5).fin);
  kubectl.close();
});

test('what is no SPDY/3 ends the session', async () => {
  const kubectl = client(() => Promise.reject(new Error('unused')));
  kubectl.raw(Buffer.from('80020001000000020000', 'hex'));
  await kubectl.until(kubectl.isClosed);
});

test('a far end that counts windows is sent no more than they allow, and notified of what was taken', async () => {
  const guest = await echo();
  const careful = client(async () => ({ host: '127.0.0.1', port: guest.port }));
  careful.frame({ type: 'settings', values: new Map([[7, 1000]]) });
  const [errors, data] = pair('0');
  await careful.open(1, errors!, 1);
  await careful.open(3, data!);
  const sent = 3 * INITIAL_WINDOW;
  for (let i = 0; i < sent; i += 1024) careful.send(3, 'x'.repeat(1024));
  const credited = (id: number): number => careful.windows.get(id) ?? 0;
  await careful.until(() => credited(0) >= sent - INITIAL_WINDOW / 2 && credited(3) >= sent - INITIAL_WINDOW / 2);
  assert.ok(credited(0) <= sent && credited(3) <= sent);
  await careful.until(() => careful.streams(3).text.length >= 1000);
  // An answer to a ping comes behind all that was sent before it.
  careful.ping(1);
  await careful.until(() => careful.pings.length === 1);
  assert.equal(careful.streams(3).text.length, 1000);

  // The stream may have more than the session: the narrower of the two holds.
  careful.frame({ type: 'window-update', stream: 3, delta: sent });
  await careful.until(() => careful.streams(3).text.length >= INITIAL_WINDOW);
  careful.ping(3);
  await careful.until(() => careful.pings.length === 2);
  assert.equal(careful.streams(3).text.length, INITIAL_WINDOW);
  careful.frame({ type: 'window-update', stream: 0, delta: sent });
  await careful.until(() => careful.streams(3).text.length === sent);
  careful.send(3, '', 1);
  await careful.until(() => careful.streams(3).fin);
  careful.close();
  guest.close();
});

test('a window beyond all bounds, and a stream with an id of the server, end the session', async () => {
  for (const odd of [
    { type: 'window-update', stream: 0, delta: 0x7fff_ffff },
    { type: 'settings', values: new Map([[7, 0x8000_0000]]) },
    {
      type: 'syn-stream',
      stream: 2,
      fin: false,
      block: new Uint8Array(),
    },
  ] satisfies SpdyFrame[]) {
    const kubectl = client(() => Promise.reject(new Error('unused')));
    kubectl.frame(odd);
    await kubectl.until(kubectl.isClosed);
  }
});

test('streams beyond the bound are refused, those before it live on', async () => {
  const guest = await echo();
  const kubectl = client(async () => ({ host: '127.0.0.1', port: guest.port }));
  for (let i = 0; i < 512; i++)
    await kubectl.open(2 * i + 1, { streamtype: 'error', port: '80', requestid: `${i}` }, 1);
  await kubectl.open(1025, pair('0')[1]!);
  await kubectl.until(() => kubectl.streams(1025).reset);
  kubectl.ping(1);
  await kubectl.until(() => kubectl.pings.length === 1);
  assert.equal(kubectl.isClosed(), false);
  kubectl.close();
  guest.close();
});

test('headers that unfold beyond the bound end the session', async () => {
  const kubectl = client(() => Promise.reject(new Error('unused')));
  void kubectl.open(1, { bomb: 'x'.repeat(1024 * 1024) });
  await kubectl.until(kubectl.isClosed);
});
