/**
 * Watch events as bytes. A change is encoded once per representation and the same buffer goes to every watcher; only
 * the newest changes are kept, because all watchers are served in the moment of publication.
 */

import { deepFreeze } from '@coracle/apimachinery/meta/deep-freeze';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { Status } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { StreamDocument } from '@coracle/runtime/http/seam';
import type { Change, StoredObject } from '../cache/object-store.ts';
import { encodeWatchFrame } from '../kinds/protobuf/documents.ts';
import { encodeObject, viewBytes, viewMetadata, viewObject } from '../registry/versioned-view.ts';
import { inForm, type WriteElsewhere, writeForm } from './document-forms.ts';
import type { Representation } from './negotiation.ts';
import { type IncludeObject, partialOf, tableOf } from './table.ts';

export type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED';

const encoder = new TextEncoder();
const HEADS: Record<FrameType | 'BOOKMARK' | 'ERROR', Uint8Array> = {
  ADDED: encoder.encode('{"type":"ADDED","object":'),
  MODIFIED: encoder.encode('{"type":"MODIFIED","object":'),
  DELETED: encoder.encode('{"type":"DELETED","object":'),
  BOOKMARK: encoder.encode('{"type":"BOOKMARK","object":'),
  ERROR: encoder.encode('{"type":"ERROR","object":'),
};
const TAIL = encoder.encode('}\n');

/** One event around the JSON of its object. */
type MakeFrame = (type: keyof typeof HEADS, object: Uint8Array) => Uint8Array;

const PROTOBUF_FORM = { type: 'protobuf' } as const;

const protobufFrame: MakeFrame = (type, json) => framed(type, writeForm({ json, form: PROTOBUF_FORM }));

function framed(type: keyof typeof HEADS, encoded: Uint8Array | undefined): Uint8Array {
  if (!encoded) throw new TypeError('a watch in protobuf was agreed on for a kind that has no such form');
  return encodeWatchFrame(type, encoded);
}

/** The same for an object that may be large. */
function largeProtobufFrame(
  type: keyof typeof HEADS,
  json: Uint8Array,
  writeElsewhere: WriteElsewhere | undefined,
): Frame {
  const made = inForm({ json, form: PROTOBUF_FORM }, writeElsewhere);
  return made instanceof Promise ? made.then((encoded) => framed(type, encoded)) : framed(type, made);
}

const jsonFrame: MakeFrame = (type, object) => joinBytes([HEADS[type], object, TAIL]);

/** Changes whose frames are kept, and the bytes they may hold together. */
const MAX_CHANGES = 256;
const MAX_BYTES = 16 * 1024 * 1024;

/** A frame, or one that is still being made: of a large object in protobuf. */
export type Frame = Uint8Array | Promise<Uint8Array>;

/** The shared frames of the newest changes. */
export class FrameCache {
  readonly #frames = new Map<StoredObject, Map<string, Frame>>();
  #bytes = 0;

  /** The frame of a change under `key`, made by `make` the first time. */
  shared(change: StoredObject, key: string, make: () => Frame): Frame {
    const known = this.#frames.get(change)?.get(key);
    if (known) return known;
    const made = make();
    const frames = this.#frames.get(change) ?? new Map<string, Frame>();
    this.#frames.set(change, frames);
    frames.set(key, made);
    if (made instanceof Promise) this.#awaitFrame(change, key, made);
    else this.#keep(made);
    return made;
  }

  #awaitFrame(change: StoredObject, key: string, making: Promise<Uint8Array>): void {
    making.then(
      (made) => {
        if (this.#frames.get(change)?.get(key) !== making) return;
        this.#frames.get(change)!.set(key, made);
        this.#keep(made);
      },
      () => this.#frames.get(change)?.delete(key),
    );
  }

  #keep(made: Uint8Array): void {
    this.#bytes += made.length;
    for (const [change, frames] of this.#frames) {
      const isWithin = this.#frames.size <= MAX_CHANGES && this.#bytes <= MAX_BYTES;
      if (isWithin || this.#frames.size === 1) return;
      this.#frames.delete(change);
      for (const made of frames.values()) if (!(made instanceof Promise)) this.#bytes -= made.length;
    }
  }
}

/** Encodes the events of one watch. */
export type FrameEncoder = ReturnType<typeof createFrameEncoder>;

/** Events as frozen values. Where they are metadata only, managedFields may be left out: no reader in this process asks. */
export interface ValueEncoder {
  change(type: FrameType, change: Change): StreamDocument;
  left(change: Change): StreamDocument;
  initial(stored: StoredObject): StreamDocument;
}

/** An encoder for one watch over `info` in `representation`. */
export function createFrameEncoder(
  cache: FrameCache,
  options: {
    readonly info: ResourceInfo;
    readonly representation: Representation;
    readonly includeObject: IncludeObject;
    readonly now: () => number;
    /** Writes large objects in protobuf, on nobody's account: a frame is for all watchers. Absent = written here. */
    readonly writeElsewhere?: WriteElsewhere | undefined;
  },
) {
  const { info, representation } = options;
  const { as, version } = representation;
  const isProtobuf = representation.encoding === 'protobuf';
  const frame = isProtobuf ? protobufFrame : jsonFrame;
  const frameOf = (type: FrameType, object: Uint8Array): Frame =>
    isProtobuf ? largeProtobufFrame(type, object, options.writeElsewhere) : frame(type, object);
  const scope = `${apiVersionOf(info)} ${representation.encoding} ${as} ${version} ${options.includeObject}`;
  const keys = { ADDED: `ADDED ${scope}`, MODIFIED: `MODIFIED ${scope}`, DELETED: `DELETED ${scope}`, LEFT: scope };
  // Only the first event of a Table watch carries the column definitions.
  let definitions = as === 'table';

  const shape = (object: Readonly<UnstructuredObject>): Uint8Array => {
    if (as !== 'table') return encodeObject(as === 'object' ? object : partialOf(object, version));
    const table = tableOf(info, {
      objects: [object],
      version,
      includeObject: options.includeObject,
      now: options.now(),
      definitions,
      metadata: { resourceVersion: object.metadata.resourceVersion ?? '' },
    });
    definitions = false;
    return encodeObject(table);
  };
  const bytesOf = (stored: StoredObject): Uint8Array =>
    as === 'object' ? viewBytes(info, stored) : shape(viewObject(info, stored));
  const sharedOrFirst = (change: StoredObject, key: string, make: () => Frame): Frame =>
    definitions ? make() : cache.shared(change, key, make);

  return {
    /**
     * The same events as values, for a reader in this process that wants no bytes: there where a frame is no more than an
     * object, or its metadata, in JSON.
     */
    ...(as !== 'table' && representation.encoding === 'json' && { values: valueEncoder(options) }),
    /** A change as it was published. */
    change: (type: FrameType, { current }: Change): Frame =>
      sharedOrFirst(current, keys[type], () => frameOf(type, bytesOf(current))),
    /** The object left the selection: DELETED with its previous state and the change's resourceVersion. */
    left: (change: Change): Frame =>
      sharedOrFirst(change.current, keys.LEFT, () => frameOf('DELETED', shape(lastSeen(info, change)))),
    /** A synthetic ADDED of the initial state. Not kept: its reader is alone. */
    initial: (stored: StoredObject): Frame => frameOf('ADDED', bytesOf(stored)),
    bookmark: (revision: number, initialEventsEnd: boolean): Uint8Array => {
      const annotations = initialEventsEnd && { annotations: { 'k8s.io/initial-events-end': 'true' } };
      const metadata = { resourceVersion: String(revision), ...annotations };
      return frame('BOOKMARK', shape({ kind: info.kind, apiVersion: apiVersionOf(info), metadata }));
    },
    /** The last event of a watch that failed. */
    error: (status: Status): Uint8Array => frame('ERROR', encoder.encode(JSON.stringify(status))),
  };
}

function valueEncoder({ info, representation }: { info: ResourceInfo; representation: Representation }): ValueEncoder {
  const event = (type: FrameType, object: Readonly<UnstructuredObject>): StreamDocument => {
    const shown = representation.as === 'partial' ? partialOf(object, representation.version) : object;
    // Nearly all are the stored object itself, which is frozen.
    return Object.freeze({ type, object: Object.isFrozen(shown) ? shown : deepFreeze(shown) });
  };
  // Most objects of a whole state are read by nobody else: of them no more than this reader wants is parsed.
  const initial =
    representation.as === 'partial'
      ? (stored: StoredObject) => ({ metadata: viewMetadata(info, stored) }) as UnstructuredObject
      : (stored: StoredObject) => viewObject(info, stored);
  return {
    change: (type, { current }) => event(type, viewObject(info, current)),
    left: (change) => event('DELETED', lastSeen(info, change)),
    initial: (stored) => event('ADDED', initial(stored)),
  };
}

function lastSeen(info: ResourceInfo, { previous, current, revision }: Change): UnstructuredObject {
  const object = viewObject(info, previous ?? current);
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}
