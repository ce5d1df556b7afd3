/** The objects that a backup holds, read from a copy of its state: the backup itself is never written to. */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { createSqliteBackend } from '@coracle/apiserver/storage/sqlite-backend';
import type { Clock } from '@coracle/runtime/clock/clock';
import { silentLogger } from '@coracle/runtime/log/log';
import { BackupError } from './backup-error.ts';
import { digestOf, openInside, readManifest, wholePath } from './backup-layout.ts';
import { STORE_PATH } from './manifest.ts';

/**
 * The newest state of every object below these prefixes (`group/resource`), by prefix.
 * @throws BackupError when the backup or its state is damaged
 */
export async function objectsOfBackup(
  root: string,
  prefixes: readonly string[],
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, readonly KubeObject[]>> {
  const manifest = await readManifest(root);
  const store = manifest.files.find(({ path }) => path === STORE_PATH)!;
  const directory = await mkdtemp(join(tmpdir(), 'coracle-audit-'));
  try {
    await copyStore(root, store.sha256, join(directory, 'store.db'));
    return await readObjects(directory, prefixes, { clock, signal });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Through one open file: what was checked is what is read. */
async function copyStore(root: string, sha256: string, to: string): Promise<void> {
  const from = await openInside(root, wholePath(STORE_PATH));
  try {
    if ((await digestOf(from)).sha256 !== sha256)
      throw new BackupError(`${STORE_PATH} is damaged: its content does not fit its digest`);
    const copy = await open(to, 'wx', 0o600);
    try {
      await copy.writeFile(from.createReadStream({ start: 0, autoClose: false }));
    } finally {
      await copy.close();
    }
  } finally {
    await from.close();
  }
}

async function readObjects(
  directory: string,
  prefixes: readonly string[],
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, readonly KubeObject[]>> {
  const found = new Map(prefixes.map((prefix) => [prefix, new Map<string, KubeObject>()]));
  const decoder = new TextDecoder();
  const backend = createSqliteBackend({ directory, clock, log: silentLogger });
  try {
    const { rows } = await backend.open(signal);
    for await (const chunk of rows) {
      for (const { key, value } of chunk) {
        const objects = found.get(key.split('/').slice(0, 2).join('/'));
        if (value) objects?.set(key, JSON.parse(decoder.decode(value)) as KubeObject);
        else objects?.delete(key);
      }
    }
  } finally {
    await backend.close();
  }
  return new Map([...found].map(([prefix, objects]) => [prefix, [...objects.values()]]));
}
