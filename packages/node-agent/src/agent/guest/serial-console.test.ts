import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { createMessagePair } from '../../../../runtime/src/http/message-pair.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { openSerialConsole, type SerialConsole } from './serial-console.ts';

const MIB = 1024 * 1024;

interface Line {
  readonly directory: string;
  readonly console: SerialConsole;
  /** The guest writes: to the socket, and to the log as QEMU does. */
  print(text: string): Promise<void>;
}

/** QEMU's end of a serial line: a unix socket that we connect to, and a log that grows beside it. */
async function serialLine(t: TestContext): Promise<Line> {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-serial-'));
  const stop = new AbortController();
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  server.listen(join(directory, VM_FILES.serial));
  await once(server, 'listening');
  t.after(async () => {
    stop.abort();
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(directory, { recursive: true, force: true });
  });
  const connected = once(server, 'connection');
  const console = openSerialConsole(directory, { clock: systemClock, signal: stop.signal, log: true });
  await connected;
  return {
    directory,
    console,
    async print(text) {
      await appendFile(join(directory, VM_FILES.serialLog), text);
      await new Promise<void>((done) => sockets[0]!.write(text, () => done()));
    },
  };
}

// S-077: The scrollback of the console on disk stays within its bound.
test('the log of a guest that never stops talking stays within two megabytes, and its tail within its bound', async (t) => {
  const { directory, console, print } = await serialLine(t);
  const log = join(directory, VM_FILES.serialLog);
  const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => ({ size: 0 }))).size;
  const block = `${'x'.repeat(1023)}\n`.repeat(256);
  let most = 0;
  for (let sent = 0; sent < 12 * MIB; sent += block.length) {
    await print(block);
    const mark = `${sent}\n`;
    await print(mark);
    // Read by us: what is cut is cut by what has been read.
    await eventually('the line is read', () => new TextDecoder().decode(console.tail()).endsWith(mark));
    await eventually('the log is cut', async () => (await sizeOf(log)) < MIB + 2 * block.length);
    most = Math.max(most, (await sizeOf(log)) + (await sizeOf(`${log}.1`)));
  }
  assert.ok(most > MIB, 'something was kept');
  assert.ok(most < 3 * MIB, `${most} bytes on disk`);
  assert.equal(console.tail().length, 64 * 1024);
});

// S-077
test('a log that fills while its end is copied to a slow disk is cut again, though the guest is silent by then', async (t) => {
  const { directory, console, print } = await serialLine(t);
  const log = join(directory, VM_FILES.serialLog);
  const sizeOf = async (): Promise<number> => (await stat(log)).size;
  // A copy into a pipe waits for a reader.
  execFileSync('mkfifo', [`${log}.1`]);
  await print('x'.repeat(MIB));
  await eventually('the log is emptied', async () => (await sizeOf()) === 0);
  await print(`${'x'.repeat(MIB)}end`);
  await eventually('all is read', () => new TextDecoder().decode(console.tail()).endsWith('end'));
  assert.ok((await sizeOf()) > MIB);
  const reader = spawn('sh', ['-c', 'while :; do cat "$0" > /dev/null; done', `${log}.1`], { detached: true });
  t.after(() => process.kill(-reader.pid!, 'SIGKILL'));
  await eventually('the log is cut again', async () => (await sizeOf()) < MIB);
});

// S-398: One client has the serial console: the next takes it over, and gets what comes, or the backlog first.
test('one client has the console: the next takes it over and gets what comes, or the backlog first', async (t) => {
  const { console, print } = await serialLine(t);
  await print('booting\n');
  await eventually('the first line', () => console.tail().length > 0);
  const open = (backlog: boolean): { heard: string; closed: string | undefined } => {
    const client = { heard: '', closed: undefined as string | undefined };
    const [ours, theirs] = createMessagePair('plain.kubevirt.io');
    theirs.onMessage((data) => {
      client.heard += new TextDecoder().decode(data);
    });
    theirs.onClose((_code, reason) => {
      client.closed = reason;
    });
    console.attach(ours, { backlog });
    return client;
  };
  const first = open(true);
  await eventually('the backlog', () => first.heard === 'booting\n');
  const second = open(false);
  await eventually('the end of the first', () => first.closed !== undefined);
  assert.equal(first.closed, 'another client has taken over the console');
  await print('login: ');
  await eventually('what came', () => second.heard === 'login: ');
  assert.equal(first.heard, 'booting\n');
  assert.equal(second.closed, undefined);
});

test('what a client types before the line is up reaches the guest once it is, and no more than the bound waits', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-serial-'));
  const stop = new AbortController();
  const server = createServer();
  t.after(async () => {
    stop.abort();
    server.close();
    await rm(directory, { recursive: true, force: true });
  });
  const console = openSerialConsole(directory, { clock: systemClock, signal: stop.signal, log: false });
  const [client, agent] = createMessagePair('');
  console.attach(agent);
  client.send(new TextEncoder().encode('uname\n'));
  client.send(new Uint8Array(4096).fill(0x78));
  await new Promise((next) => setTimeout(next, 20));
  const connected = once(server, 'connection');
  server.listen(join(directory, VM_FILES.serial));
  const [socket] = (await connected) as [Socket];
  t.after(() => socket.destroy());
  const [typed] = (await once(socket, 'data')) as [Buffer];
  assert.equal(typed.toString(), 'uname\n');
});
