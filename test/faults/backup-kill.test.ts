/** Backups killed at every step of making and of restoring them. */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { restoreBackup } from '../../packages/coracle/src/backup/restore-backup.ts';
import { root, runProgram } from '../cli/workspace.ts';
import { DISK, makeBackedUp } from '../testkit/backed-up.ts';

// S-657: A backup or restore that is killed at any step leaves nothing, or all of it.
test('killed at any step, create and restore leave nothing or all of it, and the next one finds no trace', async (t) => {
  const { root: at, create } = await makeBackedUp(t);
  const steps: string[] = [];
  await create('good', { onStep: (step) => steps.push(step) });
  assert.ok(steps.includes(`file ${DISK}`) && steps.at(-1) === 'done');
  const killAt = (verb: string, step: string, to: string) =>
    runProgram(process.execPath, [join(root, 'test/testkit/kill-backup.ts'), verb, at, step, to]);
  for (const step of new Set(steps)) {
    const to = join(at, `made-${steps.indexOf(step)}`);
    assert.equal((await killAt('create', step, to)).code, null, step);
    assert.equal(existsSync(to), step === 'done', step);
    if (step === 'done') continue;
    await create(`made-${steps.indexOf(step)}`);
    assert.ok(existsSync(join(to, 'manifest.json')));
  }
  const seen: string[] = [];
  const signal = AbortSignal.timeout(60_000);
  await restoreBackup({ from: join(at, 'good'), to: join(at, 'whole'), signal, onStep: (step) => seen.push(step) });
  for (const step of seen) {
    const to = join(at, 'restored');
    mkdirSync(to, { recursive: true });
    assert.equal((await killAt('restore', step, to)).code, null, step);
    if (step === 'done') assert.deepEqual(readdirSync(to).sort(), readdirSync(join(at, 'whole')).sort());
    else assert.deepEqual(readdirSync(to), [], step);
  }
  assert.deepEqual(
    readdirSync(at).filter((name) => name.includes('partial') && !name.startsWith('.made-')),
    [],
  );
});
