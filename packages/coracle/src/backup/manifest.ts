/**
 * `manifest.json` of a backup: what is in it, and the digest of each part. It is read as untrusted input: a name that is
 * not one of ours, or a number that cannot be, is refused before a file is touched.
 */
import { BackupError } from './backup-error.ts';

/** A file kept whole, below `data/` under its own name. */
export interface WholeFile {
  /** Path below the data directory. */
  readonly path: string;
  readonly bytes: number;
  /** SHA-256, hex. */
  readonly sha256: string;
}

/** A file kept in chunks: those of its map, in order; what the map leaves out is a hole. */
export interface ChunkedFile {
  /** Path below the data directory. */
  readonly path: string;
  readonly bytes: number;
  /** Bytes in chunks: what it takes on the disk, at most. */
  readonly dataBytes: number;
  /** SHA-256 of the map, hex. */
  readonly sha256: string;
  /** Size and time of the file that was read: one of the same name that has both still holds the same. */
  readonly source: { readonly bytes: number; readonly changed: string };
}

export interface Manifest {
  readonly version: 1;
  readonly id: string;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Version of the program that made it. */
  readonly program: string;
  /** Id of the backup it was made on the base of; it does not need that one. */
  readonly base?: string;
  readonly store: {
    /** Newest resourceVersion in it. */
    readonly revision: number;
    readonly rows: number;
    /** Rows that were damaged in the store itself. */
    readonly damaged: number;
  };
  /** Whether the keys of the control plane are in it. */
  readonly keys: boolean;
  /** What it leaves out, in sentences. */
  readonly notes: readonly string[];
  readonly files: readonly WholeFile[];
  readonly chunked: readonly ChunkedFile[];
}

/** Bytes of one chunk; the last of a file may be shorter. */
export const CHUNK_BYTES = 4 * 1024 * 1024;
/** Most bytes of a manifest, files in it, and bytes that one file may be: 64 TiB. */
export const MAX_MANIFEST_BYTES = 32 * 1024 * 1024;
const MAX_FILES = 100_000;
const MAX_FILE_BYTES = 64 * 1024 ** 4;
/** Files that are read whole: keys, ids; and the state. */
const MAX_SMALL_BYTES = 1024 * 1024;

export const STORE_PATH = 'state/store.db';
export const KEY_PATHS: readonly string[] = [
  'pki/ca.crt',
  'pki/ca.key',
  'pki/front-proxy-ca.crt',
  'pki/front-proxy-ca.key',
  'pki/sa.key',
];
const AGENT_ID = /^nodes\/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/agent\.id$/;
const UID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const NAME = '[A-Za-z0-9_][A-Za-z0-9._-]{0,127}';
const CHUNKED: readonly RegExp[] = [
  /^claims\/pool\.json$/,
  new RegExp(`^claims/${UID}/(disk\\.img|claim\\.json|layer-[0-9a-f]{12}\\.(raw|qcow2))$`),
  new RegExp(`^claims/${UID}/files(/${NAME}){1,8}$`),
  /^images\/local\/[0-9a-f]{64}\.json$/,
  /^images\/files\/sha256-[0-9a-f]{64}$/,
];

/** Whether a file of that path below a data directory may be kept whole, or in chunks; undefined for any other path. */
export function kindOfPath(path: string): 'whole' | 'chunked' | undefined {
  if (path === STORE_PATH || KEY_PATHS.includes(path) || AGENT_ID.test(path)) return 'whole';
  return CHUNKED.some((pattern) => pattern.test(path)) ? 'chunked' : undefined;
}

const isCount = (value: unknown, most = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
const isDigest = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= 4096;

/** Reads a manifest. Throws BackupError that says what is wrong with it. */
export function parseManifest(text: string): Manifest {
  const bad = (what: string): BackupError => new BackupError(`manifest.json ${what}`);
  let manifest: Manifest;
  try {
    manifest = JSON.parse(text) as Manifest;
  } catch {
    throw bad('is damaged: it is not JSON');
  }
  if (typeof manifest !== 'object' || manifest === null) throw bad('is damaged: it is not an object');
  if (isCount(manifest.version) && manifest.version > 1)
    throw bad(`is of format ${manifest.version}, this version reads up to 1; use the version that made it`);
  const { store, files, chunked, notes, keys } = manifest;
  const isSound =
    manifest.version === 1 &&
    [manifest.id, manifest.createdAt, manifest.program].every(isText) &&
    (manifest.base === undefined || isText(manifest.base)) &&
    typeof keys === 'boolean' &&
    isCount(store?.revision) &&
    isCount(store.rows) &&
    isCount(store.damaged) &&
    Array.isArray(notes) &&
    notes.every(isText) &&
    Array.isArray(files) &&
    Array.isArray(chunked);
  if (!isSound) throw bad('is damaged: it lacks what a manifest has');
  if (files.length + chunked.length > MAX_FILES) throw bad(`names more than ${MAX_FILES} files`);
  const seen = new Set<string>();
  for (const [kind, list] of [
    ['whole', files],
    ['chunked', chunked],
  ] as const)
    for (const file of list) {
      const named = JSON.stringify(String(file?.path).slice(0, 200));
      if (!isText(file?.path) || kindOfPath(file.path) !== kind) throw bad(`names ${named}, which no backup holds`);
      if (seen.has(file.path)) throw bad(`names ${named} twice`);
      seen.add(file.path);
      const most = kind === 'whole' && file.path !== STORE_PATH ? MAX_SMALL_BYTES : MAX_FILE_BYTES;
      if (!isCount(file.bytes, most)) throw bad(`says that ${named} is ${String(file.bytes)} bytes large`);
      if (!isDigest(file.sha256)) throw bad(`has no digest of ${named}`);
    }
  for (const { path, bytes, dataBytes, source } of chunked)
    if (!isCount(dataBytes, bytes) || !isCount(source?.bytes) || !isText(source.changed))
      throw bad(`has no sizes of ${JSON.stringify(path)}`);
  if (!seen.has(STORE_PATH)) throw bad('names no state');
  const present = KEY_PATHS.filter((path) => seen.has(path));
  if (keys !== present.length > 0 || (keys && !['pki/ca.crt', 'pki/ca.key', 'pki/sa.key'].every((p) => seen.has(p))))
    throw bad('names some of the keys and lacks others');
  return manifest;
}
