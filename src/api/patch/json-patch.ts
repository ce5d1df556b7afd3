/**
 * JSON Patch (RFC 6902) on plain values, with the small liberties of the library apiserver uses: a negative index counts
 * from the end, and a test for null passes where there is nothing.
 */
import { cloneJson } from '../meta/deep-clone.ts';
import { deepEqual } from '../meta/deep-equal.ts';
import { isJsonObject, setOwn } from '../meta/own-property.ts';
import { ApiError, badRequest } from '../meta/status.ts';
import { finish, type Steps } from '../meta/steps.ts';

export const MAX_PATCH_OPERATIONS = 10_000;
/** Bytes of JSON that all copy operations of one patch may add. */
export const MAX_COPY_BYTES = 3 * 1024 * 1024;

/**
 * Applies the operations in order and returns the new document; neither argument is changed nor shared.
 * @throws ApiError 400 for a patch that is none, 413 beyond the limits, 422 Invalid for an operation that fails
 */
export function applyJsonPatch(document: unknown, operations: unknown): unknown {
  return finish(applyJsonPatchSteps(document, operations));
}

/** Operations of one step: on a long list each takes some microseconds. */
const SLICE = 200;

/** The same in steps, for large patches and documents. */
export function* applyJsonPatchSteps(document: unknown, operations: unknown): Steps<unknown> {
  const list = checkShape(operations);
  const state: State = { document: cloneJson(document), copied: 0 };
  for (let index = 0; index < list.length; index++) {
    apply(state, list[index]!, index);
    if (index % SLICE === SLICE - 1) yield;
  }
  return state.document;
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}
interface State {
  document: unknown;
  copied: number;
}

function checkShape(operations: unknown): readonly Operation[] {
  if (!Array.isArray(operations)) throw badRequest('json patch: the body must be an array of operations');
  if (operations.length > MAX_PATCH_OPERATIONS) {
    throw tooLarge(
      `The allowed maximum operations in a JSON patch is ${MAX_PATCH_OPERATIONS}, got ${operations.length}`,
    );
  }
  operations.forEach((operation: unknown, index) => {
    if (!isJsonObject(operation)) throw badRequest(`json patch: operation ${index} must be an object`);
    for (const key of ['op', 'path', 'from']) {
      const text = Object.hasOwn(operation, key) ? operation[key] : undefined;
      const isNeeded = key !== 'from' || operation['op'] === 'move' || operation['op'] === 'copy';
      if (isNeeded ? typeof text !== 'string' : text !== undefined && typeof text !== 'string') {
        throw badRequest(`json patch: operation ${index}: member "${key}" must be a string`);
      }
    }
  });
  return operations as Operation[];
}

const tooLarge = (message: string): ApiError => new ApiError({ code: 413, reason: 'RequestEntityTooLarge', message });

class Inapplicable extends Error {}

function apply(state: State, operation: Operation, index: number): void {
  try {
    applyOne(state, operation);
  } catch (error) {
    if (!(error instanceof Inapplicable)) throw error;
    const message = `the server rejected our request due to an error in our request: json patch operation ${index} (${operation.op} ${shownPointer(operation.path)}): ${error.message}`;
    throw new ApiError({ code: 422, reason: 'Invalid', message, details: { causes: [{ message: error.message }] } });
  }
}

function applyOne(state: State, operation: Operation): void {
  const path = parsePointer(operation.path);
  switch (operation.op) {
    case 'add':
      add(state, path, cloneJson(operand(operation)));
      break;
    case 'replace':
      replace(state, path, cloneJson(operand(operation)));
      break;
    case 'remove':
      remove(state, path);
      break;
    case 'move':
      move(state, parsePointer(operation.from!), path);
      break;
    case 'copy':
      copy(state, parsePointer(operation.from!), path);
      break;
    case 'test':
      test(state, path, operation.value ?? null);
      break;
    default:
      throw new Inapplicable(`unexpected kind: ${operation.op}`);
  }
}

function operand(operation: Operation): unknown {
  if (!Object.hasOwn(operation, 'value')) throw new Inapplicable('the operation has no value');
  return operation.value;
}

/** RFC 6901; '' is the whole document. */
function parsePointer(pointer: string): string[] {
  if (pointer === '') return [];
  if (pointer[0] !== '/') throw new Inapplicable(`the path ${shownPointer(pointer)} must start with "/"`);
  const parts = pointer.slice(1).split('/', MAX_POINTER_PARTS + 1);
  if (parts.length > MAX_POINTER_PARTS) {
    throw new Inapplicable(`doc is missing path: ${shownPointer(pointer)}: missing value`);
  }
  return pointer.includes('~') ? parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')) : parts;
}

/** No document is nested this deeply. */
const MAX_POINTER_PARTS = 10_000;
/** Characters of a path that a message shows: a path may be as long as the body. */
const SHOWN_POINTER = 4096;

const pointerText = (path: readonly string[]): string =>
  path.map((part) => `/${part.replace(/~/g, '~0').replace(/\//g, '~1')}`).join('');

/** Quoted, and cut where it is too long. */
const shownPointer = (pointer: string): string =>
  pointer.length > SHOWN_POINTER ? `${JSON.stringify(pointer.slice(0, SHOWN_POINTER))}...` : JSON.stringify(pointer);

const missing = (path: readonly string[]): Inapplicable =>
  new Inapplicable(`doc is missing path: ${shownPointer(pointerText(path))}: missing value`);

const ABSENT = Symbol('absent');

function step(container: unknown, part: string): unknown {
  if (Array.isArray(container)) {
    const at = elementIndex(container, part);
    return at === undefined ? ABSENT : container[at];
  }
  if (isJsonObject(container)) return Object.hasOwn(container, part) ? container[part] : ABSENT;
  return ABSENT;
}

/** The index of an existing element; undefined when the part names none. */
function elementIndex(array: readonly unknown[], part: string): number | undefined {
  if (!/^(0|-?[1-9][0-9]*)$/.test(part)) return undefined;
  const index = Number(part);
  const at = index < 0 ? index + array.length : index;
  return at >= 0 && at < array.length ? at : undefined;
}

function find(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const part of path) {
    value = step(value, part);
    if (value === ABSENT) return ABSENT;
  }
  return value;
}

function container(state: State, path: readonly string[]): unknown[] | Record<string, unknown> {
  const parent = find(state.document, path.slice(0, -1));
  if (Array.isArray(parent) || isJsonObject(parent)) return parent;
  throw missing(path);
}

function add(state: State, path: readonly string[], value: unknown): void {
  if (path.length === 0) {
    state.document = value;
    return;
  }
  const parent = container(state, path);
  const last = path[path.length - 1]!;
  if (Array.isArray(parent)) parent.splice(insertionIndex(parent, last), 0, value);
  else setOwn(parent, last, value);
}

/** Where an added element goes: '-' and the length mean the end; -1 is the end, too, because it counts in the new list. */
function insertionIndex(array: readonly unknown[], part: string): number {
  if (part === '-') return array.length;
  if (!/^(0|-?[1-9][0-9]*)$/.test(part)) throw new Inapplicable(`${JSON.stringify(part)} is not an array index`);
  const index = Number(part);
  const at = index < 0 ? index + array.length + 1 : index;
  if (at < 0 || at > array.length) {
    throw new Inapplicable(`Unable to access invalid index: ${part}: invalid index referenced`);
  }
  return at;
}

function replace(state: State, path: readonly string[], value: unknown): void {
  if (path.length === 0) {
    state.document = value;
    return;
  }
  const parent = container(state, path);
  const last = path[path.length - 1]!;
  if (Array.isArray(parent)) {
    const at = elementIndex(parent, last);
    if (at === undefined) throw missing(path);
    parent[at] = value;
  } else {
    if (!Object.hasOwn(parent, last)) throw missing(path);
    setOwn(parent, last, value);
  }
}

function remove(state: State, path: readonly string[]): void {
  if (path.length === 0) throw new Inapplicable('the whole document cannot be removed');
  const parent = container(state, path);
  const last = path[path.length - 1]!;
  if (Array.isArray(parent)) {
    const at = elementIndex(parent, last);
    if (at === undefined) throw missing(path);
    parent.splice(at, 1);
    return;
  }
  if (!Object.hasOwn(parent, last)) throw missing(path);
  delete parent[last];
}

function move(state: State, from: readonly string[], path: readonly string[]): void {
  const value = find(state.document, from);
  if (value === ABSENT) throw missing(from);
  if (from.length <= path.length && from.every((part, i) => part === path[i])) {
    if (from.length === path.length) return;
    throw new Inapplicable('a value cannot be moved into itself');
  }
  remove(state, from);
  add(state, path, value);
}

function copy(state: State, from: readonly string[], path: readonly string[]): void {
  const value = find(state.document, from);
  if (value === ABSENT) throw missing(from);
  // Repeated copies double a document each time: the growth is bounded, not the operations alone.
  state.copied += JSON.stringify(value).length;
  if (state.copied > MAX_COPY_BYTES) {
    throw tooLarge(
      `Unable to complete the copy, the accumulated size increase of copy is ${state.copied}, exceeding the limit ${MAX_COPY_BYTES}`,
    );
  }
  add(state, path, cloneJson(value));
}

function test(state: State, path: readonly string[], wanted: unknown): void {
  const value = find(state.document, path);
  const found = value === ABSENT ? null : value;
  if (!deepEqual(found, wanted)) {
    throw new Inapplicable(`testing value ${pointerText(path)} failed: test failed`);
  }
}
