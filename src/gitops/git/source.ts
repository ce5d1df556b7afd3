/** What a sync gets its objects from: Git now; OCI images and Helm charts have the same face. */

/** One file of a commit, below the directory that is synced. */
export interface SourceFile {
  /** From the root of the source, with `/`. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** A file that is not read, and why: what it declares is unknown, not gone. */
export interface UnreadFile {
  readonly path: string;
  readonly problem: string;
}

/** What a commit holds. */
export interface SourceTree {
  readonly files: readonly SourceFile[];
  readonly unread: readonly UnreadFile[];
}

export interface Source {
  /** The commit that is to be synced now; asks the origin. Rejects with SourceError. */
  resolve(signal: AbortSignal): Promise<string>;
  /** The files of a commit that `resolve` gave. Rejects with SourceError. */
  read(commit: string, signal: AbortSignal): Promise<SourceTree>;
}

/** The source cannot be had, or not as it is. The message is for users and holds no credentials. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}
