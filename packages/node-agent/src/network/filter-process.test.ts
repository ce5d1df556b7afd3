import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import { spawnDetached } from '../../../runtime/src/process/spawn-detached.ts';
import { terminate } from '../../../runtime/src/process/terminate.ts';
import { FILTER_FILES, FILTER_VERSION, type FilterConfig } from './filter-files.ts';

const MIB = 1024 * 1024;

// S-822
test('the log of a console that a guest floods stays short while no agent is there', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-filter-'));
  t.after(() => rm(dir, { recursive: true }));
  const config: FilterConfig = { version: FILTER_VERSION, cards: [], logs: ['serial.log'] };
  await writeFile(join(dir, FILTER_FILES.config), JSON.stringify(config));
  const file = join(dir, 'serial.log');
  await writeFile(file, 'x'.repeat(40 * MIB));
  const program = fileURLToPath(new URL('./filter-process.ts', import.meta.url));
  const child = await spawnDetached([process.execPath, program], { cwd: dir, outputFile: join(dir, 'out') });
  try {
    for (const round of [1, 2]) {
      await appendFile(file, `the end of round ${round}`);
      if (round === 2) await appendFile(file, 'y'.repeat(2 * MIB));
      while ((await stat(file)).size > MIB) await systemClock.sleep(20, NEVER);
    }
    const size = async (): Promise<number> => (await stat(`${file}.1`).catch(() => undefined))?.size ?? 0;
    while ((await size()) !== MIB || !(await readFile(`${file}.1`, 'utf8')).endsWith('y'))
      await systemClock.sleep(20, NEVER);
    assert.ok((await stat(file)).size <= MIB);
  } finally {
    await terminate(child.identity, { clock: systemClock, signal: NEVER, graceMs: 1000 });
  }
});
