/** What a sync gets its objects from: Git repositories, OCI images and Helm charts have this face. */

/** Keys of a Secret, decoded. */
export type SecretData = Readonly<Record<string, string>>;

/** The Secret of that name, where the sync is. Rejects with SourceError when it is not there. */
export type ReadSecret = (name: string, signal: AbortSignal) => Promise<SecretData>;

/** One file of a commit. */
export interface SourceFile {
  /** From the root of the source, with `/`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** Names these very bytes, where the source has such names: a blob of Git. */
  readonly id?: string;
}

/** A file that was not read because who asks has what is in it. */
export interface KnownFile {
  readonly path: string;
  readonly id: string;
  readonly bytes?: undefined;
}

/** Whether what a file holds is known already. */
export type IsKnown = (path: string, id: string) => boolean;

/** A file that is not read, and why: what it declares is unknown, not gone. */
export interface UnreadFile {
  readonly path: string;
  readonly problem: string;
}

/** What a commit holds. */
export interface SourceTree<File extends SourceFile | KnownFile = SourceFile> {
  readonly files: readonly File[];
  readonly unread: readonly UnreadFile[];
  /** Of namespaced objects that name none; without it that of the sync. */
  readonly defaultNamespace?: string;
  /** True for what a program has made: it is not rendered again. */
  readonly isRendered?: boolean;
}

/** What a commit holds, without what was known of it. */
export type ChangedTree = SourceTree<SourceFile | KnownFile>;

export interface Source {
  /** The commit that is to be synced now; asks the origin. Rejects with SourceError. */
  resolve(signal: AbortSignal): Promise<string>;
  /** The files of a commit that `resolve` gave. Rejects with SourceError. */
  read(commit: string, signal: AbortSignal): Promise<SourceTree>;
  /** The same, those that are known without their bytes, where the source can leave them out. Rejects with SourceError. */
  readChanged?(commit: string, isKnown: IsKnown, signal: AbortSignal): Promise<ChangedTree>;
  /** Every file of the commit, for a program that renders it; links are what they lead to. Rejects with SourceError. */
  readAll(commit: string, signal: AbortSignal): Promise<SourceTree>;
}

/** The source cannot be had, or not as it is. The message is for users and holds no credentials. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** PEM of the authority that a spec names; undefined when it names none. Rejects with SourceError for a Secret without it. */
export async function authorityOf(
  { caCertSecretRef }: { readonly caCertSecretRef?: { readonly name?: string } },
  secret: ReadSecret,
  signal: AbortSignal,
): Promise<string | undefined> {
  const name = caCertSecretRef?.name ?? '';
  if (name === '') return undefined;
  const { cert } = await secret(name, signal);
  if (!cert) throw new SourceError(`secret ${JSON.stringify(name)} has no key cert`);
  return cert;
}
