/** The last trees of a source, kept while they are small: an attempt that is repeated does not fetch them again. */
import type { Source, SourceTree } from './source.ts';

/** Of one tree; a larger one is read again. */
const MAX_KEPT_BYTES = 4 * 1024 ** 2;

/** The same source, which remembers what it last gave. */
export function keepTree(source: Source): Source {
  const remember = (
    read: (commit: string, signal: AbortSignal) => Promise<SourceTree>,
  ): ((commit: string, signal: AbortSignal) => Promise<SourceTree>) => {
    let kept: { readonly commit: string; readonly tree: SourceTree } | undefined;
    return async (commit, signal) => {
      if (kept?.commit === commit) return kept.tree;
      const tree = await read(commit, signal);
      const bytes = tree.files.reduce((sum, file) => sum + file.bytes.length, 0);
      kept = bytes <= MAX_KEPT_BYTES ? { commit, tree } : undefined;
      return tree;
    };
  };
  return {
    resolve: (signal) => source.resolve(signal),
    read: remember((commit, signal) => source.read(commit, signal)),
    readAll: remember((commit, signal) => source.readAll(commit, signal)),
  };
}
