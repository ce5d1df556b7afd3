/**
 * The calls to a pool of volumes: those of CSI (Container Storage Interface 1.9, controller service), one
 * `POST /storage/v1/CALL` each on the port of an agent that serves the pool. Every call may be repeated: it is
 * recognised by its handles and gives the same reply. Handles are UIDs: that of the claim for a volume, that of the
 * VolumeSnapshot for a snapshot.
 */

/** How the content of a volume lies in its file. */
export type VolumeFormat = 'raw' | 'qcow2';

/** Call `createVolume`: an empty volume, or one with the content of a snapshot or of another volume. */
export interface CreateVolume {
  readonly handle: string;
  /** Bytes that the guest sees; at least those of the source. */
  readonly bytes: number;
  readonly mode: 'Filesystem' | 'Block';
  readonly format: VolumeFormat;
  readonly source?: { readonly kind: 'snapshot' | 'volume'; readonly handle: string };
  /** Nothing stands for the volume yet: `inspect` shows since when, until `confirmVolume`. */
  readonly provisional?: boolean;
}

/** Reply to `createVolume` and `expandVolume`. */
export interface VolumeMade {
  readonly handle: string;
  readonly bytes: number;
  readonly format: VolumeFormat;
}

/** Where the content of a volume is fetched from. */
export type FillSource =
  | {
      readonly type: 'http';
      readonly url: string;
      /** `ALGORITHM:HEX`. */
      readonly checksum?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly credentials?: { readonly username: string; readonly password: string };
      /** PEM of authorities that are trusted beside the usual ones. */
      readonly ca?: string;
    }
  /** The disk below `/disk` of a container image. */
  | {
      readonly type: 'registry';
      readonly reference: string;
      readonly credentials?: { readonly username: string; readonly password: string };
    }
  /** Bytes that somebody sends: `UPLOAD_PATH`. */
  | { readonly type: 'upload' };

/** Tables and headers of an image may take so much beside what a guest sees. */
const OVERHEAD_SHARE = 64;
const OVERHEAD_BYTES = 64 * 1024 * 1024;

/** Bytes that the file of an image may have, for a volume of so many bytes. */
export const maxImageBytes = (bytes: number): number => bytes + Math.ceil(bytes / OVERHEAD_SHARE) + OVERHEAD_BYTES;

/**
 * `POST /storage/v1/upload/HANDLE?bytes=N`, upgraded to `UPLOAD_PROTOCOL`: takes the N bytes of an image for a volume that a
 * `fillVolume` of type `upload` has announced. The other way go lines of JSON, an `UploadReply` each; the last one ends it.
 */
export const UPLOAD_PATH = '/storage/v1/upload/';
export const UPLOAD_PROTOCOL = 'coracle-upload/1';

/** `received`: the bytes are there, and are an image that can be taken; it goes on without the sender. */
export type UploadReply =
  | { readonly state: 'received' | 'done' }
  /** `Conflict`: another upload is under way, or the volume is full; `NotFound`: none was announced. */
  | { readonly state: 'failed'; readonly problem: FillProblem | 'Conflict' | 'NotFound'; readonly message: string };

/**
 * `GET /storage/v1/content/HANDLE`: what a volume that no guest writes to holds, a `VolumeContent`; with `?file=NAME` the
 * bytes of one of these. A guest that takes the volume breaks that off.
 */
export const CONTENT_PATH = '/storage/v1/content/';

export interface VolumeContent {
  /** `disk.img` is the disk as a guest sees it; the others are files that lie in the volume. In the order of their names. */
  readonly files: readonly VolumeFile[];
}

export interface VolumeFile {
  readonly name: string;
  readonly bytes: number;
  /** Another one where the bytes may be others: hexadecimal digits. Agents of an earlier version say none. */
  readonly version?: string;
}

/** Name of the disk among the files of a volume. */
export const DISK_FILE = 'disk.img';

/**
 * Call `fillVolume`: makes a volume with what the source gives, under the same handle as `createVolume` would. The work goes
 * on after the reply; each further call says how it stands. What was fetched already is kept over restarts. With a source of
 * type `upload` it waits for the bytes, in step `waiting`.
 */
export interface FillVolume {
  readonly handle: string;
  readonly bytes: number;
  readonly mode: 'Filesystem' | 'Block';
  readonly format: VolumeFormat;
  readonly source: FillSource;
  /** After a failure the next attempt is made under another number. */
  readonly attempt: number;
}

/** `Source`: it cannot be had; `Image`: it is none that fits; `Checksum`: it is another one; `NoSpace`: the pool is full. */
export type FillProblem = 'Source' | 'Image' | 'Checksum' | 'NoSpace';

/** Reply to `fillVolume`. */
export type FillReport =
  | {
      readonly state: 'running';
      readonly step: 'waiting' | 'download' | 'unpack' | 'convert';
      /** 0 to 1, of all steps; absent while nobody knows how much there is. */
      readonly fraction?: number;
      /** Bytes of the download that are there, and of all of it. */
      readonly bytes: number;
      readonly totalBytes?: number;
      readonly bytesPerSecond?: number;
      readonly secondsLeft?: number;
    }
  | { readonly state: 'done'; readonly volume: VolumeMade }
  | { readonly state: 'failed'; readonly problem: FillProblem; readonly message: string };

/** Reply to `imageDigest`, which takes a source of type `registry`: what the image is now, for guests of the node. */
export interface ImageDigest {
  /** `sha256:HEX` of the manifest. */
  readonly digest: string;
}

/** Call `expandVolume`: at least so many bytes; a running guest sees them at once. */
export interface ExpandVolume {
  readonly handle: string;
  readonly bytes: number;
}

/** Calls `deleteVolume` and `deleteSnapshot`, and `confirmVolume`, after which a volume is not provisional: done also when there is none. `InUse` while a guest has it open. */
export interface DeleteHandle {
  readonly handle: string;
}

/** Call `createSnapshots`: all of them at one point in time, or none. */
export interface CreateSnapshots {
  readonly snapshots: readonly { readonly handle: string; readonly volume: string }[];
}

/** Reply to `createSnapshots`, in the order asked. */
export interface SnapshotsMade {
  readonly snapshots: readonly {
    readonly handle: string;
    /** Bytes of the volume when it was taken: what a volume made from it must have. */
    readonly bytes: number;
    /** RFC 3339. */
    readonly createdAt: string;
  }[];
}

/** Call `inspect` without members: what the pool holds. */
export interface PoolFacts {
  readonly pool: string;
  readonly freeBytes: number;
  /** Of the file system that it lies on; agents of older versions do not say. */
  readonly totalBytes?: number;
  readonly volumes: readonly {
    readonly handle: string;
    readonly bytes: number;
    readonly usedBytes: number;
    /** RFC 3339; of volumes that were made provisional and not confirmed yet. */
    readonly provisionalSince?: string;
  }[];
  readonly snapshots: readonly { readonly handle: string; readonly usedBytes: number }[];
  /** Handles of volumes that are being filled, or were when something ended it; agents of older versions do not say. */
  readonly fills?: readonly string[];
}

export const POOL_CALLS = [
  'createVolume',
  'confirmVolume',
  'fillVolume',
  'imageDigest',
  'expandVolume',
  'deleteVolume',
  'createSnapshots',
  'deleteSnapshot',
  'inspect',
] as const;
export type PoolCall = (typeof POOL_CALLS)[number];

/** Reason of a Status that refuses a call. `Invalid` 422, `NotFound` 404, `InUse` and `Conflict` 409, `NoSpace` 507. */
export type PoolErrorReason = 'Invalid' | 'NotFound' | 'InUse' | 'Conflict' | 'NoSpace';
