/**
 * What makes a schema structural (apiextensions apiserver/schema/validation.go): every value has a type outside of
 * allOf, anyOf, oneOf and not, and inside of these stand validations only.
 */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type FieldError, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { compilePattern } from '@coracle/apimachinery/schema/patterns';
import { forbidden, invalid, required } from '@coracle/apimachinery/validation/field-errors';
import type { RawSchema } from './crd.ts';

type Level = 'root' | 'item' | 'field';

/** The schema under a keyword, undefined when there is none. */
export const childOf = (schema: RawSchema, key: string): RawSchema | undefined =>
  isJsonObject(schema[key]) ? (schema[key] as RawSchema) : undefined;

/** The schemas of a keyword that lists them. */
export const branchesOf = (schema: RawSchema, key: string): readonly RawSchema[] =>
  Array.isArray(schema[key]) ? (schema[key] as unknown[]).filter(isJsonObject) : NO_BRANCHES;
const NO_BRANCHES: readonly RawSchema[] = Object.freeze([]);

/** The schemas of a keyword that names them, such as `properties`. */
export function namedIn(schema: RawSchema, key: string): readonly (readonly [name: string, RawSchema])[] {
  const map = schema[key];
  if (!isJsonObject(map)) return NONE_NAMED;
  const found: [string, RawSchema][] = [];
  for (const name of Object.keys(map)) if (isJsonObject(map[name])) found.push([name, map[name]]);
  return found;
}
const NONE_NAMED: readonly (readonly [string, RawSchema])[] = Object.freeze([]);

/** The properties of a schema, by name. */
export const propertiesOf = (schema: RawSchema): ReturnType<typeof namedIn> => namedIn(schema, 'properties');

/** The schemas right below some keywords, in the order of these, each with the step to it: `.allOf[0]`, `.properties[a]`. */
export function* schemasIn(schema: RawSchema, keys: readonly string[]): Iterable<readonly [step: string, RawSchema]> {
  for (const key of keys) {
    if (schema[key] === undefined) continue;
    if (MAPS.has(key)) for (const [name, child] of namedIn(schema, key)) yield [`.${key}[${name}]`, child];
    else if (LISTS.has(key)) for (const [i, child] of branchesOf(schema, key).entries()) yield [`.${key}[${i}]`, child];
    const child = SINGLE.has(key) ? childOf(schema, key) : undefined;
    if (child !== undefined) yield [`.${key}`, child];
  }
}
const SINGLE = new Set(['items', 'not', 'additionalProperties', 'additionalItems']);
const LISTS = new Set(['items', 'allOf', 'anyOf', 'oneOf']);
const MAPS = new Set(['properties', 'patternProperties', 'definitions', 'dependencies']);
const BELOW = [...SINGLE.union(LISTS).union(MAPS)];

/** Whether a property is declared, as its schema. */
export function propertyOf(schema: RawSchema, name: string): RawSchema | undefined {
  const properties = schema['properties'];
  if (!isJsonObject(properties) || !Object.hasOwn(properties, name)) return undefined;
  return isJsonObject(properties[name]) ? (properties[name] as RawSchema) : undefined;
}

export const typeText = (schema: RawSchema): string => (typeof schema['type'] === 'string' ? schema['type'] : '');

/** True when the predicate holds for a schema or anything below any of its keywords. */
export function anySchema(schema: RawSchema, test: (schema: RawSchema) => boolean): boolean {
  if (test(schema)) return true;
  for (const [, child] of schemasIn(schema, BELOW)) if (anySchema(child, test)) return true;
  return false;
}

/** What counts as said of a keyword that is a pointer in Go, or a map. */
export const isSomething = (value: unknown): boolean => value !== undefined && value !== null;
export const isFilled = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length > 0;

/**
 * Why a schema can not be read as a structural one at all; undefined when it can (convert.go, NewStructural). Said only
 * when nothing else is wrong: the rules of keywords mostly say the same.
 */
export function structuralProblem(schema: RawSchema): string | undefined {
  const refused = NOT_STRUCTURAL.find(([, key, isSaid]) => isSaid(schema[key]));
  if (refused !== undefined) return `OpenAPIV3Schema '${refused[0]}' is not supported`;
  for (const [, branch] of schemasIn(schema, ['not', 'allOf', 'anyOf', 'oneOf'])) {
    const problem = structuralProblem(branch);
    if (problem !== undefined) return problem;
  }
  if (schema[PRESERVE] === false) return `internal error: '${PRESERVE}' must be true or undefined`;
  if (branchesOf(schema, 'items').length > 0) return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  for (const [, child] of schemasIn(schema, ['items', 'properties', 'additionalProperties'])) {
    const problem = structuralProblem(child);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** Keywords that no structural schema has, as they are reported. */
const NOT_STRUCTURAL: readonly (readonly [name: string, key: string, isSaid: (value: unknown) => boolean])[] = [
  ['id', 'id', isText],
  ['schema', '$schema', isText],
  ['$ref', '$ref', isText],
  ['patternProperties', 'patternProperties', isFilled],
  ['dependencies', 'dependencies', isFilled],
  ['additionalItems', 'additionalItems', isSomething],
  ['definitions', 'definitions', isFilled],
];

const isOn = (schema: RawSchema, key: string): boolean => schema[key] === true;

const INT_OR_STRING = 'x-kubernetes-int-or-string';
const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
const EMBEDDED = 'x-kubernetes-embedded-resource';

/** Everything that keeps the schema at `path` from being structural, sorted by text; [] when it is. */
export function structuralErrors(schema: RawSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  checkInvariants(schema, 'root', path, errors);
  checkBranchesComplete(schema, schema, { outer: path, inner: path }, errors);
  const reported = errors.map((error) => ({ error, text: `${error.field}: ${fieldErrorBody(error)}` }));
  reported.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  return reported.map(({ error }) => error);
}

function checkInvariants(schema: RawSchema, level: Level, path: string, errors: FieldError[]): void {
  const items = childOf(schema, 'items');
  if (typeText(schema) === 'array' && items === undefined) errors.push(required(`${path}.items`, 'must be specified'));
  if (items !== undefined) checkInvariants(items, 'item', `${path}.items`, errors);
  for (const [step, property] of schemasIn(schema, ['properties'])) {
    checkInvariants(property, 'field', `${path}${step}`, errors);
  }
  const rest = schema['additionalProperties'];
  if (isSomething(rest)) {
    const field = `${path}.additionalProperties`;
    if (level === 'root') errors.push(forbidden(field, 'must not be used at the root'));
    if (isJsonObject(rest)) checkInvariants(rest, 'field', field, errors);
    if (isOn(schema, EMBEDDED)) errors.push(forbidden(field, `must not be used if ${EMBEDDED} is set`));
  }
  for (const key of [PRESERVE, EMBEDDED]) {
    if (isOn(schema, INT_OR_STRING) && isOn(schema, key)) {
      errors.push(invalid(`${path}.${key}`, true, `must be false if ${INT_OR_STRING} is true`));
    }
  }
  checkValueValidations(schema, path, errors);
  checkType(schema, level, path, errors);
  checkMetadata(schema, level, path, errors);
}

const PLACES = { root: 'at the root', item: 'for specified array items', field: 'for specified object fields' };

function checkType(schema: RawSchema, level: Level, path: string, errors: FieldError[]): void {
  const type = typeText(schema);
  const field = `${path}.type`;
  if (isOn(schema, EMBEDDED) && type !== 'object') {
    const detail = `must be object if ${EMBEDDED} is true`;
    errors.push(type === '' ? required(field, detail) : invalid(field, type, detail));
  } else if (type === '' && !isOn(schema, INT_OR_STRING) && !isOn(schema, PRESERVE)) {
    errors.push(required(field, `must not be empty ${PLACES[level]}`));
  }
  if (level === 'root' && type !== '' && type !== 'object') {
    errors.push(invalid(field, type, 'must be object at the root'));
  }
}

function checkMetadata(schema: RawSchema, level: Level, path: string, errors: FieldError[]): void {
  const whole = level === 'root' || isOn(schema, EMBEDDED);
  for (const name of ['kind', 'apiVersion']) {
    const property = propertyOf(schema, name);
    if (whole && property !== undefined && typeText(property) !== 'string') {
      errors.push(invalid(`${path}.properties[${name}].type`, typeText(property), 'must be string'));
    }
  }
  const metadata = propertyOf(schema, 'metadata');
  const field = `${path}.properties[metadata]`;
  if (metadata !== undefined && whole && typeText(metadata) !== 'object') {
    errors.push(invalid(`${field}.type`, typeText(metadata), 'must be object'));
  }
  if (metadata !== undefined && level === 'root' && restrictsMetadata(metadata)) {
    const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    errors.push(forbidden(field, detail));
  }
  if (isOn(schema, EMBEDDED) && !isOn(schema, PRESERVE) && propertiesOf(schema).length === 0) {
    errors.push(required(`${path}.properties`, `must not be empty if ${EMBEDDED} is true without ${PRESERVE}`));
  }
}

const NAMES = new Set(['name', 'generateName']);

/** Fields whose Go type knows unset from empty: `required: []` counts as said, `enum: []` does not. */
const KEPT_EMPTY = new Set(['required', 'x-kubernetes-list-map-keys', 'x-kubernetes-validations']);

/** True for a keyword that Go would hold with its zero value, as if it were not there. */
function isUnsaid(key: string, value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (value === false) return key !== 'additionalProperties' && key !== 'default' && key !== 'example';
  if (Array.isArray(value)) return value.length === 0 && !KEPT_EMPTY.has(key);
  return key === 'properties' && !isFilled(value);
}

/** Anything beside the type and restrictions of the two names. */
function restrictsMetadata(metadata: RawSchema): boolean {
  for (const [key, value] of Object.entries(metadata)) {
    if (key === 'type' || key === 'default' || isUnsaid(key, value)) continue;
    if (key === 'properties' && propertiesOf(metadata).every(([name]) => NAMES.has(name))) continue;
    return true;
  }
  return false;
}

function isIntOrString(branches: readonly RawSchema[]): boolean {
  const only = (branch: RawSchema | undefined, type: string): boolean =>
    branch !== undefined &&
    branch['type'] === type &&
    Object.entries(branch).every(([key, value]) => key === 'type' || isUnsaid(key, value));
  return branches.length === 2 && only(branches[0], 'integer') && only(branches[1], 'string');
}

/** `spare`: the one place where types may stand inside, the two of int-or-string: this anyOf, or that of the first allOf. */
function checkValueValidations(
  schema: RawSchema,
  path: string,
  errors: FieldError[],
  spare: { readonly anyOf: boolean; readonly allOf: boolean } = { anyOf: true, allOf: true },
): void {
  const isSpare = spare.anyOf && isIntOrString(branchesOf(schema, 'anyOf'));
  const keys = isSpare ? ['allOf', 'oneOf', 'not'] : ['anyOf', 'allOf', 'oneOf', 'not'];
  for (const [step, branch] of schemasIn(schema, keys)) {
    checkNested(branch, path + step, errors, step === '.allOf[0]' && spare.allOf);
  }
  const pattern = schema['pattern'];
  if (typeof pattern !== 'string' || pattern === '') return;
  try {
    compilePattern(pattern);
  } catch (error) {
    const why = (error as Error).message;
    errors.push(invalid(`${path}.pattern`, pattern, `must be a valid regular expression, but isn't: ${why}`));
  }
}

const EMPTY = 'must be empty to be structural';
const UNDEFINED = 'must be undefined to be structural';
const FALSE = 'must be false to be structural';

/** Keywords that may not stand inside a branch, in the order they are reported. */
const FORBIDDEN_INSIDE: readonly (readonly [string, string])[] = [
  ['type', EMPTY],
  ['additionalProperties', UNDEFINED],
  ['default', UNDEFINED],
  ['title', EMPTY],
  ['description', EMPTY],
  ['nullable', FALSE],
  [PRESERVE, FALSE],
  [EMBEDDED, FALSE],
  [INT_OR_STRING, FALSE],
  ['x-kubernetes-list-map-keys', EMPTY],
  ['x-kubernetes-list-type', UNDEFINED],
  ['x-kubernetes-map-type', UNDEFINED],
  ['x-kubernetes-validations', EMPTY],
];

function checkNested(schema: RawSchema, path: string, errors: FieldError[], spareAnyOf: boolean): void {
  checkValueValidations(schema, path, errors, { anyOf: spareAnyOf, allOf: false });
  for (const [step, child] of schemasIn(schema, ['items', 'properties'])) {
    // A list under `items` is refused elsewhere.
    if (!step.startsWith('.items[')) checkNested(child, path + step, errors, false);
  }
  for (const [key, detail] of FORBIDDEN_INSIDE) {
    const value = schema[key];
    const isEmpty = value === '' || (key !== 'default' && (value === false || (Array.isArray(value) && !value.length)));
    if (isSomething(value) && !isEmpty) errors.push(forbidden(`${path}.${key}`, detail));
  }
  if (propertyOf(schema, 'metadata') !== undefined) {
    errors.push(forbidden(`${path}.properties[metadata]`, 'must not be specified in a nested context'));
  }
}

interface Paths {
  readonly outer: string;
  readonly inner: string;
}

/** Whatever a branch of the root speaks of must be declared outside of it. Upstream does not ask it of other nodes. */
function checkBranchesComplete(from: RawSchema, outer: RawSchema, paths: Paths, errors: FieldError[]): void {
  for (const [step, branch] of schemasIn(from, ['anyOf', 'allOf', 'oneOf', 'not'])) {
    checkBranchComplete(branch, outer, { ...paths, inner: paths.inner + step }, errors);
  }
}

function checkBranchComplete(
  branch: RawSchema,
  outer: RawSchema | undefined,
  paths: Paths,
  errors: FieldError[],
): void {
  if (outer === undefined) {
    errors.push(required(paths.outer, `because it is defined in ${paths.inner}`));
    return;
  }
  checkBranchesComplete(branch, outer, paths, errors);
  const below = (step: string): Paths => ({ outer: paths.outer + step, inner: paths.inner + step });
  const items = childOf(branch, 'items');
  if (items !== undefined) checkBranchComplete(items, childOf(outer, 'items'), below('.items'), errors);
  for (const [name, property] of propertiesOf(branch)) {
    checkBranchComplete(property, propertyOf(outer, name), below(`.properties[${name}]`), errors);
  }
}
