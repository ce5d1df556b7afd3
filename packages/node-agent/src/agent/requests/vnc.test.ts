import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { ApiError } from '../../../../apimachinery/src/meta/status.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { createMessagePair } from '../../../../runtime/src/http/message-pair.ts';
import type { MessageSocket } from '../../../../runtime/src/http/seam.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import type { QmpConnection } from '../../qmp/qmp-connection.ts';
import { openVnc, type ScreenOwner, screenshot } from './vnc.ts';

const ACTIVE = 'Active VNC connection. Request denied.';
const never = new AbortController().signal;
const refusedWith = (code: number, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && message.test(error.message);

/** A guest whose VNC server greets whoever connects, and keeps each connection. */
async function screen(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-vnc-'));
  const ended = new AbortController();
  const lines: Socket[] = [];
  const server = createServer((line) => {
    lines.push(line.on('error', () => {}));
    line.write('RFB 003.008\n');
  });
  server.listen(join(directory, VM_FILES.vnc));
  await once(server, 'listening');
  t.after(async () => {
    for (const line of lines) line.destroy();
    server.close();
    await rm(directory, { recursive: true, force: true });
  });
  const execute = async (command: string, given?: object): Promise<unknown> => {
    if (command === 'screendump') await writeFile((given as { filename: string }).filename, picture.bytes);
    return {};
  };
  const picture = { bytes: Buffer.concat([Buffer.from('P6\n2 1\n255\n'), Buffer.from([1, 2, 3, 4, 5, 6])]) };
  const guest: ScreenOwner = {
    hasScreen: true,
    signal: ended.signal,
    qmp: () => ({ execute }) as unknown as QmpConnection,
  };
  const clock = createFakeClock();
  const open = (preserveSession = false) => openVnc(guest, { directory, clock, preserveSession, signal: never });
  return { directory, ended, lines, server, guest, clock, open, picture };
}

/** A viewer: the first it reads, and how its session ended. */
function viewer(take: (socket: MessageSocket) => void) {
  const [near, far] = createMessagePair('plain.kubevirt.io');
  const greeted = new Promise<string>((resolve) => near.onMessage((data) => resolve(Buffer.from(data).toString())));
  const closed = new Promise<[number, string]>((resolve) => near.onClose((...end) => resolve(end)));
  take(far);
  return { near, greeted, closed };
}

// S-1220: One client has a guest's screen: the next ends its session, and one with `preserveSession` is refused while there is one.
test('the next client ends the session of the one before, unless it asks to preserve it', async (t) => {
  const { open, lines } = await screen(t);
  const first = viewer(await open());
  assert.equal(await first.greeted, 'RFB 003.008\n');
  await assert.rejects(open(true), refusedWith(503, new RegExp(ACTIVE)));
  const gone = once(lines[0]!, 'close');
  const second = viewer(await open());
  assert.deepEqual(await first.closed, [1000, 'another client has taken over the screen']);
  assert.equal(await second.greeted, 'RFB 003.008\n');
  await gone;
  const left = once(lines[1]!, 'end');
  second.near.close();
  await left;
  const third = viewer(await eventually('the screen is free', () => open(true)));
  assert.equal(await third.greeted, 'RFB 003.008\n');
});

test('of two that preserve sessions and come at once, one is refused', async (t) => {
  const { open } = await screen(t);
  const [one, other] = await Promise.allSettled([open(true), open(true)]);
  assert.equal(one.status, 'fulfilled');
  assert.ok(other.status === 'rejected' && refusedWith(503, new RegExp(ACTIVE))(other.reason));
});

test('a screen that was reserved and never taken is free again', async (t) => {
  const { open, clock } = await screen(t);
  const late = await open(true);
  await clock.advance(10_000);
  const next = viewer(await eventually('the screen is free', () => open(true)));
  assert.equal(await next.greeted, 'RFB 003.008\n');
  assert.deepEqual(await viewer(late).closed, [1013, ACTIVE]);
});

test('a session ends with its guest', async (t) => {
  const { open, ended } = await screen(t);
  const { greeted, closed } = viewer(await open());
  await greeted;
  ended.abort();
  assert.deepEqual(await closed, [1000, 'the guest has ended']);
});

// S-1221: A guest that has no VNC socket, or no display, says so, and what to do.
test('a guest without a socket, a display, or an answer is refused in clear words', async (t) => {
  const { open, directory, guest, clock, server } = await screen(t);
  const blind = { ...guest, hasScreen: false };
  const options = { directory, clock, preserveSession: false, signal: never };
  await assert.rejects(openVnc(blind, options), refusedWith(400, /^No graphics devices are present\.$/));
  await assert.rejects(screenshot(blind, { directory, moveCursor: false }), refusedWith(400, /No graphics/));
  await new Promise((done) => server.close(done));
  await rm(join(directory, VM_FILES.vnc), { force: true });
  await assert.rejects(
    open(true),
    refusedWith(500, /started without a VNC socket.*stop the machine and start it again/),
  );
  await assert.rejects(open(true), refusedWith(500, /started without/), 'what was reserved is free again');
});

// S-1222: A picture of a screen is a PNG of its size; a node makes four at once and refuses more, and leaves no file behind.
test('a picture is a PNG; more than four at once are refused, and no file is left', async (t) => {
  const { guest, directory, picture } = await screen(t);
  const take = () => screenshot(guest, { directory, moveCursor: true });
  const answers = await Promise.allSettled(Array.from({ length: 5 }, take));
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
  );
  const png = Buffer.from(await take());
  assert.deepEqual([png.subarray(1, 4).toString(), png.readUInt32BE(16), png.readUInt32BE(20)], ['PNG', 2, 1]);
  picture.bytes = Buffer.from('P6\n9 9\n255\nshort');
  await assert.rejects(take(), /QEMU wrote no pixmap/);
  assert.deepEqual(await readdir(directory), [VM_FILES.vnc]);
});
