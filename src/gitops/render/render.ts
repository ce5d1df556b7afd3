/** The step between a source and its objects: what has to be made by another program first. */
import type { SourceTree } from '../git/source.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';

export interface Rendered {
  readonly tree: SourceTree;
  /** For `status.rendering.message`. */
  readonly message: string;
}

const KUSTOMIZATION = /^(kustomization\.ya?ml|Kustomization)$/;

/**
 * Renders what needs it. `dir` is the directory that is synced, '' for the root.
 * @throws SyncFailure KNV1068 when the source wants a program that is not there
 */
export function render(tree: SourceTree, dir: string): Rendered {
  const inDirectory = (path: string): string => (dir === '' ? path : path.slice(dir.length + 1));
  const wanting = tree.files.find(({ path }) => KUSTOMIZATION.test(inDirectory(path)));
  if (wanting)
    throw new SyncFailure([
      syncError(1068, `${wanting.path} wants kustomize, which is not supported yet: commit what it makes`, [
        { sourcePath: wanting.path },
      ]),
    ]);
  return {
    tree: { ...tree, files: tree.files.filter(({ path }) => !path.endsWith('/Kustomization')) },
    message: 'Rendering skipped',
  };
}
