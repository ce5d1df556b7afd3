/** The manifests of a commit, out of a bare repository. Nothing in it is run, followed out of the tree, or written. */
import { gitOutput } from './git-command.ts';
import {
  type ChangedTree,
  type IsKnown,
  type KnownFile,
  SourceError,
  type SourceFile,
  type SourceTree,
  type UnreadFile,
} from './source.ts';
import { hasOddName, inOrder, isManifest, oddName, TREE_LIMITS, type TreeLimits } from './tree-rules.ts';

export interface ReadOptions {
  readonly directory: string;
  readonly commit: string;
  /** In the tree; '' = its root. */
  readonly path: string;
  /** Every file, and not manifests alone. */
  readonly isAll?: boolean;
  readonly signal: AbortSignal;
  readonly limits?: Partial<TreeLimits>;
}

/** Of what is known the bytes are left out. */
export interface ReadChangedOptions extends ReadOptions {
  readonly isKnown: IsKnown;
}

/** Of the list of entries. */
const MAX_LIST_BYTES = 64 * 1024 ** 2;
const LIST_MS = 60_000;
const READ_MS = 120_000;
/** What git says of a name that leads to no directory. */
const NO_TREE = /not a valid object name|not a tree object/i;

interface Entry {
  readonly mode: string;
  readonly id: string;
  readonly bytes: number;
  /** From the root of the repository. */
  readonly path: string;
}

/** Reads them. Rejects with SourceError when the directory is not there or holds more than the limits. */
export async function readTree(options: ReadOptions): Promise<SourceTree> {
  // None is known.
  return (await readChanged({ ...options, isKnown: () => false })) as SourceTree;
}

/** The same without the bytes of files that are known; the limits are those of the whole. */
export async function readChanged(options: ReadChangedOptions): Promise<ChangedTree> {
  const { signal, isKnown } = options;
  const limits = { ...TREE_LIMITS, ...options.limits };
  const entries = await listEntries(options, limits.entries);
  const wanted: Entry[] = [];
  const unread: UnreadFile[] = [];
  let bytes = 0;
  for (const entry of entries) {
    // A submodule is another repository, which was not asked for.
    if (entry.mode === '160000') continue;
    if (!(options.isAll || isManifest(entry.path))) continue;
    if (hasOddName(entry.path)) unread.push(oddName(entry.path));
    else if (entry.mode !== '120000' && entry.bytes > limits.fileBytes)
      unread.push({ path: entry.path, problem: `it has ${entry.bytes} bytes; ${limits.fileBytes} are read` });
    else {
      wanted.push(entry);
      bytes += entry.bytes;
    }
  }
  const what = options.isAll ? 'files' : 'manifests';
  if (wanted.length > limits.files)
    throw new SourceError(`the directory holds ${wanted.length} ${what}; ${limits.files} are read`);
  if (bytes > limits.totalBytes)
    throw new SourceError(`the ${what} have ${bytes} bytes; ${limits.totalBytes} are read`);
  const isLink = ({ mode }: Entry): boolean => mode === '120000';
  const files: (SourceFile | KnownFile)[] = [];
  const plain: Entry[] = [];
  for (const entry of wanted.filter((one) => !isLink(one))) {
    if (isKnown(entry.path, entry.id)) files.push({ path: entry.path, id: entry.id });
    else plain.push(entry);
  }
  const links = wanted.filter(isLink);
  const add = (list: readonly Entry[], answers: readonly (Uint8Array | string)[]): void =>
    list.forEach((entry, at) => {
      const answer = answers[at] ?? 'it could not be read';
      if (answer.length > limits.fileBytes)
        unread.push({ path: entry.path, problem: `it leads to ${answer.length} bytes; ${limits.fileBytes} are read` });
      else if (typeof answer === 'string') unread.push({ path: entry.path, problem: answer });
      // The blob of a link is not that of what it leads to.
      else files.push({ path: entry.path, bytes: answer, ...(!isLink(entry) && { id: entry.id }) });
    });
  const call = { directory: options.directory, signal, limit: limits.totalBytes };
  add(
    plain,
    await readObjects(
      plain.map(({ id }) => id),
      call,
    ),
  );
  // By path, so that git itself follows them, within the tree alone.
  add(
    links,
    await readObjects(
      links.map((entry) => `${options.commit}:${entry.path}`),
      { ...call, followsLinks: true },
    ),
  );
  return inOrder({ files, unread });
}

async function listEntries({ directory, commit, path, signal }: ReadOptions, maxEntries: number): Promise<Entry[]> {
  const call = { directory, signal, timeoutMs: LIST_MS, maxStdout: MAX_LIST_BYTES };
  const listed = await gitOutput(['ls-tree', '-r', '-l', '-z', '--full-tree', `${commit}:${path}`], call).catch(
    (error: unknown) => {
      signal.throwIfAborted();
      if (!(error instanceof SourceError) || !NO_TREE.test(error.message)) throw error;
      throw new SourceError(`commit ${commit} has no directory ${JSON.stringify(path)}`);
    },
  );
  const out = Buffer.from(listed);
  const entries: Entry[] = [];
  for (let from = 0; from < out.length; ) {
    const end = out.indexOf(0, from);
    const tab = out.indexOf(9, from);
    const [mode = '', , id = '', size = ''] = out.toString('latin1', from, tab).split(/ +/);
    const name = out.toString('utf8', tab + 1, end);
    entries.push({ mode, id, bytes: Number(size) || 0, path: path === '' ? name : `${path}/${name}` });
    if (entries.length > maxEntries) throw new SourceError(`the directory holds more than ${maxEntries} files`);
    from = end + 1;
  }
  return entries;
}

interface Batch {
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly limit: number;
  readonly followsLinks?: boolean;
}

/** The contents of each name, or why there are none. */
async function readObjects(names: readonly string[], batch: Batch): Promise<(Uint8Array | string)[]> {
  if (names.length === 0) return [];
  const out = Buffer.from(
    await gitOutput(['cat-file', '--batch', '--buffer', ...(batch.followsLinks ? ['--follow-symlinks'] : [])], {
      directory: batch.directory,
      signal: batch.signal,
      timeoutMs: READ_MS,
      input: Buffer.from(`${names.join('\n')}\n`),
      // A link may lead to any file of the tree.
      maxStdout: batch.limit + names.length * 256 + 1024,
    }),
  );
  const answers: (Uint8Array | string)[] = [];
  let from = 0;
  while (answers.length < names.length && from < out.length) {
    const end = out.indexOf(10, from);
    const words = out.toString('utf8', from, end).split(' ');
    from = end + 1;
    const size = Number(words[2]);
    if (words.length === 3 && words[1] === 'blob') {
      answers.push(out.subarray(from, from + size));
      from += size + 1;
    } else if (words.length === 3 && words[1] === 'tree') {
      answers.push('it is a link to a directory');
      from += size + 1;
    } else if (['symlink', 'dangling', 'loop', 'notdir'].includes(words[0]!)) {
      // What it leads to, or the name asked for, follows.
      from += Number(words[1]) + 1;
      answers.push(
        words[0] === 'symlink' ? 'it is a link that leads out of the repository' : 'it is a link that leads nowhere',
      );
    } else answers.push('it could not be read');
  }
  return answers;
}
