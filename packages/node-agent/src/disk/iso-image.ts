/**
 * ISO 9660 images of a few small files, with their names by Rock Ridge (for Linux and BSD) and by Joliet (for Windows), as in
 * ECMA-119, IEEE P1282 and the Joliet specification. Pure. An image is as large as its files and some 350 KiB.
 */

/** Path in the image (relative, `/` between parts) -> bytes. Names are of letters, digits, `_`, `.` and `-`. */
export type IsoFiles = ReadonlyMap<string, Uint8Array | string>;

/** What an image is made of. */
interface IsoImage {
  /** Volume id, at most 32 characters. */
  readonly label: string;
  readonly files: IsoFiles;
  /** Mode of the files as the guest sees them; they belong to its root. */
  readonly fileMode: number;
  /** When it is made. */
  readonly date: Date;
}

interface Entry {
  readonly name: string;
  readonly parent: Directory | undefined;
}
interface File extends Entry {
  readonly bytes: Uint8Array;
  at: number;
}
interface Directory extends Entry {
  readonly entries: Map<string, File | Directory>;
  /** In each of the two trees: where it lies, in sectors, and the bytes of its records. */
  readonly extents: [Extent, Extent];
}
interface Extent {
  at: number;
  size: number;
}
/** The tree of the primary volume descriptor, with Rock Ridge, and that of Joliet. */
type Tree = 0 | 1;
const TREES = [0, 1] as const;

const SECTOR = 2048;
const FIRST = 16;
/** Behind the files: who probes a disk, as findfs of busybox, reads 68 KiB of it, and finds nothing on a smaller one. */
const PADDING = 150;
const DIRECTORY_MODE = 0o040755;
const FILE_MODE = 0o100000;
const MOST_ISO = 27;
const MOST_JOLIET = 60;
/** Longer names stand behind the records of their directory: a record has at most 255 bytes. */
const MOST_IN_RECORD = 100;
const NAME_PIECE = 200;

const sectors = (bytes: number): number => Math.ceil(bytes / SECTOR);
const isDirectory = (entry: File | Directory): entry is Directory => 'entries' in entry;
const inBothOrders = (...numbers: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(8 * numbers.length);
  for (const [index, number] of numbers.entries()) {
    bytes.writeUInt32LE(number, 8 * index);
    bytes.writeUInt32BE(number, 8 * index + 4);
  }
  return bytes;
};
const ucs2 = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
const padded = (bytes: Buffer, to: number): Buffer => Buffer.concat([bytes], Math.ceil(bytes.length / to) * to);

/** The bytes of the image, whole sectors. */
export function isoImage({ label, files, fileMode, date }: IsoImage): Buffer {
  const root = treeOf(files);
  const trees = TREES.map((tree) => breadthFirst(root, tree)) as [Directory[], Directory[]];
  const write = (tree: Tree, directory: Directory): readonly [Buffer, Buffer] =>
    directoryBytes(directory, { tree, fileMode, date });
  const tables = TREES.map((tree) => pathTable(trees[tree], tree, 'LE').length);
  let next = FIRST + 3;
  const tableAt = tables.map((size) => {
    const at = next;
    next += 2 * sectors(size);
    return at;
  });
  for (const tree of TREES)
    for (const directory of trees[tree]) {
      const [records, more] = write(tree, directory);
      directory.extents[tree] = { at: next, size: records.length };
      next += sectors(records.length + more.length);
    }
  const contents: Buffer[] = [];
  for (const { entries } of trees[0])
    for (const entry of entries.values())
      if (!isDirectory(entry)) {
        entry.at = next;
        next += sectors(entry.bytes.length);
        contents.push(padded(Buffer.from(entry.bytes), SECTOR));
      }
  const total = next + PADDING;
  const descriptor = (tree: Tree): Buffer =>
    volumeDescriptor(tree, { label, date, root: root.extents[tree], total, table: [tableAt[tree]!, tables[tree]!] });
  const terminator = Buffer.alloc(SECTOR);
  terminator.write('\xffCD001\x01', 'latin1');
  return Buffer.concat([
    Buffer.alloc(FIRST * SECTOR),
    ...[descriptor(0), descriptor(1), terminator],
    ...TREES.flatMap((tree) =>
      (['LE', 'BE'] as const).map((order) => padded(pathTable(trees[tree], tree, order), SECTOR)),
    ),
    ...TREES.flatMap((tree) => trees[tree].flatMap((directory) => write(tree, directory))),
    ...contents,
    Buffer.alloc(PADDING * SECTOR),
  ]);
}

function treeOf(files: IsoFiles): Directory {
  const directoryIn = (parent: Directory | undefined, name: string): Directory => ({
    name,
    parent,
    entries: new Map(),
    extents: [
      { at: 0, size: 0 },
      { at: 0, size: 0 },
    ],
  });
  const root = directoryIn(undefined, '');
  for (const [path, content] of files) {
    const parts = path.split('/');
    const name = parts.pop()!;
    let at = root;
    for (const part of parts) {
      const found = at.entries.get(part) ?? directoryIn(at, part);
      if (!isDirectory(found)) throw new Error(`${JSON.stringify(part)} is a file and a directory`);
      at.entries.set(part, found);
      at = found;
    }
    if (at.entries.has(name)) throw new Error(`${JSON.stringify(name)} is a file and a directory`);
    at.entries.set(name, { name, parent: at, bytes: Buffer.from(content), at: 0 });
  }
  return root;
}

/** In the order of the path tables of a tree: by level, by the directory that they are in, and by the bytes of their names. */
function breadthFirst(root: Directory, tree: Tree): Directory[] {
  const found = [root];
  for (const directory of found)
    for (const [, entry] of identifiers(directory, tree)) if (isDirectory(entry)) found.push(entry);
  return found;
}

/** What each entry of a directory is called in a tree, shortened where it has to be, and in the order of its bytes. */
function identifiers({ entries }: Directory, tree: Tree): readonly (readonly [Buffer, File | Directory])[] {
  const [most, write] = tree === 0 ? [MOST_ISO, (text: string) => Buffer.from(text)] : [MOST_JOLIET, ucs2];
  const taken = new Set<string>();
  const named = [...entries.values()].map((entry) => {
    const text = tree === 0 ? entry.name.toUpperCase().replace(/[^A-Z0-9_]/g, '_') : entry.name;
    let short = text.slice(0, most);
    for (let number = 0; taken.has(short); number++) short = `${text.slice(0, most - 5)}_${number}`;
    taken.add(short);
    const version = isDirectory(entry) ? '' : tree === 0 ? '.;1' : ';1';
    return [write(short + version), entry] as const;
  });
  return named.sort(([one], [other]) => Buffer.compare(one, other));
}

/** The records of a directory, and what of their names stands behind them. */
function directoryBytes(
  directory: Directory,
  { tree, fileMode, date }: { readonly tree: Tree } & Pick<IsoImage, 'fileMode' | 'date'>,
): readonly [Buffer, Buffer] {
  const own = directory.extents[tree];
  const more = createSectors();
  const rockRidge = (entry: File | Directory): Buffer => {
    if (tree === 1) return Buffer.alloc(0);
    const attributes = attributesOf(entry, fileMode);
    if (entry.name.length <= MOST_IN_RECORD) return Buffer.concat([attributes, nameEntry(entry.name, false)]);
    const pieces = entry.name.match(new RegExp(`.{1,${NAME_PIECE}}`, 'g')) ?? [];
    const names = Buffer.concat(pieces.map((piece, index) => nameEntry(piece, index + 1 < pieces.length)));
    const at = more.add(names);
    const sector = own.at + sectors(own.size) + Math.floor(at / SECTOR);
    return Buffer.concat([attributes, systemUse('CE', inBothOrders(sector, at % SECTOR, names.length))]);
  };
  const extentOf = (entry: File | Directory): Extent =>
    isDirectory(entry) ? entry.extents[tree] : { at: entry.at, size: entry.bytes.length };
  const up = directory.parent ?? directory;
  const isRoot = directory.parent === undefined;
  const onlyInFirst = (bytes: Buffer): Buffer => (tree === 0 ? bytes : Buffer.alloc(0));
  const self = Buffer.concat([...(isRoot ? [SHARING, EXTENSION] : []), attributesOf(directory, fileMode)]);
  const records = [
    record(Buffer.of(0), { ...own, date, isDirectory: true }, onlyInFirst(self)),
    record(Buffer.of(1), { ...up.extents[tree], date, isDirectory: true }, onlyInFirst(attributesOf(up, fileMode))),
    ...identifiers(directory, tree).map(([id, entry]) =>
      record(id, { ...extentOf(entry), date, isDirectory: isDirectory(entry) }, rockRidge(entry)),
    ),
  ];
  const all = createSectors();
  for (const one of records) all.add(one);
  return [all.bytes(), more.bytes()];
}

/** Pieces one behind the other, none of which lies in two sectors. */
function createSectors() {
  const pieces: Buffer[] = [];
  let length = 0;
  const push = (piece: Buffer): number => {
    pieces.push(piece);
    length += piece.length;
    return length - piece.length;
  };
  return {
    /** Returns where the piece lies. */
    add(piece: Buffer): number {
      const gap = sectors(length + 1) * SECTOR - length;
      if (gap < piece.length) push(Buffer.alloc(gap));
      return push(piece);
    },
    bytes: (): Buffer => padded(Buffer.concat(pieces), SECTOR),
  };
}

/** An entry of the system use sharing protocol. */
const systemUse = (signature: string, bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(signature), Buffer.of(4 + bytes.length, 1), bytes]);
const SHARING = systemUse('SP', Buffer.of(0xbe, 0xef, 0));
const RRIP = Buffer.from('RRIP_1991A');
const EXTENSION = systemUse('ER', Buffer.concat([Buffer.of(RRIP.length, 0, 0, 1), RRIP]));
const nameEntry = (name: string, continues: boolean): Buffer =>
  systemUse('NM', Buffer.concat([Buffer.of(continues ? 1 : 0), Buffer.from(name)]));

/** Mode, links, owner and group. */
function attributesOf(entry: File | Directory, fileMode: number): Buffer {
  if (!isDirectory(entry)) return systemUse('PX', inBothOrders(FILE_MODE | fileMode, 1, 0, 0));
  const inner = [...entry.entries.values()].filter(isDirectory).length;
  return systemUse('PX', inBothOrders(DIRECTORY_MODE, 2 + inner, 0, 0));
}

function record(
  id: Buffer,
  { at, size, date, isDirectory: isDir }: Extent & { readonly date: Date; readonly isDirectory: boolean },
  more: Buffer = Buffer.alloc(0),
): Buffer {
  const head = 33 + id.length + ((id.length + 1) % 2);
  const bytes = Buffer.alloc(head + more.length + (more.length % 2));
  bytes[0] = bytes.length;
  bytes.set(inBothOrders(at, size), 2);
  bytes.set([date.getUTCFullYear() - 1900, date.getUTCMonth() + 1, date.getUTCDate()], 18);
  bytes.set([date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()], 21);
  bytes[25] = isDir ? 2 : 0;
  bytes.set([1, 0, 0, 1], 28);
  bytes[32] = id.length;
  bytes.set(id, 33);
  bytes.set(more, head);
  return bytes;
}

function pathTable(directories: readonly Directory[], tree: Tree, order: 'LE' | 'BE'): Buffer {
  const numbers = new Map(directories.map((directory, index) => [directory, index + 1]));
  return Buffer.concat(
    directories.map((directory) => {
      const { parent } = directory;
      const id = parent ? identifiers(parent, tree).find(([, entry]) => entry === directory)![0] : Buffer.of(0);
      const bytes = Buffer.alloc(8 + id.length + (id.length % 2));
      bytes[0] = id.length;
      bytes[`writeUInt32${order}`](directory.extents[tree].at, 2);
      bytes[`writeUInt16${order}`](numbers.get(parent ?? directory)!, 6);
      bytes.set(id, 8);
      return bytes;
    }),
  );
}

function volumeDescriptor(
  tree: Tree,
  {
    label,
    date,
    root,
    total,
    table: [tableAt, tableSize],
  }: Pick<IsoImage, 'label' | 'date'> & { root: Extent; total: number; table: readonly [number, number] },
): Buffer {
  const bytes = Buffer.alloc(SECTOR);
  const write = (text: string): Buffer => (tree === 0 ? Buffer.from(text) : ucs2(text));
  const blank = write(' ');
  const text = (value: string, at: number, length: number): void => {
    bytes.fill(blank, at, at + length - (length % blank.length));
    bytes.set(write(value).subarray(0, length), at);
  };
  bytes[0] = tree + 1;
  bytes.write('CD001\x01', 1, 'latin1');
  text('', 8, 32);
  text(label, 40, 32);
  bytes.set(inBothOrders(total), 80);
  // UCS-2, level 3.
  if (tree === 1) bytes.write('%/E', 88);
  for (const [index, value] of [1, 1, SECTOR].entries()) {
    bytes.writeUInt16LE(value, 120 + 4 * index);
    bytes.writeUInt16BE(value, 122 + 4 * index);
  }
  bytes.set(inBothOrders(tableSize), 132);
  bytes.writeUInt32LE(tableAt, 140);
  bytes.writeUInt32BE(tableAt + sectors(tableSize), 148);
  bytes.set(record(Buffer.of(0), { ...root, date, isDirectory: true }), 156);
  for (let at = 190; at < 702; at += 128) text('', at, 128);
  for (let at = 702; at < 813; at += 37) text('', at, 37);
  const digits = date.toISOString().replace(/\D/g, '').slice(0, 16);
  for (const at of [813, 830]) bytes.write(digits, at);
  for (const at of [847, 864]) bytes.write('0'.repeat(16), at);
  bytes[881] = 1;
  return bytes;
}
