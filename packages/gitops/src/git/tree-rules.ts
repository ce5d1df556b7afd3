/** Which files of a source are read, and how much: the same rules for every kind of source. */
import type { KnownFile, SourceFile, SourceTree, UnreadFile } from './source.ts';

export interface TreeLimits {
  /** Entries of the tree, of any kind. */
  readonly entries: number;
  /** Files that are read. */
  readonly files: number;
  readonly fileBytes: number;
  readonly totalBytes: number;
}

export const TREE_LIMITS: TreeLimits = {
  entries: 200_000,
  files: 20_000,
  fileBytes: 5 * 1024 ** 2,
  totalBytes: 64 * 1024 ** 2,
};

const MANIFEST = /\.(yaml|yml|json)$/;
/** Files that steer other programs, of which some look like manifests. */
const OTHERS = /(^|\/)(\.git|\.github|\.gitlab)\/|(^|\/)\.gitlab-ci\.yml$/;
const KUSTOMIZATION = /(^|\/)(kustomization\.ya?ml|Kustomization)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const ODD_NAME = /[\u0000-\u001f\u007f]/;

/** True for the three names that kustomize looks for, in any directory. */
export const isKustomization = (path: string): boolean => KUSTOMIZATION.test(path);

/** True for files that may hold objects, or say how they are made. */
export const isManifest = (path: string): boolean =>
  !OTHERS.test(path) && (MANIFEST.test(path) || isKustomization(path));

/** True for a path that a log or a terminal could not show as it is. */
export const hasOddName = (path: string): boolean => ODD_NAME.test(path);

export const oddName = (path: string): UnreadFile => ({
  path: JSON.stringify(path),
  problem: 'its name holds control characters',
});

/** By path. */
export function inOrder<File extends SourceFile | KnownFile>({ files, unread }: SourceTree<File>): SourceTree<File> {
  const compare = (a: { path: string }, b: { path: string }): number => (a.path < b.path ? -1 : 1);
  return { files: [...files].sort(compare), unread: [...unread].sort(compare) };
}
