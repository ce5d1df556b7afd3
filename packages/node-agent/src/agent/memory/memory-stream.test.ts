import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { VM_FILES } from '../../qemu/argv.ts';
import { receiveStream } from './memory-stream.ts';

const MIB = 1024 * 1024;
let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'memory-stream-'));
});
after(() => rm(directory, { recursive: true, force: true }));

/** As QEMU does: a stream that may be refused half way. */
function sender(): Socket {
  const socket = connect(join(directory, VM_FILES.saveOut));
  socket.on('error', () => {});
  return socket;
}

// S-870: What QEMU writes of a guest that is saved is whole in a file of the agent's user, or the save fails: a stream
//   longer than its guest can be is no state.
test('what is sent lies in a file of the owner, whatever its size', async () => {
  for (const [index, size] of [0, 1, MIB, 3 * MIB + 7].entries()) {
    const path = join(directory, `whole-${index}`);
    const stream = await receiveStream(directory, { path, limit: 8 * MIB });
    const data = Buffer.alloc(size, 'coracle');
    sender().end(data);
    await stream.done;
    await stream.close();
    assert.ok((await readFile(path)).equals(data), `${size} bytes`);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  }
});

// S-870
test('a second stream is refused, and changes nothing in the first', async () => {
  const path = join(directory, 'first');
  const stream = await receiveStream(directory, { path, limit: 8 * MIB });
  const first = sender();
  first.write('fir');
  await once(first, 'connect');
  const second = sender();
  second.resume();
  await once(second, 'close');
  first.end('st');
  await stream.done;
  await stream.close();
  assert.equal(await readFile(path, 'utf8'), 'first');
});

// S-870
test('a stream that is longer than its limit fails, also when all of it was taken', async () => {
  for (const size of [2 * MIB, 2 * MIB + 1, 32 * MIB]) {
    const stream = await receiveStream(directory, { path: join(directory, `long-${size}`), limit: 2 * MIB });
    sender().end(Buffer.alloc(size));
    await assert.rejects(stream.failed, /not saved: there are more than 2097152 bytes/);
    await assert.rejects(stream.done);
    await stream.close();
  }
});

test('a file that is there already is not written to', async () => {
  const path = join(directory, 'there');
  await writeFile(path, 'mine');
  const stream = await receiveStream(directory, { path, limit: MIB });
  sender().end('theirs');
  await assert.rejects(stream.failed, /EEXIST/);
  await stream.close();
  assert.equal(await readFile(path, 'utf8'), 'mine');
});

test('a stream that is given up ends for both sides', async () => {
  const stream = await receiveStream(directory, { path: join(directory, 'given-up'), limit: MIB });
  const socket = sender();
  socket.write('half');
  await once(socket, 'connect');
  await stream.close();
  await assert.rejects(stream.done, /given up/);
  if (!socket.destroyed) await once(socket.resume(), 'close');
});
