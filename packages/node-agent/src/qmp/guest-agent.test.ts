import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createGuestAgent } from './guest-agent.ts';
import { createLineReader } from './line-reader.ts';
import type { QmpError } from './qmp-connection.ts';

const signal = new AbortController().signal;
let directory = '';
let server: Server | undefined;
const sockets = new Set<Socket>();
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coracle-agent-'));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await new Promise<void>((done) => (server ? server.close(() => done()) : done()));
  await rm(directory, { recursive: true });
});

interface Question {
  readonly execute: string;
  readonly arguments?: { readonly id?: number };
}

/** An agent that first sends `junk`, syncs, and answers by `answer`; undefined = silence. */
async function fakeAgent(
  answer: (question: Question, socket: Socket) => string | undefined,
  junk: string | Uint8Array = '',
): Promise<string> {
  const path = join(directory, 'agent.sock');
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.write(junk);
    const reader = createLineReader(1 << 20, (line) => {
      const question = JSON.parse(line.replace(/^\uFFFD/, '')) as Question;
      if (question.execute === 'guest-sync-delimited') {
        socket.write(Uint8Array.of(0xff));
        socket.write(`{"return": ${question.arguments?.id}}\n`);
        return;
      }
      const text = answer(question, socket);
      if (text !== undefined) socket.write(text);
    });
    socket.on('data', (chunk: Buffer) => reader(chunk));
  });
  await new Promise<void>((done) => server!.listen(path, done));
  return path;
}

test('converse() passes by what was meant for somebody else', async () => {
  for (const junk of ['', '{"return": {"old": 1}}\n', '{"return": {"ol', '{"return": 7}\nnonsense\n']) {
    const path = await fakeAgent(({ execute }) => `{"return": "${execute}!"}\n`, junk);
    const agent = createGuestAgent(path, { clock: systemClock, signal });
    assert.deepEqual(await agent.converse(async (ask) => [await ask('one'), await ask('two')]), ['one!', 'two!']);
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server!.close(done));
  }
});

test('an answer is what the guest says, whatever characters are in it', async () => {
  const path = await fakeAgent(() => '{"return": "a\uFFFD{b"}\n');
  const agent = createGuestAgent(path, { clock: systemClock, signal });
  assert.equal(await agent.converse((ask) => ask('guest-get-host-name')), 'a\uFFFD{b');
});

test('a refusal carries the words of the agent', async () => {
  const path = await fakeAgent(() => '{"error": {"class": "CommandNotFound", "desc": "no such thing"}}\n');
  const agent = createGuestAgent(path, { clock: systemClock, signal });
  await assert.rejects(
    agent.converse((ask) => ask('guest-x')),
    (error: QmpError) => {
      assert.deepEqual([error.failure, error.message], ['refused', 'guest-x: no such thing']);
      return true;
    },
  );
});

// S-204
test('conversations follow each other; a silent agent costs the limit and the next one is heard', async () => {
  const clock = createFakeClock();
  let silent = true;
  let asked: () => void = () => {};
  const wasAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const path = await fakeAgent(({ execute }) => {
    asked();
    return silent ? undefined : `{"return": "${execute}"}\n`;
  });
  const agent = createGuestAgent(path, { clock, signal });
  const first = assert.rejects(
    agent.converse((ask) => ask('first')),
    (error: QmpError) => error.failure === 'timeout' && /first: no answer within 5000 ms/.test(error.message),
  );
  const second = agent.converse((ask) => ask('second'));
  await wasAsked;
  silent = false;
  await clock.advance(5000);
  await first;
  assert.equal(await second, 'second');
});

test('a port that is not there, or that closes, is a failure and no wait', async () => {
  const nowhere = createGuestAgent(join(directory, 'none.sock'), { clock: systemClock, signal });
  await assert.rejects(
    nowhere.converse((ask) => ask('x')),
    { failure: 'closed' },
  );
  const path = await fakeAgent((_, socket) => {
    socket.destroy();
    return undefined;
  });
  const agent = createGuestAgent(path, { clock: systemClock, signal });
  await assert.rejects(
    agent.converse((ask) => ask('x')),
    { failure: 'closed' },
  );
});

// S-204
test('an endless line ends the conversation', async () => {
  const path = await fakeAgent(() => 'x'.repeat(2 * 1024 * 1024));
  const agent = createGuestAgent(path, { clock: systemClock, signal });
  await assert.rejects(
    agent.converse((ask) => ask('x')),
    /a line is longer than 1048576 bytes/,
  );
});

// S-478: A guest that floods its agent port is hung up on.
test('a guest that floods its port with small or empty lines is hung up on', async () => {
  for (const line of ['1\n', '{}\n', 'x\n', '\n']) {
    let sent = 0;
    let over = false;
    const path = await fakeAgent((_question, socket) => {
      const chunk = Buffer.from(line.repeat(65_536 / line.length));
      socket.on('close', () => {
        over = true;
      });
      const flood = (): void => {
        while (!over && sent < 256 * 1024 * 1024) {
          sent += chunk.length;
          if (!socket.write(chunk)) return void socket.once('drain', flood);
        }
      };
      flood();
      return undefined;
    });
    const agent = createGuestAgent(path, { clock: systemClock, signal });
    await assert.rejects(
      agent.converse((ask) =>
        ask('guest-get-users')
          .then(() => ask('guest-get-fsinfo'))
          .then(() => ask('guest-info')),
      ),
      /more than|port was closed|no answer/,
    );
    assert.ok(sent < 32 * 1024 * 1024, `${JSON.stringify(line)}: ${sent} bytes were taken`);
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((done) => server!.close(() => done()));
  }
});
