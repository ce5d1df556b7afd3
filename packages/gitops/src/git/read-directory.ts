/** The manifests of a directory of this host, or all files, as they lie: what a commit of it would give. */
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { SourceError, type SourceFile, type SourceTree, type UnreadFile } from './source.ts';
import { inOrder, isManifest, TREE_LIMITS } from './tree-rules.ts';

/**
 * Reads them, within the limits of a commit. Links are followed to files of the directory alone.
 * @throws SourceError when it is no directory or holds more than the limits
 */
export async function readDirectory(
  directory: string,
  { isAll = false }: { readonly isAll?: boolean } = {},
): Promise<SourceTree> {
  const root = await realpath(directory).catch(() => undefined);
  if (root === undefined || !(await stat(root)).isDirectory())
    throw new SourceError(`there is no directory ${JSON.stringify(directory)}`);
  const files: SourceFile[] = [];
  const unread: UnreadFile[] = [];
  let entries = 0;
  let total = 0;
  const walk = async (at: string): Promise<void> => {
    const list = await readdir(join(root, at), { withFileTypes: true });
    for (const entry of list) {
      if (++entries > TREE_LIMITS.entries)
        throw new SourceError(`the directory holds more than ${TREE_LIMITS.entries} files`);
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory()) {
        if (entry.name !== '.git') await walk(path);
        continue;
      }
      if (!isAll && !isManifest(path)) continue;
      const bytes = await contentOf(root, path);
      if (typeof bytes === 'string') unread.push({ path, problem: bytes });
      else {
        total += bytes.length;
        files.push({ path, bytes });
      }
      if (files.length > TREE_LIMITS.files)
        throw new SourceError(`the directory holds more than ${TREE_LIMITS.files} manifests`);
      if (total > TREE_LIMITS.totalBytes)
        throw new SourceError(`the manifests have more than ${TREE_LIMITS.totalBytes} bytes`);
    }
  };
  await walk('');
  return inOrder({ files, unread });
}

/** Of one file, or why there is none. */
async function contentOf(root: string, path: string): Promise<Uint8Array | string> {
  const real = await realpath(join(root, path)).catch(() => undefined);
  if (real === undefined) return 'it is a link that leads nowhere';
  if (!real.startsWith(`${root}${sep}`)) return 'it is a link that leads out of the directory';
  const found = await stat(real);
  if (!found.isFile()) return 'it is not a file';
  if (found.size > TREE_LIMITS.fileBytes) return `it has ${found.size} bytes; ${TREE_LIMITS.fileBytes} are read`;
  return readFile(real);
}
