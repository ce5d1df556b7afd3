/**
 * JSON Patch (RFC 6902) on plain values, as the library apiserver uses reads it (evanphx/json-patch v4): a negative index
 * counts from the end; a member that is not there reads as null, so that a test for null passes, a copy of it adds null
 * and a replace puts it there; the whole document can be tested and replaced, but not added, removed, moved or copied.
 */

import { cloneJson } from '../meta/deep-clone.ts';
import { deepEqual } from '../meta/deep-equal.ts';
import { wrongType } from '../meta/go-text.ts';
import { isJsonObject, setOwn } from '../meta/own-property.ts';
import { ApiError, badRequest } from '../meta/status.ts';

export const MAX_PATCH_OPERATIONS = 10_000;
/** Bytes of JSON that all copy operations of one patch may add. */
export const MAX_COPY_BYTES = 3 * 1024 * 1024;

/**
 * Applies the operations in order and returns the new document; neither argument is changed nor shared.
 * @throws ApiError 400 for a patch that is none, 413 for too many operations, 422 Invalid for an operation that fails
 */
export function applyJsonPatch(document: unknown, operations: unknown): unknown {
  const list = checkShape(operations);
  const state: State = { document: cloneJson(document), copied: 0 };
  for (const given of list) {
    const operation = given ?? {};
    const value = operand(operation);
    // Not shared with the patch: it may be applied once more, to what somebody else made of the object.
    const owned = typeof value === 'object' && value !== null ? cloneJson(value) : value;
    apply(state, operation, owned);
  }
  return state.document;
}

type Operation = Readonly<Record<string, unknown>>;
interface State {
  document: unknown;
  copied: number;
}

function checkShape(operations: unknown): readonly (Operation | null)[] {
  if (operations === null) return [];
  if (!Array.isArray(operations)) throw undecodable(wrongType(operations, 'array'));
  for (const operation of operations) {
    if (operation === null) continue;
    if (!isJsonObject(operation)) throw undecodable(wrongType(operation, 'object'));
    for (const key of Object.keys(operation)) {
      const value = operation[key];
      if (TEXTS.has(key) && typeof value !== 'string' && value !== null) {
        throw undecodable(wrongType(value, 'string', key));
      }
    }
  }
  if (operations.length > MAX_PATCH_OPERATIONS) {
    throw new ApiError({
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: `The allowed maximum operations in a JSON patch is ${MAX_PATCH_OPERATIONS}, got ${operations.length}`,
    });
  }
  return operations as (Operation | null)[];
}

const TEXTS: ReadonlySet<string> = new Set(['op', 'path', 'from']);
const MEMBERS: ReadonlySet<string> = new Set([...TEXTS, 'value']);

/** `unknown field "[0].foo"` for each member of an operation that has no meaning. */
export function unknownMembers(operations: unknown): string[] {
  if (!Array.isArray(operations)) return [];
  return operations.flatMap((operation, at) =>
    isJsonObject(operation)
      ? Object.keys(operation)
          .filter((key) => !MEMBERS.has(key))
          .map((key) => `unknown field ${JSON.stringify(`[${at}].${key}`)}`)
      : [],
  );
}

const undecodable = (problem: string): ApiError => badRequest(`error decoding patch: ${problem}`);

/** Why an operation does not apply, in the library's words. */
class Inapplicable extends Error {}

/** A PATCH keeps the reason to itself; who patches for other ends finds it as the cause. */
const failed = (cause: Inapplicable): ApiError =>
  new ApiError(
    {
      code: 422,
      reason: 'Invalid',
      message: 'the server rejected our request due to an error in our request',
      details: {},
    },
    { cause },
  );

function apply(state: State, operation: Operation, value: unknown): void {
  try {
    applyOne(state, operation, value);
  } catch (error) {
    throw error instanceof Inapplicable ? failed(error) : error;
  }
}

function applyOne(state: State, operation: Operation, value: unknown): void {
  const kind = member(operation, 'op');
  switch (kind) {
    case 'add':
      add(state, pointerOf(operation, 'path'), value);
      break;
    case 'replace':
      replace(state, pointerOf(operation, 'path'), value);
      break;
    case 'remove':
      remove(state, pointerOf(operation, 'path'));
      break;
    case 'move':
      move(state, operation);
      break;
    case 'copy':
      copy(state, operation);
      break;
    case 'test':
      test(state, pointerOf(operation, 'path'), value);
      break;
    default:
      throw new Inapplicable(`Unexpected kind: ${typeof kind === 'string' ? shown(kind) : 'unknown'}`);
  }
}

const member = (operation: Operation, key: string): unknown =>
  Object.hasOwn(operation, key) ? operation[key] : undefined;

/** An operation without a value has null. */
const operand = (operation: Operation): unknown => member(operation, 'value') ?? null;

function pointerOf(operation: Operation, key: 'path' | 'from'): string {
  const pointer = member(operation, key);
  if (typeof pointer === 'string') return pointer;
  const op = String(operation['op']);
  const missing =
    key === 'from' ? 'operation, missing from field: ' : CURT.has(op) ? '' : 'operation missing path field: ';
  throw new Inapplicable(`${op} operation failed to decode ${key}: ${missing}missing value`);
}

/** Operations that say less about a path they lack. */
const CURT: ReadonlySet<string> = new Set(['add', 'remove', 'copy']);

/** Characters of a path. */
const MAX_POINTER = 256 * 1024;
/** No document is nested this deeply. */
const MAX_POINTER_PARTS = 10_000;
/** Characters of a path that a message shows: a path may be as long as the body. */
const SHOWN_POINTER = 4096;
const shown = (text: string): string => (text.length > SHOWN_POINTER ? `${text.slice(0, SHOWN_POINTER)}...` : text);

type Container = unknown[] | Record<string, unknown>;
interface Located {
  readonly parent: Container;
  readonly key: string;
}

/**
 * The map or list that holds what a pointer names; undefined where there is none, which includes the whole document. What
 * stands before the first slash does not count.
 */
function locate(state: State, pointer: string): Located | undefined {
  const first = pointer.indexOf('/');
  if (first < 0 || pointer.length > MAX_POINTER) return undefined;
  const parts = pointer.slice(first + 1).split('/', MAX_POINTER_PARTS + 1);
  if (parts.length > MAX_POINTER_PARTS) return undefined;
  const keys = pointer.includes('~') ? parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')) : parts;
  let parent = state.document;
  for (const key of keys.slice(0, -1)) {
    if (!isContainer(parent) || wrongIndex(parent, key) !== undefined) return undefined;
    parent = get(parent, key);
  }
  return isContainer(parent) ? { parent, key: keys[keys.length - 1]! } : undefined;
}

const isContainer = (value: unknown): value is Container => Array.isArray(value) || isJsonObject(value);

/** What is there; a member that is not there reads as null. The key has to be no wrong index. */
const get = (parent: Container, key: string): unknown =>
  Array.isArray(parent) ? parent.at(Number(key)) : Object.hasOwn(parent, key) ? parent[key] : null;

/** Why a key names no element of a list. */
function wrongIndex(parent: Container, key: string): string | undefined {
  if (!Array.isArray(parent)) return undefined;
  return noInteger(key) ?? (isWithin(Number(key), parent.length) ? undefined : outOfRange(key));
}

const isWithin = (index: number, length: number): boolean => index >= -length && index < length;
const outOfRange = (key: string): string => `Unable to access invalid index: ${Number(key)}: invalid index referenced`;

/** Go's Atoi: a sign and leading zeros are taken. */
const noInteger = (key: string): string | undefined =>
  /^[+-]?[0-9]+$/.test(key) ? undefined : `strconv.Atoi: parsing ${JSON.stringify(shown(key))}: invalid syntax`;

/** Puts a value in; the text of what is in the way, if anything. */
function put({ parent, key }: Located, value: unknown): string | undefined {
  if (!Array.isArray(parent)) {
    setOwn(parent, key, value);
    return undefined;
  }
  // `-` and the length mean the end; -1 is the end, too, because it counts in the new list.
  if (key === '-') {
    parent.push(value);
    return undefined;
  }
  const problem = noInteger(key);
  if (problem !== undefined) return `value was not a proper array index: '${shown(key)}': ${problem}`;
  const index = Number(key);
  if (!isWithin(index, parent.length + 1)) return outOfRange(key);
  parent.splice(index < 0 ? index + parent.length + 1 : index, 0, value);
  return undefined;
}

/** Takes a value out, as `put` puts it in. */
function take({ parent, key }: Located): string | undefined {
  if (Array.isArray(parent)) {
    const problem = wrongIndex(parent, key);
    if (problem === undefined) parent.splice(Number(key), 1);
    return problem;
  }
  if (!Object.hasOwn(parent, key)) return `Unable to remove nonexistent key: ${shown(key)}: missing value`;
  delete parent[key];
  return undefined;
}

function add(state: State, path: string, value: unknown): void {
  const place = locate(state, path);
  if (!place)
    throw new Inapplicable(`add operation does not apply: doc is missing path: "${shown(path)}": missing value`);
  const problem = put(place, value);
  if (problem !== undefined) throw new Inapplicable(`error in add for path: '${shown(path)}': ${problem}`);
}

function replace(state: State, path: string, value: unknown): void {
  if (path === '') {
    if (!isContainer(value)) throw new Inapplicable('replace operation value must be object or array: %!w(<nil>)');
    state.document = value;
    return;
  }
  const place = locate(state, path);
  const where = `replace operation does not apply: doc is missing`;
  if (!place) throw new Inapplicable(`${where} path: ${shown(path)}: missing value`);
  const { parent, key } = place;
  if (wrongIndex(parent, key) !== undefined) throw new Inapplicable(`${where} key: ${shown(path)}: missing value`);
  if (Array.isArray(parent)) parent.splice(Number(key), 1, value);
  else setOwn(parent, key, value);
}

function remove(state: State, path: string): void {
  const place = locate(state, path);
  if (!place) {
    throw new Inapplicable(`remove operation does not apply: doc is missing path: "${shown(path)}": missing value`);
  }
  const problem = take(place);
  if (problem !== undefined) throw new Inapplicable(`error in remove for path: '${shown(path)}': ${problem}`);
}

function move(state: State, operation: Operation): void {
  const from = pointerOf(operation, 'from');
  const place = locate(state, from);
  if (!place) {
    throw new Inapplicable(`move operation does not apply: doc is missing from path: ${shown(from)}: missing value`);
  }
  const value = wrongIndex(place.parent, place.key) === undefined ? get(place.parent, place.key) : undefined;
  const missing = take(place);
  if (missing !== undefined) throw new Inapplicable(`error in move for path: '${shown(place.key)}': ${missing}`);
  const path = pointerOf(operation, 'path');
  const target = locate(state, path);
  if (!target) {
    throw new Inapplicable(
      `move operation does not apply: doc is missing destination path: ${shown(path)}: missing value`,
    );
  }
  const problem = put(target, value);
  if (problem !== undefined) throw new Inapplicable(`error in move for path: '${shown(path)}': ${problem}`);
}

function copy(state: State, operation: Operation): void {
  const from = pointerOf(operation, 'from');
  const place = locate(state, from);
  const where = 'copy operation does not apply: doc is missing';
  if (!place) throw new Inapplicable(`${where} from path: ${shown(from)}: missing value`);
  const missing = wrongIndex(place.parent, place.key);
  if (missing !== undefined) throw new Inapplicable(`error in copy for from: '${shown(from)}': ${missing}`);
  const path = pointerOf(operation, 'path');
  const target = locate(state, path);
  if (!target) throw new Inapplicable(`${where} destination path: ${shown(path)}: missing value`);
  const value = get(place.parent, place.key);
  // Repeated copies double a document each time: the growth is bounded, not the operations alone.
  state.copied += value === null ? 0 : JSON.stringify(value).length;
  if (state.copied > MAX_COPY_BYTES) {
    throw new Inapplicable(
      `Unable to complete the copy, the accumulated size increase of copy is ${state.copied}, exceeding the limit ${MAX_COPY_BYTES}`,
    );
  }
  const problem = put(target, cloneJson(value));
  if (problem !== undefined) throw new Inapplicable(`error while adding value during copy: ${problem}`);
}

function test(state: State, path: string, wanted: unknown): void {
  let found = state.document;
  if (path !== '') {
    const place = locate(state, path);
    if (!place) throw new Inapplicable(`test operation does not apply: is missing path: ${shown(path)}: missing value`);
    const missing = wrongIndex(place.parent, place.key);
    if (missing !== undefined) throw new Inapplicable(`error in test for path: '${shown(path)}': ${missing}`);
    found = get(place.parent, place.key);
  }
  if (!deepEqual(found, wanted)) throw new Inapplicable(`testing value ${shown(path)} failed: test failed`);
}
