/**
 * One revision of one object: its JSON bytes, and its parsed form for as long as that is in use. Parsed objects cost about
 * twice as much memory as bytes, so only a bounded number stays and the others are parsed again when somebody asks; bytes
 * are kept within a larger bound and read from the disk again (`held-bytes.ts`).
 */

import { deepFreeze } from '@coracle/apimachinery/meta/deep-freeze';
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { parseJsonInPieces, parseStored } from '@coracle/apimachinery/schema/parse-json';
import { type HeldBytes, LARGE_OBJECT, type Leavable } from './held-bytes.ts';
import type { StoredObject } from './object-store.ts';
import { freezeInPieces, type WrittenObject } from './written-object.ts';

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
export interface Stored extends StoredObject, Leavable {
  readonly key: string;
  /** It is durable, and the newest of its key. */
  published(): void;
  /** A later revision is durable. */
  superseded(by: number): void;
}

/** What the objects of one store share. */
export interface ObjectMemory {
  readonly parsed: ReturnType<typeof createParsedObjects>;
  /** Absent where bytes cannot be read again: they are all kept. */
  readonly disk?: {
    readonly held: HeldBytes;
    /** The JSON of a durable revision as it lies on the disk, completed if an older version wrote it; may throw. */
    readonly read: (place: Place, revision: number) => Uint8Array | undefined;
  };
}

/** Bytes that are parsed in one go, in some milliseconds. */
const LARGE_PARSE = 256 * 1024;

/** Remembers which parsed objects are kept, oldest first out: bounded by the JSON bytes they came from. */
export function createParsedObjects(limit: number) {
  let kept: { owner: { forget(): void }; bytes: number }[] = [];
  let first = 0;
  let total = 0;
  return {
    /** Keeps `owner`'s parsed object until so many bytes of younger ones have come. */
    keep(owner: { forget(): void }, bytes: number): void {
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

/** JSON of metadata that is kept when the bytes go: most lists with selectors then read nothing. */
const MAX_KEPT_METADATA = 4 * 1024;

class Revision implements Stored {
  readonly prefix: string;
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
  readonly revision: number;
  readonly size: number;
  readonly headLength: number;
  readonly #memory: ObjectMemory;
  #bytes: Uint8Array | undefined;
  #object: Readonly<UnstructuredObject> | undefined;
  /** JSON, there once the bytes have gone. */
  #metadata: string | undefined;
  #isCurrent = false;

  /** `held`: false leaves the bytes on the disk, where they lie already. */
  constructor(place: Place, revision: number, bytes: Uint8Array, memory: ObjectMemory, held = true) {
    this.prefix = place.prefix;
    this.namespace = place.namespace;
    this.name = place.name;
    this.key = place.key;
    this.revision = revision;
    this.size = bytes.byteLength;
    this.headLength = headLengthOf(bytes);
    this.#memory = memory;
    this.#bytes = bytes;
    if (held) return;
    this.#isCurrent = true;
    this.leave();
  }

  get bytes(): Uint8Array {
    return this.#bytes ?? this.#read();
  }

  get isHeld(): boolean {
    return this.#bytes !== undefined;
  }

  get object(): Readonly<UnstructuredObject> {
    return this.#object ?? this.adopt(deepFreeze(parseStored(decoder.decode(this.bytes)) as UnstructuredObject));
  }

  get isParsed(): boolean {
    return this.#object !== undefined;
  }

  get metadata(): Readonly<UnstructuredObject['metadata']> {
    // Not kept: who asks for it keeps it, or looks at each object once.
    const json = this.#object ? undefined : (this.#metadata ?? metadataJson(this.bytes, this.headLength));
    if (json !== undefined) return deepFreeze(JSON.parse(json) as UnstructuredObject['metadata']);
    const { managedFields: _, ...metadata } = this.object.metadata;
    return Object.freeze(metadata);
  }

  load(pause: Pause): Promise<void> | undefined {
    return this.#object !== undefined || this.size < LARGE_PARSE ? undefined : this.#load(pause);
  }

  async #load(pause: Pause): Promise<void> {
    const { value } = await parseJsonInPieces(this.bytes, pause, { wideIntegers: true });
    await freezeInPieces(value, pause);
    if (this.#object === undefined) this.adopt(value as UnstructuredObject);
  }

  adopt(object: Readonly<UnstructuredObject>): Readonly<UnstructuredObject> {
    this.#object = object;
    this.#memory.parsed.keep(this, this.size);
    return object;
  }

  forget(): void {
    this.#object = undefined;
  }

  published(): void {
    this.#isCurrent = true;
    this.#memory.disk?.held.hold(this);
  }

  superseded(by: number): void {
    this.#isCurrent = false;
    this.#memory.disk?.held.release(this, by);
  }

  leave(): void {
    if (this.#bytes === undefined) return;
    const metadata = metadataJson(this.#bytes, this.headLength);
    if (metadata !== undefined && metadata.length <= MAX_KEPT_METADATA) this.#metadata = metadata;
    this.#bytes = undefined;
    this.#object = undefined;
  }

  stay(): void {
    this.#bytes ??= this.#read();
  }

  #read(): Uint8Array {
    const bytes = asLine(this.#value());
    if (this.#isCurrent) {
      this.#bytes = bytes;
      this.#memory.disk?.held.hold(this);
    }
    return bytes;
  }

  #value(): Uint8Array {
    let value: Uint8Array | undefined;
    try {
      value = this.#memory.disk?.read(this, this.revision);
    } catch (error) {
      throw unreadable(this, (error as Error).message);
    }
    if (value === undefined) throw unreadable(this, 'its row is gone');
    return value;
  }
}

const unreadable = ({ prefix, key }: Place, why: string): ApiError =>
  new ApiError({
    code: 500,
    reason: 'InternalError',
    message: `cannot read ${prefix}/${key} from the disk: ${why}`,
  });

/** A deletion found in the log: the last state with the revision of the delete, made when somebody looks. */
export function deletedObject(last: Stored, revision: number, memory: ObjectMemory): Stored {
  const { prefix, namespace, name, key } = last;
  let made: Stored | undefined;
  const make = (): Stored => {
    made ??= stampObject(last, revision, { object: last.object }, memory);
    return made;
  };
  return {
    prefix,
    namespace,
    name,
    key,
    revision,
    get object() {
      return make().object;
    },
    get metadata() {
      return make().metadata;
    },
    get bytes() {
      return make().bytes;
    },
    get headLength() {
      return make().headLength;
    },
    get size() {
      return made?.size ?? last.size;
    },
    get isHeld() {
      return made !== undefined || last.isHeld;
    },
    get isParsed() {
      return made?.isParsed ?? false;
    },
    load: (pause) => make().load(pause),
    forget: () => made?.forget(),
    // It is on its way out of the history, and never the newest of its key.
    published() {},
    superseded() {},
    leave() {},
    stay() {},
  };
}

/** Builds the object's new revision: `metadata.resourceVersion` set, frozen, serialised. `object` itself is not changed. */
export function stampObject(
  place: Place,
  revision: number,
  { object, written }: { readonly object: UnstructuredObject; readonly written?: WrittenObject | undefined },
  memory: ObjectMemory,
): Stored {
  const { kind, apiVersion, metadata, ...rest } = object;
  const stamped = { kind, apiVersion, metadata: { ...metadata, resourceVersion: String(revision) }, ...rest };
  const line =
    written?.object === object
      ? joinBytes([written.before, encoder.encode(String(revision)), written.after, LINE_END])
      : jsonLine(JSON.stringify(stamped));
  const stored = new Revision(place, revision, line.subarray(0, line.length - 1), memory);
  stored.adopt(deepFreeze(stamped));
  return stored;
}

/** An object as it was read from the log; `bytes` may change afterwards. Large ones stay where they are. */
export function loadedObject(
  place: Place,
  { revision, bytes, isOnDisk }: { readonly revision: number; readonly bytes: Uint8Array; readonly isOnDisk: boolean },
  memory: ObjectMemory,
): Stored {
  if (isOnDisk && memory.disk && bytes.byteLength >= LARGE_OBJECT)
    return new Revision(place, revision, bytes, memory, false);
  const loaded = new Revision(place, revision, asLine(bytes), memory);
  if (isOnDisk) loaded.published();
  return loaded;
}

/** A revision for whoever alone sees it: parsed already and not frozen, which would take as long as parsing it. */
export function ownObject(
  place: Place,
  { revision, bytes }: { readonly revision: number; readonly bytes: Uint8Array },
): Stored {
  const stored = new Revision(place, revision, bytes, { parsed: createParsedObjects(Number.POSITIVE_INFINITY) });
  stored.adopt(parseStored(decoder.decode(bytes)) as UnstructuredObject);
  return stored;
}

/** JSON with the line feed of an answer behind it, in its own memory. Text beyond ASCII takes a second try. */
function jsonLine(json: string): Uint8Array {
  const line = new Uint8Array(json.length + 1);
  if (encoder.encodeInto(json, line.subarray(0, json.length)).read < json.length) return encoder.encode(`${json}\n`);
  line[json.length] = LINE_FEED;
  return line;
}

/** Its own memory, with the line feed of an answer behind it. */
function asLine(bytes: Uint8Array): Uint8Array {
  const line = new Uint8Array(bytes.length + 1);
  line.set(bytes);
  line[bytes.length] = LINE_FEED;
  return line.subarray(0, bytes.length);
}

/**
 * A stored object's bytes and the line feed that ends an answer, without a copy: behind the bytes of each object one lies
 * in memory. Undefined for bytes that are not a stored object's own.
 */
export function lineOf(bytes: Uint8Array): Uint8Array | undefined {
  const { buffer, byteOffset, length } = bytes;
  if (byteOffset !== 0 || buffer.byteLength !== length + 1) return undefined;
  const line = new Uint8Array(buffer);
  return line[length] === LINE_FEED ? line : undefined;
}

const LINE_FEED = 0x0a;
const LINE_END = Uint8Array.of(LINE_FEED);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const METADATA = encoder.encode('"metadata":');
const MANAGED_FIELDS = encoder.encode('"managedFields":[');
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

/** The object of `"metadata"` without managedFields, when it follows the head as in all that `stampObject` wrote. */
function metadataJson(bytes: Uint8Array, headLength: number): string | undefined {
  if (!startsWith(bytes, METADATA, headLength)) return undefined;
  const begin = headLength + METADATA.length;
  if (bytes[begin] !== OPEN_BRACE) return undefined;
  let depth = 0;
  let fields = -1;
  let afterFields = -1;
  for (let i = begin; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      if (depth === 1 && fields < 0 && startsWith(bytes, MANAGED_FIELDS, i)) fields = i;
      i = endOfString(bytes, i + 1) - 1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--;
      if (depth === 1 && fields >= 0 && afterFields < 0) afterFields = i + 1;
      if (depth > 0) continue;
      if (fields < 0) return decoder.decode(bytes.subarray(begin, i + 1));
      // With one of the commas around it.
      const isFirst = bytes[fields - 1] === OPEN_BRACE;
      const from = isFirst ? fields : fields - 1;
      const to = isFirst && bytes[afterFields] === COMMA ? afterFields + 1 : afterFields;
      return decoder.decode(bytes.subarray(begin, from)) + decoder.decode(bytes.subarray(to, i + 1));
    }
  }
  return undefined;
}

function startsWith(bytes: Uint8Array, text: Uint8Array, at: number): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}
