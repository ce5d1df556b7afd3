/**
 * JSON Patch (RFC 6902) on plain values, as the library apiserver uses reads it (evanphx/json-patch v4): a negative index
 * counts from the end; a member that is not there reads as null, so that a test for null passes, a copy of it adds null
 * and a replace puts it there; the whole document can be tested and replaced, but not added, removed, moved or copied.
 */

import { cloneJson } from '../meta/deep-clone.ts';
import { deepEqual } from '../meta/deep-equal.ts';
import { wrongType } from '../meta/go-text.ts';
import { getOwn, isJsonObject, setOwn } from '../meta/own-property.ts';
import { ApiError, badRequest } from '../meta/status.ts';

const MAX_PATCH_OPERATIONS = 10_000;
/** Bytes of JSON that all copy operations of one patch may add. */
const MAX_COPY_BYTES = 3 * 1024 * 1024;

/**
 * Applies the operations in order and returns the new document; neither argument is changed nor shared.
 * @throws ApiError 400 for a patch that is none, 413 for too many operations, 422 Invalid for an operation that fails
 */
export function applyJsonPatch(document: unknown, operations: unknown): unknown {
  const list = checkShape(operations);
  const state: State = { document: cloneJson(document), copied: 0 };
  for (const given of list) {
    const operation = given ?? {};
    // An operation without a value has null.
    const value = getOwn(operation, 'value') ?? null;
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
    const message = `The allowed maximum operations in a JSON patch is ${MAX_PATCH_OPERATIONS}, got ${operations.length}`;
    throw new ApiError({ code: 413, reason: 'RequestEntityTooLarge', message });
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

/** Why an operation does not apply. A PATCH keeps the reason to itself; who patches for other ends finds it as the cause. */
class Inapplicable extends Error {}

/** What a `test` compares is another value: the cause of the error then. */
export class FailedTest extends Inapplicable {}

function apply(state: State, operation: Operation, value: unknown): void {
  const op = getOwn(operation, 'op');
  try {
    if (typeof op !== 'string' || !Object.hasOwn(OPERATIONS, op)) throw new Inapplicable('no such operation');
    OPERATIONS[op]!({ state, value, at: (key) => pointerOf(operation, key) });
  } catch (error) {
    if (!(error instanceof Inapplicable)) throw error;
    error.message = `${quoted(op)} of ${quoted(getOwn(operation, 'path'))} does not apply: ${error.message}`;
    const message = 'the server rejected our request due to an error in our request';
    throw new ApiError({ code: 422, reason: 'Invalid', message, details: {} }, { cause: error });
  }
}

function pointerOf(operation: Operation, key: 'path' | 'from'): string {
  const pointer = getOwn(operation, key);
  if (typeof pointer !== 'string') throw new Inapplicable(`it has no ${key}`);
  return pointer;
}

/** Characters of a path. */
const MAX_POINTER = 256 * 1024;
/** No document is nested this deeply. */
const MAX_POINTER_PARTS = 10_000;
/** Characters of a path that a message shows: a path may be as long as the body. */
const SHOWN_POINTER = 4096;
function quoted(text: unknown): string {
  const isLong = typeof text === 'string' && text.length > SHOWN_POINTER;
  return JSON.stringify(isLong ? `${text.slice(0, SHOWN_POINTER)}...` : text) ?? 'nothing';
}

type Container = unknown[] | Record<string, unknown>;
interface Located {
  readonly parent: Container;
  readonly key: string;
}

/**
 * The map or list that holds what a pointer names; the whole document is in none. What stands before the first slash does
 * not count.
 */
function locate(state: State, pointer: string): Located {
  const first = pointer.indexOf('/');
  const parts = first < 0 ? [] : pointer.slice(first + 1).split('/', MAX_POINTER_PARTS + 1);
  const isReadable = first >= 0 && pointer.length <= MAX_POINTER && parts.length <= MAX_POINTER_PARTS;
  const keys = pointer.includes('~') ? parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')) : parts;
  let parent = isReadable ? state.document : undefined;
  for (const key of keys.slice(0, -1)) parent = isContainer(parent) ? get({ parent, key }) : undefined;
  if (!isContainer(parent)) throw new Inapplicable('there is no such place');
  return { parent, key: keys.at(-1)! };
}

const isContainer = (value: unknown): value is Container => Array.isArray(value) || isJsonObject(value);

/** The place of an element in a list of `length`, from its end below zero. As Go's Atoi, a sign and leading zeros are taken. */
function indexIn(key: string, length: number): number {
  const index = Number(key);
  const isOne = /^[+-]?[0-9]+$/.test(key) && index >= -length && index < length;
  if (!isOne) throw new Inapplicable(`${quoted(key)} is not an index of a list of ${length}`);
  return index < 0 ? index + length : index;
}

/** What is there; a member that is not there reads as null. */
function get({ parent, key }: Located): unknown {
  if (Array.isArray(parent)) return parent[indexIn(key, parent.length)];
  return Object.hasOwn(parent, key) ? parent[key] : null;
}

/** Puts a value in. `-` and the length mean the end of a list; -1 is the end, too, because it counts in the new list. */
function put({ parent, key }: Located, value: unknown): void {
  if (!Array.isArray(parent)) setOwn(parent, key, value);
  else if (key === '-') parent.push(value);
  else parent.splice(indexIn(key, parent.length + 1), 0, value);
}

/** Takes a value out. */
function take({ parent, key }: Located): unknown {
  if (Array.isArray(parent)) return parent.splice(indexIn(key, parent.length), 1)[0];
  if (!Object.hasOwn(parent, key)) throw new Inapplicable(`there is no ${quoted(key)}`);
  const value = parent[key];
  delete parent[key];
  return value;
}

interface Call {
  readonly state: State;
  readonly value: unknown;
  readonly at: (key: 'path' | 'from') => string;
}

const OPERATIONS: Readonly<Record<string, (call: Call) => void>> = {
  add: ({ state, value, at }) => put(locate(state, at('path')), value),
  remove: ({ state, at }) => take(locate(state, at('path'))),
  move({ state, at }) {
    const value = take(locate(state, at('from')));
    put(locate(state, at('path')), value);
  },
  copy({ state, at }) {
    const value = get(locate(state, at('from')));
    const target = locate(state, at('path'));
    // Repeated copies double a document each time: the growth is bounded, not the operations alone.
    state.copied += value === null ? 0 : JSON.stringify(value).length;
    if (state.copied > MAX_COPY_BYTES) {
      throw new Inapplicable(`copies add ${state.copied} bytes, more than ${MAX_COPY_BYTES}`);
    }
    put(target, cloneJson(value));
  },
  replace({ state, value, at }) {
    const path = at('path');
    if (path === '') {
      if (!isContainer(value)) throw new Inapplicable('the value must be an object or a list');
      state.document = value;
      return;
    }
    const { parent, key } = locate(state, path);
    if (Array.isArray(parent)) parent[indexIn(key, parent.length)] = value;
    else setOwn(parent, key, value);
  },
  test({ state, value, at }) {
    const path = at('path');
    const found = path === '' ? state.document : get(locate(state, path));
    if (!deepEqual(found, value)) throw new FailedTest('the value is another');
  },
};
