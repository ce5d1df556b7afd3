import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { cutLog, keepLogShort, MAX_LOG_BYTES } from './cut-log.ts';

// S-503: What a guest makes QEMU write is kept short, and its end is kept.
test('a log that a guest floods stays short, its end is kept, and its writer goes on', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-log-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'qemu.log');
  // As QEMU has it: opened once, for appending.
  const writer = await open(file, 'a', 0o600);
  t.after(() => writer.close());
  const line = 'virtio: zero sized buffers are not allowed\n';
  await writer.write('short\n');
  assert.equal(await cutLog(file), 6);
  // What had gathered while no agent was there.
  await writer.write(line.repeat(Math.ceil((44 * MAX_LOG_BYTES) / line.length)));
  await writer.write('the last of it\n');
  const stop = new AbortController();
  const clock = createFakeClock();
  keepLogShort(file, { clock, signal: stop.signal });
  const until = async (size: number): Promise<void> => {
    while ((await stat(file)).size !== size) {
      await clock.advance(1000);
      await new Promise((wake) => setImmediate(wake));
    }
  };
  await until(0);
  await writer.write('after\n');
  await until(6);
  assert.equal(await readFile(file, 'utf8'), 'after\n');
  while ((await stat(`${file}.1`).catch(() => undefined))?.size !== MAX_LOG_BYTES)
    await new Promise((wake) => setImmediate(wake));
  assert.ok((await readFile(`${file}.1`, 'utf8')).endsWith('\nthe last of it\n'));
  stop.abort();
});
