/**
 * One revision of one object: its JSON bytes, and its parsed form for as long as that is in use. Bytes are kept;
 * parsed objects cost about twice as much memory, so only a bounded number stays and the others are parsed again when
 * somebody asks.
 */
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { deepFreeze } from './deep-freeze.ts';
import type { StoredObject } from './object-store.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Where an object lives: `name` etc. are what readers see, `key` orders an index (`namespace/name`). */
export interface Place {
  readonly prefix: string;
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

/** A StoredObject that can be looked up in an index. */
export interface Stored extends StoredObject {
  readonly key: string;
}

/** Remembers which parsed objects are kept, oldest first out. */
export interface ParsedObjects {
  /** Keeps `owner`'s parsed object until `bytes` of younger ones have come. */
  keep(owner: { forget(): void }, bytes: number): void;
}

/** Bounds the parsed objects by the JSON bytes they came from. */
export function createParsedObjects(limit: number): ParsedObjects {
  let kept: { owner: { forget(): void }; bytes: number }[] = [];
  let first = 0;
  let total = 0;
  return {
    keep(owner, bytes) {
      kept.push({ owner, bytes });
      total += bytes;
      while (total > limit && first < kept.length) {
        const oldest = kept[first]!;
        first++;
        total -= oldest.bytes;
        oldest.owner.forget();
      }
      if (first > 1024 && first > kept.length / 2) {
        kept = kept.slice(first);
        first = 0;
      }
    },
  };
}

class Revision implements Stored {
  readonly prefix: string;
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
  readonly revision: number;
  readonly bytes: Uint8Array;
  readonly headLength: number;
  readonly #parsed: ParsedObjects;
  #object: Readonly<UnstructuredObject> | undefined;

  constructor(place: Place, revision: number, bytes: Uint8Array, parsed: ParsedObjects) {
    this.prefix = place.prefix;
    this.namespace = place.namespace;
    this.name = place.name;
    this.key = place.key;
    this.revision = revision;
    this.bytes = bytes;
    this.headLength = headLengthOf(bytes);
    this.#parsed = parsed;
  }

  get object(): Readonly<UnstructuredObject> {
    return this.#object ?? this.adopt(deepFreeze(JSON.parse(decoder.decode(this.bytes)) as UnstructuredObject));
  }

  adopt(object: Readonly<UnstructuredObject>): Readonly<UnstructuredObject> {
    this.#object = object;
    this.#parsed.keep(this, this.bytes.byteLength);
    return object;
  }

  forget(): void {
    this.#object = undefined;
  }
}

/** A deletion found in the log: the last state with the revision of the delete, made when somebody looks. */
class Deleted implements Stored {
  readonly #last: Stored;
  readonly #parsed: ParsedObjects;
  #made: Stored | undefined;
  readonly revision: number;

  constructor(last: Stored, revision: number, parsed: ParsedObjects) {
    this.#last = last;
    this.revision = revision;
    this.#parsed = parsed;
  }
  get prefix(): string {
    return this.#last.prefix;
  }
  get namespace(): string {
    return this.#last.namespace;
  }
  get name(): string {
    return this.#last.name;
  }
  get key(): string {
    return this.#last.key;
  }
  get object(): Readonly<UnstructuredObject> {
    return this.#make().object;
  }
  get bytes(): Uint8Array {
    return this.#make().bytes;
  }
  get headLength(): number {
    return this.#make().headLength;
  }
  #make(): Stored {
    this.#made ??= stampObject(this.#last, this.revision, this.#last.object, this.#parsed);
    return this.#made;
  }
}

/** Builds the object's new revision: `metadata.resourceVersion` set, frozen, serialised. `object` itself is not changed. */
export function stampObject(place: Place, revision: number, object: UnstructuredObject, parsed: ParsedObjects): Stored {
  const { kind, apiVersion, metadata, ...rest } = object;
  const stamped = { kind, apiVersion, metadata: { ...metadata, resourceVersion: String(revision) }, ...rest };
  const stored = new Revision(place, revision, encoder.encode(JSON.stringify(stamped)), parsed);
  stored.adopt(deepFreeze(stamped));
  return stored;
}

/** An object as it was read from the log. */
export const loadedObject = (place: Place, revision: number, bytes: Uint8Array, parsed: ParsedObjects): Stored =>
  new Revision(place, revision, bytes, parsed);

/** A deletion as it was read from the log. */
export const deletedObject = (last: Stored, revision: number, parsed: ParsedObjects): Stored =>
  new Deleted(last, revision, parsed);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const KIND = '{"kind":"'.length;
const API_VERSION = ',"apiVersion":"'.length;

/** Length of the leading `{"kind":"K","apiVersion":"V",`. */
function headLengthOf(bytes: Uint8Array): number {
  const afterKind = endOfString(bytes, KIND);
  return endOfString(bytes, afterKind + API_VERSION) + 1;
}

/** Index just after the closing quote of the JSON string whose text begins at `at`. */
function endOfString(bytes: Uint8Array, at: number): number {
  let i = at;
  while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
  return i + 1;
}
