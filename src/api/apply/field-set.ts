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
  let node = set;
  const last = path.length - 1;
  if (last < 0) return;
  for (let i = 0; i < last; i++) {
    let child = node.children.get(path[i]!);
    if (child === undefined) {
      child = newSet();
      node.children.set(path[i]!, child);
    }
    node = child;
  }
  node.members.add(path[last]!);
}

export function isEmptySet(set: FieldSet): boolean {
  if (set.members.size > 0) return false;
  for (const child of set.children.values()) if (!isEmptySet(child)) return false;
  return true;
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === EMPTY_SET) return b;
  if (b === EMPTY_SET) return a;
  const children = new Map(a.children);
  for (const [element, child] of b.children) {
    const other = children.get(element);
    children.set(element, other === undefined ? child : union(other, child));
  }
  return { members: new Set([...a.members, ...b.members]), children };
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
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
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, false);
}

/** Like difference, but a member of `b` takes everything below it out of `a`, too. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, true);
}

function subtract(a: FieldSet, b: FieldSet, isRecursive: boolean): FieldSet {
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

export function equalSets(a: FieldSet, b: FieldSet): boolean {
  return isEmptySet(difference(a, b)) && isEmptySet(difference(b, a));
}

/** Every member path, parents before children, in stored order. */
export function* pathsOf(set: FieldSet, prefix: readonly string[] = []): Generator<string[]> {
  for (const element of [...set.members].sort(compareElements)) yield [...prefix, element];
  for (const element of [...set.children.keys()].sort(compareElements)) {
    yield* pathsOf(set.children.get(element)!, [...prefix, element]);
  }
}

const RANK: Readonly<Record<string, number>> = { f: 0, k: 1, v: 2, i: 3 };

function compareElements(a: string, b: string): number {
  const rank = (RANK[a[0]!] ?? 9) - (RANK[b[0]!] ?? 9);
  if (rank !== 0) return rank;
  if (a[0] === 'i' || (a[0] === 'v' && isNumeric(a) && isNumeric(b))) return Number(a.slice(2)) - Number(b.slice(2));
  return a < b ? -1 : a > b ? 1 : 0;
}
const isNumeric = (element: string): boolean => /^v:-?[0-9]/.test(element);

/** The FieldsV1 form. */
export function toFieldsV1(set: FieldSet): JsonObject {
  const out: JsonObject = {};
  const elements = new Set([...set.members, ...set.children.keys()]);
  for (const element of [...elements].sort(compareElements)) {
    const child = set.children.get(element);
    const inner = child === undefined ? {} : toFieldsV1(child);
    const isOwned = set.members.has(element) && child !== undefined && !isEmptySet(child);
    setOwn(out, element, isOwned ? { '.': {}, ...inner } : inner);
  }
  return out;
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
export function pathText(path: readonly string[]): string {
  return path.map(elementText).join('');
}

function elementText(element: string): string {
  const body = element.slice(2);
  switch (element[0]) {
    case 'f':
      return `.${body}`;
    case 'k': {
      const keys = JSON.parse(body) as JsonObject;
      return `[${Object.keys(keys)
        .sort()
        .map((key) => `${key}=${JSON.stringify(keys[key])}`)
        .join(',')}]`;
    }
    case 'v':
      return `[=${body}]`;
    default:
      return `[${body}]`;
  }
}
