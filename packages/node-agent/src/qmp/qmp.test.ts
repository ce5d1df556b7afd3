import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { QmpEvent } from './commands.ts';
import { createLineReader } from './line-reader.ts';
import { connectQmp, keepQmp, type QmpError } from './qmp-connection.ts';
import { connectUnix } from './unix-socket.ts';

const GREETING = '{"QMP":{"version":{},"capabilities":[]}}\r\n';
const signal = new AbortController().signal;
let dir = '';
let server: Server | undefined;
const sockets = new Set<Socket>();

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coracle-qmp-'));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise<void>((done) => (server ? server.close(() => done()) : done()));
  server = undefined;
  await rm(dir, { recursive: true });
});

/** A peer that greets and answers each line by `answer`; undefined = silence. */
async function fakeQemu(
  answer: (command: string, id: number, socket: Socket) => string | undefined,
  greeting = GREETING,
  path = join(dir, 'qmp.sock'),
): Promise<string> {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.write(greeting);
    const reader = createLineReader(1 << 20, (line) => {
      const { execute, id } = JSON.parse(line) as { execute: string; id: number };
      const text = execute === 'qmp_capabilities' ? `{"return":{},"id":${id}}\n` : answer(execute, id, socket);
      if (text !== undefined) socket.write(text);
    });
    socket.on('data', (chunk: Buffer) => reader(chunk));
  });
  await new Promise<void>((done) => server?.listen(path, done));
  return path;
}

test('execute() matches answers by id, whatever their order', async () => {
  let held = '';
  const path = await fakeQemu((command, id) => {
    if (command === 'query-status') {
      held = `{"return":{"status":"running","running":true},"id":${id}}\n`;
      return undefined;
    }
    return `{"return":{"UUID":"u"},"id":${id}}\n${held}`;
  });
  const qmp = await connectQmp(path, { clock: systemClock, signal });
  const [status, uuid] = await Promise.all([qmp.execute('query-status'), qmp.execute('query-uuid')]);
  assert.deepEqual([status.status, uuid.UUID], ['running', 'u']);
  qmp.close();
});

test('execute() throws QEMU error text and class', async () => {
  const path = await fakeQemu((_, id) => `{"error":{"class":"GenericError","desc":"no"},"id":${id}}\n`);
  const qmp = await connectQmp(path, { clock: systemClock, signal });
  await assert.rejects(qmp.execute('cont'), (error: QmpError) => {
    assert.deepEqual([error.failure, error.message], ['refused', 'cont: no']);
    return true;
  });
  qmp.close();
});

// S-064: Every QMP call has a time limit; garbage and endless lines cost the connection, nothing else.
test('a silent QEMU costs the limit of the call, and a late answer is ignored', async () => {
  const clock = createFakeClock();
  let late: () => void = () => {};
  let arrived: () => void = () => {};
  const received = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const path = await fakeQemu((_, id, socket) => {
    arrived();
    late = () =>
      socket.write(`{"return":{},"id":${id}}\n{"event":"STOP","timestamp":{"seconds":1,"microseconds":2}}\n`);
    return undefined;
  });
  let seen: (event: QmpEvent) => void = () => {};
  const event = new Promise<QmpEvent>((resolve) => {
    seen = resolve;
  });
  const qmp = await connectQmp(path, { clock, signal, onEvent: (e) => seen(e) });
  const call = qmp.execute('stop', undefined, { timeoutMs: 700 });
  call.catch(() => {});
  await received;
  await clock.advance(700);
  await assert.rejects(call, { failure: 'timeout' });
  late();
  assert.deepEqual(await event, { event: 'STOP', data: {}, timestamp: { seconds: 1, microseconds: 2 } });
  qmp.close();
});

// S-064
test('no greeting, garbage and early close are errors, not hangs', async () => {
  for (const [greeting, failure] of [
    ['not json\n', 'closed'],
    ['[1]\n', 'closed'],
    ['', 'timeout'],
  ] as const) {
    const path = await fakeQemu(() => undefined, greeting);
    await assert.rejects(connectQmp(path, { clock: systemClock, signal, timeoutMs: 150 }), { failure }, greeting);
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((done) => server?.close(() => done()));
    server = undefined;
  }
});

test('closing rejects what is in flight', async () => {
  const path = await fakeQemu((_, __, socket) => void socket.destroy());
  const qmp = await connectQmp(path, { clock: systemClock, signal });
  await assert.rejects(qmp.execute('query-status'), { failure: 'closed' });
  assert.match(await qmp.closed, /closed|reset/i);
  await assert.rejects(qmp.execute('query-status'), { failure: 'closed' });
});

// S-064
test('the line reader joins pieces, drops CR and blank lines, and enforces its bound', () => {
  const lines: string[] = [];
  const reader = createLineReader(10, (line) => lines.push(line));
  for (const piece of ['ab', 'c\r\n\nd', 'é\n', '']) reader(new TextEncoder().encode(piece));
  assert.deepEqual(lines, ['abc', 'dé']);
  assert.throws(() => reader(new Uint8Array(11).fill(65)), /longer than 10 bytes/);
});

test('keepQmp() connects again after a loss and stops with its signal', async () => {
  const path = await fakeQemu((_, __, socket) => void socket.destroy());
  const stop = new AbortController();
  const log: string[] = [];
  await keepQmp(path, {
    clock: systemClock,
    signal: stop.signal,
    onEvent: () => {},
    onConnected: (connection) => {
      log.push('up');
      if (log.filter((l) => l === 'up').length === 3) stop.abort();
      else connection.execute('query-status').catch(() => {});
    },
    onLost: () => log.push('down'),
  });
  assert.deepEqual(log, ['up', 'down', 'up', 'down', 'up', 'down']);
});

test('a socket path beyond 107 bytes is reached through its directory', async () => {
  const long = join(dir, 'd'.repeat(90));
  await mkdir(long, { recursive: true });
  const before = process.cwd();
  process.chdir(long);
  await fakeQemu(() => undefined, GREETING, 'q.sock');
  process.chdir(before);
  const socket = await connectUnix(join(long, 'q.sock'), { clock: systemClock, timeoutMs: 1000, signal });
  socket.destroy();
});
