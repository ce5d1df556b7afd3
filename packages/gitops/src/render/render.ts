/** The step between a source and its objects: what has to be made by another program first. */
import type { ChangedTree, SourceTree } from '../git/source.ts';
import { isKustomization } from '../git/tree-rules.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import { kustomizationOf, kustomize } from './kustomize.ts';

export interface Rendered {
  readonly tree: ChangedTree;
  /** For `status.rendering.message`. */
  readonly message: string;
}

export interface RenderOptions {
  /** The directory that is synced, '' for the root. */
  readonly dir: string;
  /** Every file of the same commit. */
  readonly readAll: () => Promise<SourceTree>;
  /** Private to one sync, for the time of a run. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/**
 * Renders what needs it: a directory with a kustomization at its top.
 * @throws SyncFailure KNV1068 when it cannot be rendered; what `readAll` throws
 */
export async function render(tree: ChangedTree, options: RenderOptions): Promise<Rendered> {
  if (tree.isRendered) return { tree, message: 'Rendering skipped' };
  const paths = [...tree.files, ...tree.unread].map(({ path }) => path);
  const path = kustomizationOf(paths, options.dir);
  if (path !== undefined)
    return { tree: await kustomize(await options.readAll(), path, options), message: 'Rendering succeeded' };
  const below = paths.find(isKustomization);
  if (below !== undefined)
    throw new SyncFailure([
      syncError(
        1068,
        `${below} is below the directory that is synced, which has no kustomization of its own: add one there, or sync the directory of this one`,
        [{ sourcePath: below }],
      ),
    ]);
  return { tree, message: 'Rendering skipped' };
}
