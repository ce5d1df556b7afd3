/**
 * Whether parts of two versions of a definition are the same to Go: what is not said is what is said to be nothing, and
 * empty lists and maps are as good as none. In steps: a schema may have very many nodes.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { CrdVersion, RawSchema } from './crd.ts';
import { comparable, comparableSchema, type VersionPart } from './internal-form.ts';

export function samePart(a: CrdVersion, b: CrdVersion, part: VersionPart): boolean {
  if (part !== 'schema') return deepEqual(a[part], b[part]) || deepEqual(comparable(a, part), comparable(b, part));
  const [left, right] = [a.schema?.openAPIV3Schema, b.schema?.openAPIV3Schema];
  if (isJsonObject(left) && isJsonObject(right)) return sameSchema(left, right);
  return deepEqual(comparable(a, part), comparable(b, part));
}

function sameSchema(a: RawSchema, b: RawSchema): boolean {
  if (a === b) return true;
  const below = BELOW.filter((key) => isContainer(a[key]) && isContainer(b[key]));
  if (below.length === 0) return sameNode(a, b);
  const without = new Set(below);
  if (!sameNode(butFor(a, without), butFor(b, without))) return false;
  for (const key of below) {
    const [left, right] = [a[key], b[key]];
    if (Array.isArray(left) && Array.isArray(right) && LISTS.has(key)) {
      if (!sameList(left, right)) return false;
    } else if (isJsonObject(left) && isJsonObject(right) && !LISTS.has(key)) {
      if (!(key === 'properties' ? sameMap(left, right) : sameSchema(left, right))) return false;
    } else if (!sameNode({ [key]: left }, { [key]: right })) return false;
  }
  return true;
}

const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf']);
/** The keywords below which very much may stand in a schema that is accepted. */
const BELOW = ['properties', 'items', 'additionalProperties', 'not', ...LISTS];

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;

const sameNode = (a: RawSchema, b: RawSchema): boolean =>
  deepEqual(a, b) || deepEqual(comparableSchema(a), comparableSchema(b));

const butFor = (schema: RawSchema, keys: ReadonlySet<string>): RawSchema =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.has(key)));

function sameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (const [i, left] of a.entries()) if (!same(left, b[i])) return false;
  return true;
}

/** What is no schema is as good as not there. */
function sameMap(a: RawSchema, b: RawSchema): boolean {
  const names = Object.keys(a).filter((name) => isJsonObject(a[name]));
  if (names.length !== Object.keys(b).filter((name) => isJsonObject(b[name])).length) return false;
  for (const name of names) {
    if (!Object.hasOwn(b, name) || !same(a[name], b[name])) return false;
  }
  return true;
}

function same(a: unknown, b: unknown): boolean {
  if (isJsonObject(a) && isJsonObject(b)) return sameSchema(a, b);
  return !isJsonObject(a) && !isJsonObject(b);
}
