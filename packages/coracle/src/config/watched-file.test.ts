import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { watchFile } from './watched-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'coracle-watched-'));
after(() => rmSync(folder, { recursive: true }));

/** Follows a file; what is seen can be waited for. */
function follow(path: string, initial: string, clock = systemClock) {
  const seen: string[] = [];
  const errors: string[] = [];
  let tell = (): void => {};
  const note = (list: string[]) => (what: string | Error) => {
    list.push(String(what));
    tell();
  };
  const file = watchFile(path, { initial, clock, changed: note(seen), failed: note(errors) });
  const until = async (test: () => boolean): Promise<void> => {
    while (!test()) await new Promise<void>((resolve) => (tell = resolve));
  };
  return { seen, errors, until, stop: file.stop };
}

// S-290
test('a file is followed, also where another takes its place, or a link leads elsewhere', async () => {
  const path = join(folder, 'a');
  writeFileSync(path, 'one');
  const { seen, until, stop } = follow(path, 'one');
  writeFileSync(path, 'two');
  await until(() => seen.length === 1);
  writeFileSync(`${path}.new`, 'three');
  renameSync(`${path}.new`, path);
  await until(() => seen.length === 2);
  writeFileSync(`${path}.real`, 'four');
  symlinkSync(`${path}.real`, `${path}.link`);
  renameSync(`${path}.link`, path);
  await until(() => seen.length === 3);
  assert.deepEqual(seen, ['two', 'three', 'four']);
  stop();
});

// S-290
test('what cannot be read is reported, and looked at again; the same text is no change', async () => {
  const clock = createFakeClock();
  const path = join(folder, 'b');
  const { seen, errors, stop } = follow(path, 'one', clock);
  await clock.advance(60_000);
  assert.match(errors[0]!, /ENOENT/);
  writeFileSync(path, 'one');
  await clock.advance(60_000);
  assert.deepEqual(seen, []);
  writeFileSync(path, 'two');
  await clock.advance(60_000);
  assert.deepEqual(seen, ['two']);
  stop();
  writeFileSync(path, 'three');
  await clock.advance(120_000);
  assert.deepEqual(seen, ['two']);
});
