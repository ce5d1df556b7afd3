/**
 * Sets of field paths: what managedFields store. A set is a trie; a node is a member (the field itself is owned), has
 * children, or both. Path elements are kept in their stored spelling: `f:name`, `k:{"key":"value"}`, `v:"x"`, `i:0`.
 * All operations return new sets and share what did not change; nobody changes a set after it was built.
 */
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import { stableText } from '../schema/list-types.ts';

export interface FieldSet {
  readonly members: ReadonlySet<string>;
  readonly children: ReadonlyMap<string, FieldSet>;
}

export const EMPTY_SET: FieldSet = { members: new Set(), children: new Map() };

/** A set under construction. */
export interface MutableFieldSet {
  readonly members: Set<string>;
  readonly children: Map<string, MutableFieldSet>;
}

export const newSet = (): MutableFieldSet => ({ members: new Set(), children: new Map() });

/** Adds one path; the empty path (the whole object) is never owned. */
export function insertPath(set: MutableFieldSet, path: readonly string[]): void {
  const last = path.length - 1;
  if (last >= 0) nodeAt(set, path, last).members.add(path[last]!);
}

/** The node at the first `depth` elements of a path, made where it is missing: its caller puts something into it. */
export function nodeAt(set: MutableFieldSet, path: readonly string[], depth = path.length): MutableFieldSet {
  let node = set;
  for (let i = 0; i < depth; i++) {
    let child = node.children.get(path[i]!);
    if (child === undefined) {
      child = newSet();
      node.children.set(path[i]!, child);
    }
    node = child;
  }
  return node;
}

export function isEmptySet(set: FieldSet): boolean {
  if (set.members.size > 0) return false;
  for (const child of set.children.values()) if (!isEmptySet(child)) return false;
  return true;
}

/** True for a set without any node: the operations below then have nothing to do. */
const isBare = (set: FieldSet): boolean => set.members.size === 0 && set.children.size === 0;

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isBare(a)) return b;
  if (isBare(b)) return a;
  const children = new Map(a.children);
  for (const [element, child] of b.children) {
    const other = children.get(element);
    children.set(element, other === undefined ? child : union(other, child));
  }
  return { members: new Set([...a.members, ...b.members]), children };
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (isBare(a) || isBare(b)) return EMPTY_SET;
  const members = new Set<string>();
  for (const element of a.members) if (b.members.has(element)) members.add(element);
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    if (other === undefined) continue;
    const both = intersection(child, other);
    if (!isEmptySet(both)) children.set(element, both);
  }
  return { members, children };
}

/** Members of `a` that are not members of `b`; owning a parent in `b` does not take its children out of `a`. */
export const difference = (a: FieldSet, b: FieldSet): FieldSet => subtract(a, b, false);

/** Like difference, but a member of `b` takes everything below it out of `a`, too. */
export const recursiveDifference = (a: FieldSet, b: FieldSet): FieldSet => subtract(a, b, true);

function subtract(a: FieldSet, b: FieldSet, isRecursive: boolean): FieldSet {
  if (isBare(b)) return a;
  const members = new Set<string>();
  for (const element of a.members) if (!b.members.has(element)) members.add(element);
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    if (isRecursive && b.members.has(element)) continue;
    const other = b.children.get(element);
    const rest = other === undefined ? child : subtract(child, other, isRecursive);
    if (!isEmptySet(rest)) children.set(element, rest);
  }
  return { members, children };
}

export const equalSets = (a: FieldSet, b: FieldSet): boolean => isSubset(a, b) && isSubset(b, a);

function isSubset(a: FieldSet, b: FieldSet): boolean {
  for (const element of a.members) if (!b.members.has(element)) return false;
  for (const [element, child] of a.children) if (!isSubset(child, b.children.get(element) ?? EMPTY_SET)) return false;
  return true;
}

/** Every member path, parents before children, in stored order. */
export function* pathsOf(set: FieldSet, prefix: readonly string[] = []): Generator<string[]> {
  for (const element of [...set.members].sort(compareElements)) yield [...prefix, element];
  for (const element of [...set.children.keys()].sort(compareElements)) {
    yield* pathsOf(set.children.get(element)!, [...prefix, element]);
  }
}

const RANK: Readonly<Record<string, number>> = { f: 0, k: 1, v: 2, i: 3 };

/** The order of structured-merge-diff: by value, not by spelling (fieldpath/element.go). */
function compareElements(a: string, b: string): number {
  const rank = (RANK[a[0]!] ?? 9) - (RANK[b[0]!] ?? 9);
  if (rank !== 0) return rank;
  switch (a[0]) {
    case 'i':
      return Number(a.slice(2)) - Number(b.slice(2));
    case 'v':
      return compareValues(JSON.parse(a.slice(2)), JSON.parse(b.slice(2)));
    case 'k':
      return compareMembers(JSON.parse(a.slice(2)), JSON.parse(b.slice(2)));
    default:
      return compareTexts(a, b);
  }
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const VALUE_RANK: Readonly<Record<string, number>> = { number: 0, string: 1, boolean: 2, list: 3, object: 4, null: 5 };
const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value);

function compareValues(a: unknown, b: unknown): number {
  const rank = VALUE_RANK[kindOf(a)]! - VALUE_RANK[kindOf(b)]!;
  if (rank !== 0) return rank;
  if (typeof a === 'string') return compareTexts(a, b as string);
  if (typeof a !== 'object' || a === null) return Number(a) - Number(b);
  return compareMembers(a, b as object);
}

/** Members in the order of their names, then what is shorter first. */
function compareMembers(a: object, b: object): number {
  const [left, right] = [Object.entries(a), Object.entries(b)];
  for (let at = 0; at < left.length && at < right.length; at++) {
    const [[leftName, leftValue], [rightName, rightValue]] = [left[at]!, right[at]!];
    const order = compareTexts(leftName, rightName) || compareValues(leftValue, rightValue);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** True for elements whose spelling has the order of their values: the default order is many times faster. */
function areSpelledInOrder(elements: readonly string[]): boolean {
  const head = SPELLED.exec(elements[0] ?? '')?.[1];
  if (head === undefined) return false;
  if (head === 'f:') return elements.every((element) => element.startsWith('f:'));
  // What sorts before the closing quote would have to sort behind it.
  return elements.every((element) => element.startsWith(head) && SPELLED.test(element));
}
const SPELLED = /^(f:|v:"(?=[^ !"\\]*"$)|k:\{"[^"\\]*":"(?=[^ !"\\]*"\}$))/;

/** What stands for a field that is owned as it is. */
const OWNED: JsonObject = Object.freeze({});

/** The FieldsV1 form, frozen all the way down; `isOwned` when what the set lies below is a member, too. */
export function toFieldsV1(set: FieldSet, isOwned = false): JsonObject {
  const out: JsonObject = isOwned ? { '.': OWNED } : {};
  for (const element of sortedElements(set)) {
    const child = set.children.get(element);
    const inner = child && toFieldsV1(child, set.members.has(element) && !isEmptySet(child));
    setOwn(out, element, inner ?? OWNED);
  }
  return Object.freeze(out);
}

function sortedElements({ members, children }: FieldSet): string[] {
  const elements = [...members];
  for (const element of children.keys()) if (!members.has(element)) elements.push(element);
  return areSpelledInOrder(elements) ? elements.sort() : elements.sort(compareElements);
}

/** What is left of `limit` nodes beside those of the set; below zero when it has more, of which no more are looked at. */
export function nodesLeft(set: FieldSet, limit: number): number {
  let left = limit - set.members.size - set.children.size;
  for (const child of set.children.values()) {
    if (left < 0) break;
    left = nodesLeft(child, left);
  }
  return left;
}

/** Reads FieldsV1; undefined when it is malformed. `maxDepth` bounds the recursion. */
export function fromFieldsV1(fields: unknown, maxDepth = 200): FieldSet | undefined {
  if (!isJsonObject(fields) || maxDepth === 0) return undefined;
  const set = newSet();
  for (const key of Object.keys(fields)) {
    if (key === '.') continue;
    const element = normalizeElement(key);
    const child = fields[key];
    if (element === undefined || !isJsonObject(child)) return undefined;
    const names = Object.keys(child);
    if (names.length === 0 || Object.hasOwn(child, '.')) set.members.add(element);
    if (names.length === 0) continue;
    const inner = fromFieldsV1(child, maxDepth - 1);
    if (inner === undefined) return undefined;
    if (!isEmptySet(inner)) set.children.set(element, inner as MutableFieldSet);
  }
  return set;
}

/** One spelling for each element, so that elements can be compared as text. */
function normalizeElement(text: string): string | undefined {
  switch (text.slice(0, 2)) {
    case 'f:':
      return text;
    case 'i:':
      return /^i:[0-9]+$/.test(text) ? text : undefined;
    case 'k:':
    case 'v:':
      try {
        return text.slice(0, 2) + stableText(JSON.parse(text.slice(2)));
      } catch {
        return undefined;
      }
    default:
      return undefined;
  }
}

/** How messages print a path: `.spec.containers[name="x"].image`, `.metadata.finalizers[="a"]`. */
export const pathText = (path: readonly string[]): string => path.map(stepText).join('');

/** One step of it: `.spec`, `[name="a",protocol="TCP"]`, `[="x"]`, `[0]`. */
export function stepText(element: string): string {
  const body = element.slice(2);
  if (element.startsWith('f:')) return `.${body}`;
  if (element.startsWith('v:')) return `[=${body}]`;
  if (!element.startsWith('k:')) return `[${body}]`;
  const keys = JSON.parse(body) as JsonObject;
  const names = Object.keys(keys).sort();
  return `[${names.map((key) => `${key}=${JSON.stringify(keys[key])}`).join(',')}]`;
}
