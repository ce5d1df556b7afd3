/** A small data directory to back up: state, keys, one sparse volume, an imported image; no process, no QEMU. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createSqliteBackend } from '../../packages/apiserver/src/storage/sqlite-backend.ts';
import { type Created, createBackup } from '../../packages/coracle/src/backup/create-backup.ts';
import { restingPool } from '../../packages/coracle/src/backup/pool-files.ts';
import { type DataDir, dataDirAt } from '../../packages/coracle/src/config/data-dir.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';

export const VOLUME = '11111111-2222-3333-4444-555555555555';
export const DISK = `claims/${VOLUME}/disk.img`;
export const DISK_BYTES = 64 * 1024 ** 3;
export const IMAGE_BYTES = 'an imported image';

export interface BackedUp {
  /** Where all of it lies; removed with the test. */
  readonly root: string;
  readonly dir: DataDir;
  /** Backs it up into `root/NAME`. */
  create(name: string, more?: Partial<Parameters<typeof createBackup>[0]>): Promise<Created>;
}

/** Makes one. The volume is 64 GiB large and holds data at its beginning, across a chunk's border, and at its end. */
export async function makeBackedUp(t: TestContext): Promise<BackedUp> {
  const root = mkdtempSync(join(tmpdir(), 'coracle-backup-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  return fillBackedUp(root);
}

/** The same in a directory that the caller removes. */
export async function fillBackedUp(root: string): Promise<BackedUp> {
  const dir = dataDirAt(join(root, 'data'));
  const clock = createFakeClock();
  mkdirSync(dir.root, { mode: 0o700 });
  const backend = createSqliteBackend({ directory: dir.state, clock, log: silentLogger });
  await backend.open(AbortSignal.timeout(30_000));
  const value = new TextEncoder().encode('{}');
  await backend.commit([
    { revision: 1, key: '/configmaps/ns/one', value, created: true },
    { revision: 2, key: '/configmaps/ns/two', value, created: true },
  ]);
  await backend.close();
  mkdirSync(dir.pki, { mode: 0o700 });
  for (const name of ['ca.crt', 'ca.key', 'sa.key', 'server.key'])
    writeFileSync(join(dir.pki, name), `this is ${name}`);
  mkdirSync(join(dir.nodes, 'old-host/vms'), { recursive: true });
  writeFileSync(join(dir.nodes, 'old-host/agent.id'), VOLUME);
  mkdirSync(join(dir.root, 'claims', VOLUME), { recursive: true });
  const disk = await open(join(dir.root, DISK), 'w');
  for (const at of [0, 6 * 1024 ** 2, 8 * 1024 ** 2 - 3, DISK_BYTES - 5])
    await disk.write(`data at ${at}`.slice(0, 5), at);
  await disk.truncate(DISK_BYTES);
  await disk.close();
  const digest = createHash('sha256').update(IMAGE_BYTES).digest('hex');
  for (const name of ['files', 'local']) mkdirSync(join(dir.images, name), { recursive: true });
  writeFileSync(join(dir.images, 'files', `sha256-${digest}`), IMAGE_BYTES, { mode: 0o400 });
  const file = { digest: `sha256:${digest}`, size: IMAGE_BYTES.length, format: 'raw', virtualSize: IMAGE_BYTES.length };
  writeFileSync(
    join(dir.images, 'local', `${'a'.repeat(64)}.json`),
    JSON.stringify({ version: 1, reference: 'localhost/x:latest', digest: `sha256:${digest}`, files: { disk: file } }),
  );
  return {
    root,
    dir,
    create: (name, more = {}) =>
      createBackup({
        dir,
        to: join(root, name),
        keys: true,
        openPool: () => restingPool(join(dir.root, 'claims')),
        clock,
        signal: AbortSignal.timeout(60_000),
        ...more,
      }),
  };
}
