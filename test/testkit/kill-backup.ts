/** Kills itself at a step of a backup: `kill-backup.ts create|restore ROOT STEP TO` (ROOT as of `backed-up.ts`). */
import { join } from 'node:path';
import { createBackup } from '../../packages/coracle/src/backup/create-backup.ts';
import { restingPool } from '../../packages/coracle/src/backup/pool-files.ts';
import { restoreBackup } from '../../packages/coracle/src/backup/restore-backup.ts';
import { dataDirAt } from '../../packages/coracle/src/config/data-dir.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';

const [verb, root, step, to] = process.argv.slice(2) as [string, string, string, string];
/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const onStep = (reached: string): void => {
  if (reached === step) process.kill(process.pid, 'SIGKILL');
};
const dir = dataDirAt(join(root, 'data'));
if (verb === 'create')
  await createBackup({
    dir,
    to,
    keys: true,
    openPool: () => restingPool(join(dir.root, 'claims')),
    clock: systemClock,
    signal,
    onStep,
  });
else await restoreBackup({ from: join(root, 'good'), to, signal, onStep });
