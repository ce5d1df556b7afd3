/**
 * Annotation `config.kubernetes.io/apply-time-mutation`: fields of an object that are filled in when it is applied, from fields
 * of other objects that are there and ready by then.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { ReadonlyObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { getOwn, isJsonObject, setOwn } from '@coracle/apimachinery/meta/own-property';
import { parseYaml } from '@coracle/apimachinery/schema/parse-json';
import type { ObjectRef } from '../kinds/kinds.ts';
import { refId, refText } from './object-ref.ts';

/** One field that is filled in. */
export interface Substitution {
  readonly source: ObjectRef;
  /** Version in which the source is read; the preferred one when absent. */
  readonly sourceVersion?: string;
  readonly sourcePath: FieldPath;
  readonly targetPath: FieldPath;
  /** Only this text in the target is replaced; the whole value when absent. */
  readonly token?: string;
}

/** A path with its steps. */
export interface FieldPath {
  readonly text: string;
  readonly steps: readonly Step[];
}

type Step =
  | { readonly type: 'field'; readonly name: string }
  /** Negative: from the end. */
  | { readonly type: 'index'; readonly index: number }
  /** The item with that value at a path of fields. */
  | { readonly type: 'item'; readonly fields: readonly string[]; readonly value: unknown };

/** Substitutions of one object. */
const MAX_SUBSTITUTIONS = 100;
const MAX_STEPS = 100;

/** A source in the version in which it is read. */
export const sourceId = ({ source, sourceVersion = '' }: Pick<Substitution, 'source' | 'sourceVersion'>): string =>
  `${sourceVersion} ${refId(source)}`;

/** What cannot be filled in now: nothing was written. */
export class SubstitutionError extends Error {
  override readonly name = 'SubstitutionError';
}

/**
 * Reads the annotation of an object: a list in YAML of `sourceRef` (group or apiVersion, kind, namespace, name), `sourcePath`,
 * `targetPath` and perhaps `token`. `isNamespaced`: of a kind, as far as it is known.
 * @throws Error with what is wrong with it
 */
export function parseSubstitutions(
  text: string,
  target: ObjectRef,
  isNamespaced: (ref: Pick<ObjectRef, 'group' | 'kind'>) => boolean | undefined,
): Substitution[] {
  const parsed = parseYaml(text);
  const [duplicate] = parsed.duplicates();
  if (duplicate !== undefined) throw new Error(`field ${duplicate} is there twice`);
  if (!Array.isArray(parsed.value)) throw new Error('it is not a list');
  if (parsed.value.length > MAX_SUBSTITUTIONS)
    throw new Error(`it has ${parsed.value.length} items; at most ${MAX_SUBSTITUTIONS} are allowed`);
  return parsed.value.map((item: unknown, at): Substitution => {
    if (!isJsonObject(item)) throw new Error(`item ${at} is not a map`);
    const word = (from: Record<string, unknown>, field: string, where: string): string => {
      const value = getOwn(from, field) ?? '';
      if (typeof value !== 'string') throw new Error(`${where}.${field} is not a string`);
      return value;
    };
    const given = getOwn(item, 'sourceRef');
    if (!isJsonObject(given)) throw new Error(`item ${at} has no sourceRef`);
    const [apiVersion, kind, name] = ['apiVersion', 'kind', 'name'].map((field) => word(given, field, 'sourceRef'));
    if (!kind || !name) throw new Error(`sourceRef of item ${at} needs a kind and a name`);
    const { group, version } = apiVersion
      ? parseApiVersion(apiVersion)
      : { group: word(given, 'group', 'sourceRef'), version: '' };
    const named = word(given, 'namespace', 'sourceRef');
    const namespace = named || (isNamespaced({ group, kind }) === false ? '' : target.namespace);
    const source = { group, kind, namespace, name };
    if (refId(source) === refId(target)) throw new Error(`item ${at} refers to the object itself`);
    const token = word(item, 'token', `item ${at}`);
    return {
      source,
      ...(version !== '' && { sourceVersion: version }),
      sourcePath: parsePath(word(item, 'sourcePath', `item ${at}`)),
      targetPath: parsePath(word(item, 'targetPath', `item ${at}`)),
      ...(token !== '' && { token }),
    };
  });
}

const STEP =
  /^(?:\.([A-Za-z_][\w-]*)|\[(-?\d{1,6})\]|\[(?:'([^']*)'|"([^"]*)")\]|\[\?\(\s*@((?:\.[A-Za-z_][\w-]*)+)\s*==\s*('[^']*'|"[^"]*"|-?\d+|true|false)\s*\)\])/;

/** `$` and then `.name`, `['name']`, `[0]`, `[-1]`, `[?(@.name=="x")]`. @throws Error for anything else */
export function parsePath(text: string): FieldPath {
  if (!text.startsWith('$')) throw new Error(`path ${JSON.stringify(text)} does not begin with $`);
  const steps: Step[] = [];
  for (let rest = text.slice(1); rest !== ''; ) {
    const found = STEP.exec(rest);
    if (!found)
      throw new Error(
        `path ${JSON.stringify(text)} cannot be read at ${JSON.stringify(rest.slice(0, 20))}: it has .name, ['name'], [0], [-1] and [?(@.name=="x")]`,
      );
    const [whole, plain, index, single, double, fields, value] = found;
    const name = plain ?? single ?? double;
    if (name !== undefined) steps.push({ type: 'field', name });
    else if (index !== undefined) steps.push({ type: 'index', index: Number(index) });
    else steps.push({ type: 'item', fields: fields!.slice(1).split('.'), value: literal(value!) });
    rest = rest.slice(whole.length);
  }
  if (steps.length === 0) throw new Error(`path ${JSON.stringify(text)} names no field`);
  if (steps.length > MAX_STEPS) throw new Error(`path ${JSON.stringify(text.slice(0, 100))} is too long`);
  return { text, steps };
}

const literal = (text: string): unknown => (/^['"]/.test(text) ? text.slice(1, -1) : JSON.parse(text));

/** Where one step leads in a value: the key there; undefined when it leads nowhere. */
function keyOf(value: unknown, step: Step): string | number | undefined {
  if (step.type === 'field') return isJsonObject(value) && Object.hasOwn(value, step.name) ? step.name : undefined;
  if (!Array.isArray(value)) return undefined;
  if (step.type === 'index') {
    const at = step.index < 0 ? value.length + step.index : step.index;
    return at >= 0 && at < value.length ? at : undefined;
  }
  const fits = (item: unknown): boolean =>
    deepEqual(
      step.fields.reduce<unknown>((part, name) => (isJsonObject(part) ? getOwn(part, name) : undefined), item),
      step.value,
    );
  const at = value.findIndex(fits);
  // Of two that fit neither is meant.
  return at >= 0 && value.findLastIndex(fits) === at ? at : undefined;
}

const at = (value: unknown, key: string | number): unknown => (value as Record<string | number, unknown>)[key];

function readPath(object: unknown, { steps }: FieldPath): unknown {
  let value = object;
  for (const step of steps) {
    const key = keyOf(value, step);
    if (key === undefined) return undefined;
    value = at(value, key);
  }
  return value;
}

/**
 * The object with its fields filled in; it is not changed itself. `sources` by `sourceId`, as they are now.
 * @throws SubstitutionError for a field that is not there, and for a token in what is no text
 */
export function substitute(
  object: UnstructuredObject,
  substitutions: readonly Substitution[],
  sources: ReadonlyMap<string, ReadonlyObject>,
): UnstructuredObject {
  const filled = structuredClone(object);
  for (const substitution of substitutions) {
    const { source, sourcePath, targetPath, token } = substitution;
    const from = sources.get(sourceId(substitution));
    const value = from && readPath(from, sourcePath);
    if (value === undefined || value === null)
      throw new SubstitutionError(
        from
          ? `source field (${sourcePath.text}) not present in source object (${refText(source)})`
          : `source object (${refText(source)}) not found`,
      );
    const parent = readPath(filled, { text: targetPath.text, steps: targetPath.steps.slice(0, -1) });
    const key = keyOf(parent, targetPath.steps.at(-1)!);
    if (key === undefined)
      throw new SubstitutionError(`target field (${targetPath.text}) not present in target object`);
    const before = at(parent, key);
    let after: unknown = structuredClone(value);
    if (token !== undefined) {
      if (typeof before !== 'string')
        throw new SubstitutionError(`token is specified, but target field (${targetPath.text}) is not a string`);
      after = before.replaceAll(token, () => (typeof value === 'string' ? value : JSON.stringify(value)));
    }
    if (typeof key === 'number') (parent as unknown[])[key] = after;
    else setOwn(parent as Record<string, unknown>, key, after);
  }
  return filled;
}
