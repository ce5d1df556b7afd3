/**
 * A stored object as one served version shows it. Most versions of a kind share their shape, so a conversion rewrites
 * apiVersion only and the bytes behind the head are the same for every version; a resource with a `view` has its own.
 */

import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { StoredObject } from '../cache/object-store.ts';
import { createParsedObjects } from '../cache/stored-object.ts';
import { LARGE_WRITE } from './write-call.ts';

const encoder = new TextEncoder();
const OPEN_BRACE = 0x7b;

/** `group/version` in which objects of this resource are stored. */
export const storageVersionOf = (info: ResourceInfo): string => info.storageVersion ?? apiVersionOf(info);

/** True when somebody else must convert it; what lies in the wanted version already is looked at like any other. */
const isRemote = (info: ResourceInfo, stored: StoredObject): boolean =>
  // The object last: looking at it may parse it, which a list of thousands must not do.
  info.remote !== undefined && stored.object.apiVersion !== apiVersionOf(info);

/** True when an object of this resource is not simply shown as it is stored. */
const isViewed = (info: ResourceInfo, stored: StoredObject): boolean =>
  isRemote(info, stored) ||
  (info.view !== undefined && (info.view.currentFrom === undefined || stored.revision < info.view.currentFrom));

/**
 * The object in the version of `info`; the stored value itself when that is its version. A resource with a remote
 * conversion must have been prepared for (`prepareViews`).
 */
export function viewObject(info: ResourceInfo, stored: StoredObject): Readonly<UnstructuredObject> {
  if (isViewed(info, stored)) return converted(info, stored);
  const apiVersion = apiVersionOf(info);
  const { object } = stored;
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}

/** What a write has stored, as its resource shows it. Rejects with ApiError 500 when its conversion fails. */
export async function viewWritten(info: ResourceInfo, stored: StoredObject): Promise<Readonly<UnstructuredObject>> {
  await prepareViews(info, [stored], { again: false });
  return viewObject(info, stored);
}

/** The metadata of `viewObject` but for managedFields, without parsing the rest where that can be spared. */
export function viewMetadata(info: ResourceInfo, stored: StoredObject): Readonly<UnstructuredObject['metadata']> {
  if (!isViewed(info, stored)) return stored.metadata;
  const { managedFields: _, ...metadata } = converted(info, stored).metadata;
  return metadata;
}

/**
 * Has stored objects converted by whoever does that, so that the views of them can be looked at; undefined when there is
 * nothing to wait for. Large objects are converted by another thread where
 * there is one. `again` asks anew for what was converted before: for reads, whose answer should be the newest.
 * Rejects with ApiError 500 when the conversion fails.
 */
export function prepareViews(
  info: ResourceInfo,
  stored: readonly (StoredObject | undefined)[],
  { again }: { readonly again: boolean },
): Promise<void> | undefined {
  const { remote } = info;
  if (remote === undefined) return prepareLocally(info, stored);
  const known = conversionsOf(info);
  const wanted = stored
    .filter((one) => one !== undefined)
    .filter((one) => isRemote(info, one) && (again || !known.has(one)));
  if (wanted.length === 0) return undefined;
  return remote.fromStored(wanted.map(({ object }) => object)).then((objects) => {
    for (const [i, one] of wanted.entries()) known.set(one, objects[i] as UnstructuredObject);
  });
}

function prepareLocally(info: ResourceInfo, stored: readonly (StoredObject | undefined)[]): Promise<void> | undefined {
  if (info.view === undefined) return undefined;
  const known = conversionsOf(info);
  let bytes = 0;
  const wanted: StoredObject[] = [];
  for (const one of stored) {
    if (one === undefined || !isViewed(info, one) || known.has(one)) continue;
    wanted.push(one);
    bytes += one.size;
  }
  return bytes < LARGE_WRITE ? undefined : convertLocally(info, wanted);
}

/** Small ones together, as many as are soon done with. */
const TOGETHER_BYTES = 64 * 1024;

async function convertLocally(info: ResourceInfo, wanted: readonly StoredObject[]): Promise<void> {
  let bytes = 0;
  for (const one of wanted) {
    bytes += one.size;
    if (bytes > TOGETHER_BYTES) {
      await nextTurn();
      bytes = one.size;
    }
    const { fromLarge } = info.view!;
    if (bytes > TOGETHER_BYTES && fromLarge && !conversionsOf(info).has(one)) {
      keep(info, one, inVersion(info, (await fromLarge(one.bytes)) as UnstructuredObject));
    } else converted(info, one);
  }
}

/** JSON bytes of the objects whose local conversions are kept: with those of all, all objects would stay parsed. */
const KEPT_BYTES = 4 * 1024 * 1024;
const kept = createParsedObjects(KEPT_BYTES);

/** Keeps what can be made again until others have come. */
function keep(info: ResourceInfo, stored: StoredObject, object: Readonly<UnstructuredObject>): void {
  const known = conversionsOf(info);
  known.set(stored, object);
  kept.keep({ forget: () => void known.delete(stored) }, stored.size);
}

const inVersion = (info: ResourceInfo, made: UnstructuredObject): UnstructuredObject => {
  const apiVersion = apiVersionOf(info);
  return made.apiVersion === apiVersion ? made : { ...made, apiVersion };
};

/** The object as it is stored, mostly itself; `object` is in the version of `info`. A promise only for remote conversions. */
export function storedForm(
  info: ResourceInfo,
  object: UnstructuredObject,
): UnstructuredObject | Promise<UnstructuredObject> {
  const apiVersion = storageVersionOf(info);
  if (info.remote !== undefined && object.apiVersion !== apiVersion) {
    return info.remote.toStored(object).then((form) => ({ ...form, apiVersion }) as UnstructuredObject);
  }
  const form = info.view === undefined ? object : (info.view.toStored(object) as UnstructuredObject);
  return form.apiVersion === apiVersion ? form : { ...form, apiVersion };
}

/** What views made of stored revisions, as long as those live: what a webhook made, and some of what was made here. */
const conversions = new WeakMap<ResourceInfo, WeakMap<StoredObject, Readonly<UnstructuredObject>>>();

const conversionsOf = (info: ResourceInfo): WeakMap<StoredObject, Readonly<UnstructuredObject>> =>
  getOrInsert(conversions, info, () => new WeakMap());

function converted(info: ResourceInfo, stored: StoredObject): Readonly<UnstructuredObject> {
  const known = conversionsOf(info);
  let object = known.get(stored);
  if (!object) {
    if (isRemote(info, stored)) throw new TypeError('a view was looked at before its conversion');
    object = inVersion(info, info.view!.fromStored(stored.object) as UnstructuredObject);
    keep(info, stored, object);
  }
  return object;
}

/** `{"kind":K,"apiVersion":V,` of each resource. */
const heads = new WeakMap<ResourceInfo, Uint8Array>();

const headOf = (info: ResourceInfo): Uint8Array =>
  getOrInsert(heads, info, () =>
    encoder.encode(`{"kind":${JSON.stringify(info.kind)},"apiVersion":${JSON.stringify(apiVersionOf(info))},`),
  );

/** The object's JSON in the version of `info`, without a newline. Looks at bytes only: the object may not be parsed. */
export function viewBytes(info: ResourceInfo, stored: StoredObject): Uint8Array {
  if (isViewed(info, stored)) {
    const object = converted(info, stored);
    // Looked at and found to be as it should.
    return object === stored.object ? stored.bytes : encodeObject(object);
  }
  const head = headOf(info);
  const source = stored.bytes;
  if (hasHead(source, stored.headLength, head)) return source;
  const bytes = new Uint8Array(head.length + source.length - stored.headLength);
  bytes.set(head);
  bytes.set(source.subarray(stored.headLength), head.length);
  return bytes;
}

function hasHead(bytes: Uint8Array, headLength: number, head: Uint8Array): boolean {
  if (headLength !== head.length) return false;
  for (let i = headLength - 1; i >= 0; i--) if (bytes[i] !== head[i]) return false;
  return true;
}

/** The pieces that make one list item: built-in lists leave kind and apiVersion out, custom ones keep them. */
export interface ItemBytes {
  /** First byte when the head was cut off. */
  readonly brace: boolean;
  readonly rest: Uint8Array;
}

export function itemBytes(info: ResourceInfo, stored: StoredObject): ItemBytes {
  if (info.strategy.custom) return { brace: false, rest: viewBytes(info, stored) };
  if (!isViewed(info, stored)) return { brace: true, rest: stored.bytes.subarray(stored.headLength) };
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = converted(info, stored);
  return { brace: false, rest: encoder.encode(JSON.stringify(rest)) };
}

const BRACE = Uint8Array.of(OPEN_BRACE);
const COMMA = Uint8Array.of(0x2c);
const COMMA_BRACE = Uint8Array.of(0x2c, OPEN_BRACE);

/** The items with a comma between two, in pieces: stored bytes stay where they are. */
export function itemPieces(items: readonly ItemBytes[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let i = 0; i < items.length; i++) {
    const { brace, rest } = items[i]!;
    if (brace) pieces.push(i > 0 ? COMMA_BRACE : BRACE);
    else if (i > 0) pieces.push(COMMA);
    pieces.push(rest);
  }
  return pieces;
}

/** The same in one buffer, between `head` and `tail`, for what starts from the whole: one copy per item, no parsing. */
export function joinItems(items: readonly ItemBytes[], { head, tail }: { head: string; tail: string }): Uint8Array {
  const headBytes = encoder.encode(head);
  const tailBytes = encoder.encode(tail);
  let length = headBytes.length + tailBytes.length + Math.max(0, items.length - 1);
  for (const item of items) length += item.rest.length + (item.brace ? 1 : 0);
  const bytes = new Uint8Array(length);
  bytes.set(headBytes);
  let at = headBytes.length;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (i > 0) bytes[at++] = 0x2c;
    if (item.brace) bytes[at++] = OPEN_BRACE;
    bytes.set(item.rest, at);
    at += item.rest.length;
  }
  bytes.set(tailBytes, at);
  return bytes;
}

/** JSON of an object that is not stored (dry run, Table, Scale): kind and apiVersion first, as stored bytes have them. */
export function encodeObject(object: Readonly<Record<string, unknown>>): Uint8Array {
  const { kind, apiVersion, ...rest } = object;
  return encoder.encode(JSON.stringify({ kind, apiVersion, ...rest }));
}
