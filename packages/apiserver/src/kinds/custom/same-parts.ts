/**
 * Whether parts of two versions of a definition are the same: what is not said is what is said to be nothing, and empty
 * lists and maps are as good as none.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { CrdVersion, RawSchema } from './crd.ts';

/** The parts of a version that stand at the top of a definition in upstream's eyes when every version has the same. */
export const VERSION_PARTS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;
export type VersionPart = (typeof VERSION_PARTS)[number];

export function samePart(a: CrdVersion, b: CrdVersion, part: VersionPart): boolean {
  const [left, right] = [a.schema?.openAPIV3Schema, b.schema?.openAPIV3Schema];
  if (part === 'schema' && isJsonObject(left) && isJsonObject(right)) return sameSchema(left, right);
  return isSame(a[part], b[part]);
}

const isSame = (a: unknown, b: unknown): boolean => deepEqual(a, b) || deepEqual(comparable(a), comparable(b));

/** Keywords under which any value says something; under `status` even an empty one does. */
const MEANT: ReadonlySet<string> = new Set(['default', 'example', 'x-kubernetes-preserve-unknown-fields', 'status']);
const NOTHING: readonly unknown[] = [undefined, null, '', false];

/** Without what says nothing; undefined where nothing is left. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(comparable);
  if (!isJsonObject(value)) return NOTHING.includes(value) ? undefined : value;
  const kept = Object.entries(value)
    .map(([key, member]) => [key, MEANT.has(key) ? (member ?? undefined) : comparable(member)] as const)
    .filter(([key, member]) => member !== undefined && !(key === 'priority' && member === 0));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function sameSchema(a: RawSchema, b: RawSchema): boolean {
  if (a === b) return true;
  const below = BELOW.filter((key) => isContainer(a[key]) && isContainer(b[key]));
  if (below.length === 0) return isSame(a, b);
  const without = new Set(below);
  if (!isSame(butFor(a, without), butFor(b, without))) return false;
  return below.every((key) => {
    const [left, right] = [a[key], b[key]];
    if (Array.isArray(left) && Array.isArray(right) && LISTS.has(key)) {
      return left.length === right.length && left.every((one, i) => same(one, right[i]));
    }
    if (isJsonObject(left) && isJsonObject(right) && !LISTS.has(key)) {
      return key === 'properties' ? sameMap(left, right) : sameSchema(left, right);
    }
    return isSame({ [key]: left }, { [key]: right });
  });
}

const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf']);
/** The keywords below which very much may stand in a schema that is accepted. */
const BELOW = ['properties', 'items', 'additionalProperties', 'not', ...LISTS];

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;

const butFor = (schema: RawSchema, keys: ReadonlySet<string>): RawSchema =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.has(key)));

/** What is no schema is as good as not there. */
function sameMap(a: RawSchema, b: RawSchema): boolean {
  const names = Object.keys(a).filter((name) => isJsonObject(a[name]));
  if (names.length !== Object.keys(b).filter((name) => isJsonObject(b[name])).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
}

const same = (a: unknown, b: unknown): boolean =>
  isJsonObject(a) && isJsonObject(b) ? sameSchema(a, b) : !isJsonObject(a) && !isJsonObject(b);
