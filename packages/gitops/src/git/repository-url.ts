/** URLs of repositories: which are taken, and what of them is a secret. */
import { SourceError } from './source.ts';

export type GitProtocol = 'https' | 'http' | 'ssh' | 'file';

export interface RepositoryUrl {
  readonly protocol: GitProtocol;
  /** What git is given: without user and password, but for the user of ssh. */
  readonly url: string;
  /** What the URL itself said; `user:password`. */
  readonly credentials?: { readonly username: string; readonly password: string };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const UNSAFE = /[\u0000-\u0020\u007f]/;
/** `user@host:path`: neither part begins with a dash, which ssh would take for an option. */
const SCP = /^([A-Za-z0-9_][A-Za-z0-9._-]*)@([A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):(?!:)([^-].*)$/;
const HOST = /^([A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])$/;

/**
 * Reads the URL of a repository. `file:` is for those who may read this host's files.
 * @throws SourceError for any other protocol and for what a program could take for an option
 */
export function parseRepositoryUrl(text: string, { allowsFile }: { readonly allowsFile: boolean }): RepositoryUrl {
  if (text === '' || UNSAFE.test(text) || text.startsWith('-'))
    throw new SourceError('the URL of the repository is not valid');
  const scp = SCP.exec(text);
  if (scp && !text.includes('://')) return { protocol: 'ssh', url: text };
  let parsed: URL;
  try {
    parsed = new URL(text);
  } catch {
    throw new SourceError(
      'the URL of the repository is not valid; it is https://, http:// or ssh://, or user@host:path',
    );
  }
  const protocol = parsed.protocol.slice(0, -1);
  if (protocol === 'file') {
    if (!allowsFile)
      throw new SourceError('file:// repositories are for RootSyncs: they are read with the rights of this host');
    if (parsed.host !== '' || !text.startsWith('file:///'))
      throw new SourceError('a file:// repository names an absolute path');
    return { protocol, url: text };
  }
  if (protocol !== 'https' && protocol !== 'http' && protocol !== 'ssh')
    throw new SourceError(`repositories are not fetched by ${protocol}; use https://, http:// or ssh://`);
  if (!text.startsWith(`${protocol}://`) || !HOST.test(parsed.hostname) || parsed.pathname.startsWith('/-'))
    throw new SourceError('the URL of the repository is not valid');
  const [username, password] = [decodeURIComponent(parsed.username), decodeURIComponent(parsed.password)];
  if (protocol === 'ssh') {
    if (password !== '') throw new SourceError('the URL of the repository holds a password, which ssh does not take');
    if (username.startsWith('-')) throw new SourceError('the URL of the repository is not valid');
    return { protocol, url: text };
  }
  if (username === '' && password === '') return { protocol, url: text };
  parsed.username = '';
  parsed.password = '';
  return { protocol, url: parsed.href, credentials: { username, password } };
}

/** A URL as it may be shown: without user and password. */
export const shownUrl = (text: string): string =>
  text.replace(/^([a-z+]+:\/\/)[^/@]*@/i, (whole, scheme: string) =>
    whole.includes(':', scheme.length) || /^https?:/i.test(scheme) ? scheme : whole,
  );

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const BAD_REF = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\.lock(\/|$)|(^|\/)\.|\.$|\/$/;

/** Throws SourceError when git would not take it for the name of a branch, a tag or a ref. */
export function checkRef(ref: string): void {
  if (ref === '' || ref.length > 1024 || ref.startsWith('-') || ref.startsWith('/') || BAD_REF.test(ref))
    throw new SourceError(`${JSON.stringify(ref)} is not a valid branch, tag or ref`);
}

const COMMIT = /^([0-9a-f]{40}|[0-9a-f]{64})$/;

/** True for what names a commit in full, by SHA-1 or SHA-256. */
export const isCommit = (text: string): boolean => COMMIT.test(text);

/** The directory that is synced as a path in the tree: '' for the root. Throws SourceError when it leads out. */
export function treePath(dir: string): string {
  const parts = dir.split('/').filter((part) => part !== '' && part !== '.');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
  if (parts.includes('..') || /[\u0000-\u001f\u007f]/.test(dir))
    throw new SourceError(`dir ${JSON.stringify(dir)} leads out of the repository`);
  return parts.join('/');
}
