/**
 * Live migration of an idle tiny guest between two agents of this host: the time in all, from the hand-over by the
 * controller to the write by which the target takes over, and the pause, from the stop on the source to the go on the
 * target. Each run goes back the way the one before came.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../packages/runtime/src/log/log.ts';
import { kernelSpec } from '../test/node/board.ts';
import { heartbeat, startMigrationBoard } from '../test/node/migration-board.ts';
import { eventually } from '../test/testkit/eventually.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const RUNS = 4;
const NAME = 'mover';

/** Needs QEMU and a tiny guest built before (tools/guest). */
export async function benchMigration({ say }: BenchContext): Promise<Outcome> {
  if (spawnSync('qemu-system-x86_64', ['--version']).status !== 0)
    return { state: 'skipped', reason: 'no qemu-system-x86_64 here' };
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'guest');
  if (!existsSync(cache)) return { state: 'skipped', reason: 'no tiny guest built yet (node tools/guest/build.ts)' };
  const pauses: number[] = [];
  const board = await startMigrationBoard({
    log: createLogger(({ message, fields }) => {
      if (message === 'guest taken over') pauses.push(Number(fields['pauseMs']));
    }, 'info'),
  });
  try {
    const spec = kernelSpec();
    const domain = spec['domain'] as object;
    await board.createVmi(NAME, { ...spec, domain: { ...domain, memory: { guest: '256Mi' } } });
    const vmi = await board.until(NAME, 'running', ({ status }) => status?.phase === 'Running');
    let beats = await heartbeat(vmi);
    const runs = new Runs();
    for (let run = 0; run < RUNS; run++) {
      const { source, target } = await board.hand(NAME);
      const began = performance.now();
      await board.until(
        NAME,
        'moved',
        ({ status }) => status?.nodeName === target || status?.migrationState?.failed === true,
      );
      const moved = await board.vmi(NAME);
      if (moved.status?.nodeName !== target)
        throw new Error(`the migration failed: ${moved.status?.migrationState?.failureReason}`);
      runs.add('migration.total', 'ms', { value: performance.now() - began });
      const after = await heartbeat(moved);
      if (after < beats) throw new Error('the guest was started anew');
      beats = after;
      await eventually('the permission to finish is sent', () => pauses.length > run);
      runs.add('migration.pause', 'ms', { value: pauses[run] ?? Number.NaN });
      // The way back is free when the files of the source are gone.
      await eventually('the source is clean', async () => (await board.record(source, moved)) === undefined);
      for (const pod of await board.launchers(NAME))
        if (pod.status?.phase === 'Succeeded') await board.removePod(pod.metadata.name ?? '');
      say(`migration ${run + 1} of ${RUNS} done`);
    }
    return { state: 'measured', figures: runs.figures() };
  } finally {
    await board.close();
  }
}
