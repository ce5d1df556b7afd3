/** The step between a source and its objects: what has to be made by another program first. */
import type { SourceTree } from '../git/source.ts';
import { isKustomization } from '../git/tree-rules.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';

export interface Rendered {
  readonly tree: SourceTree;
  /** For `status.rendering.message`. */
  readonly message: string;
}

/**
 * Renders what needs it. `dir` is the directory that is synced, '' for the root.
 * @throws SyncFailure KNV1068 when the source wants a program that is not there
 */
export function render(tree: SourceTree, dir: string): Rendered {
  const names = [...tree.files, ...tree.unread].map(({ path }) => path).filter(isKustomization);
  const wanting = names.find((path) => !path.slice(dir === '' ? 0 : dir.length + 1).includes('/'));
  if (wanting !== undefined)
    throw refusal(wanting, `${wanting} wants kustomize, which is not supported yet: commit what it makes`);
  const [below] = names;
  if (below !== undefined)
    throw refusal(
      below,
      `${below} lies below the directory that is synced, which has no kustomization of its own: add one there, or sync the directory of this one`,
    );
  return { tree, message: 'Rendering skipped' };
}

const refusal = (path: string, text: string): SyncFailure =>
  new SyncFailure([syncError(1068, text, [{ sourcePath: path }])]);
