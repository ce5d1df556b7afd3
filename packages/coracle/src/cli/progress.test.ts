import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createProgress } from './progress.ts';

test('progress is one line of a terminal, no wider than it', () => {
  const written: string[] = [];
  const progress = createProgress((text) => written.push(text), { clock: createFakeClock(), columns: () => 10 });
  progress.show('12 %');
  progress.show('a long line of it');
  progress.clear();
  progress.clear();
  assert.deepEqual(written, ['\r\x1b[K12 %', '\r\x1b[Ka long l…', '\r\x1b[K']);
});

test('elsewhere it is a line when it says something else, and every ten seconds', async () => {
  const written: string[] = [];
  const clock = createFakeClock();
  const progress = createProgress((text) => written.push(text), { clock, columns: () => undefined });
  progress.show('1 % of 2.5 GiB');
  progress.show('7 % of 2.5 GiB');
  progress.show('unpacking');
  await clock.advance(10_000);
  progress.show('unpacking');
  progress.clear();
  assert.deepEqual(written, ['1 % of 2.5 GiB\n', 'unpacking\n', 'unpacking\n']);
});
