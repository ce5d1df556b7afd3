/** Looks through a backup without a change to it: every digest, and the state as the program would read it. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { StorageError } from '@coracle/apiserver/storage/backend';
import { inspectStore } from '@coracle/apiserver/storage/store-copy';
import { BackupError } from './backup-error.ts';
import { chunkPath, digestOf, mapPath, openInside, readManifest, sha256, wholePath } from './backup-layout.ts';
import { readMap } from './chunk-map.ts';
import { CHUNK_BYTES, type Manifest, STORE_PATH } from './manifest.ts';

export interface Verified {
  readonly manifest: Manifest;
  /** What is damaged, in lines; at most `MAX_TROUBLES` of them. Empty when all is well. */
  readonly troubles: readonly string[];
}

/** More damage than this is not listed. */
export const MAX_TROUBLES = 50;

/** Verifies the backup in `root`. Throws BackupError when there is none, or its manifest cannot be read. */
export async function verifyBackup(root: string, { signal }: { readonly signal: AbortSignal }): Promise<Verified> {
  const manifest = await readManifest(root);
  const troubles: string[] = [];
  const attempt = async (act: () => Promise<void>): Promise<void> => {
    try {
      await act();
    } catch (error) {
      signal.throwIfAborted();
      const isOurs = error instanceof BackupError || error instanceof StorageError;
      if (!isOurs && (error as NodeJS.ErrnoException).code === undefined) throw error;
      if (troubles.length < MAX_TROUBLES) troubles.push((error as Error).message);
    }
  };
  for (const { path, bytes, sha256 } of manifest.files)
    await attempt(() => checkWhole(root, { path: wholePath(path), bytes, sha256 }));
  if (troubles.length === 0) await attempt(async () => checkStore(root, manifest, signal));
  const folders = await readdir(join(root, 'chunks')).catch(() => []);
  for (const folder of folders.sort())
    for (const name of (await readdir(join(root, 'chunks', folder)).catch(() => [])).sort())
      await attempt(() => checkChunk(root, `${folder}/${name}`, signal));
  for (const [index, file] of manifest.chunked.entries())
    await attempt(async () => {
      let dataBytes = 0;
      for await (const { digest, bytes } of readMap(root, mapPath(index), { ...file, what: file.path })) {
        dataBytes += bytes;
        await attempt(async () => {
          const chunk = await openInside(root, chunkPath(digest));
          const { size } = await chunk.stat().finally(() => chunk.close());
          if (size !== bytes) throw new BackupError(`${chunkPath(digest)} is ${size} bytes large, not ${bytes}`);
        });
      }
      if (dataBytes !== file.dataBytes)
        throw new BackupError(`${mapPath(index)} holds ${dataBytes} bytes of ${file.path}, not ${file.dataBytes}`);
    });
  return { manifest, troubles };
}

async function checkWhole(
  root: string,
  file: { readonly path: string; readonly bytes: number; readonly sha256: string },
): Promise<void> {
  const handle = await openInside(root, file.path);
  try {
    const { size } = await handle.stat();
    if (size !== file.bytes) throw new BackupError(`${file.path} is ${size} bytes large, not ${file.bytes}`);
    if ((await digestOf(handle)).sha256 !== file.sha256)
      throw new BackupError(`${file.path} is damaged: its content does not fit its digest`);
  } finally {
    await handle.close();
  }
}

async function checkChunk(root: string, name: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const digest = name.slice(3);
  if (chunkPath(digest) !== `chunks/${name}` || !/^[0-9a-f]{64}$/.test(digest))
    throw new BackupError(`chunks/${name} is not part of a backup`);
  const handle = await openInside(root, chunkPath(digest));
  try {
    if ((await handle.stat()).size > CHUNK_BYTES) throw new BackupError(`chunks/${name} is larger than a chunk`);
    if (sha256(await handle.readFile()) !== digest)
      throw new BackupError(`chunks/${name} is damaged: its content does not fit its name`);
  } finally {
    await handle.close();
  }
}

function checkStore(root: string, { store }: Manifest, signal: AbortSignal): void {
  const found = inspectStore(join(root, wholePath(STORE_PATH)), { signal });
  if (found.revision !== store.revision || found.rows !== store.rows || found.damaged.length !== store.damaged)
    throw new BackupError(
      `${STORE_PATH} holds ${found.rows} rows up to revision ${found.revision} (${found.damaged.length} damaged), not ${store.rows} up to ${store.revision} (${store.damaged} damaged)`,
    );
}
