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

/** The properties of a schema, by name. */
export const propertiesOf = (schema: RawSchema): readonly (readonly [string, RawSchema])[] => {
  const properties = schema['properties'];
  if (!isJsonObject(properties)) return NO_PROPERTIES;
  const found: [string, RawSchema][] = [];
  for (const name of Object.keys(properties)) {
    const property = properties[name];
    if (isJsonObject(property)) found.push([name, property as RawSchema]);
  }
  return found;
};
const NO_PROPERTIES: readonly (readonly [string, RawSchema])[] = Object.freeze([]);

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
  for (const key of SCHEMAS) {
    const child = schema[key];
    if (isJsonObject(child) && anySchema(child, test)) return true;
  }
  for (const key of LISTS) {
    for (const child of branchesOf(schema, key)) if (anySchema(child, test)) return true;
  }
  for (const key of MAPS) {
    const map = schema[key];
    if (!isJsonObject(map)) continue;
    for (const name of Object.keys(map)) {
      const child = map[name];
      if (isJsonObject(child) && anySchema(child, test)) return true;
    }
  }
  return false;
}

// Most schemas are leaves, and a definition may have very many of them.
const SCHEMAS = ['items', 'not', 'additionalProperties', 'additionalItems'];
const LISTS = ['items', 'allOf', 'anyOf', 'oneOf'];
const MAPS = ['properties', 'patternProperties', 'definitions', 'dependencies'];

/** What counts as said of a keyword that is a pointer in Go, or a map. */
export const isSomething = (value: unknown): boolean => value !== undefined && value !== null;
export const isFilled = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length > 0;

/**
 * Why a schema can not be read as a structural one at all; undefined when it can (convert.go, NewStructural). Said only
 * when nothing else is wrong: the rules of keywords mostly say the same.
 */
export function structuralProblem(schema: RawSchema): string | undefined {
  const unsupported = (keyword: string): string => `OpenAPIV3Schema '${keyword}' is not supported`;
  if (textOf(schema, 'id') !== '') return unsupported('id');
  if (textOf(schema, '$schema') !== '') return unsupported('schema');
  if (textOf(schema, '$ref') !== '') return unsupported('$ref');
  for (const key of ['patternProperties', 'dependencies']) if (isFilled(schema[key])) return unsupported(key);
  if (isSomething(schema['additionalItems'])) return unsupported('additionalItems');
  if (isFilled(schema['definitions'])) return unsupported('definitions');
  const not = childOf(schema, 'not');
  const inNot = not && structuralProblem(not);
  if (inNot !== undefined) return inNot;
  for (const key of ['allOf', 'anyOf', 'oneOf']) {
    for (const branch of branchesOf(schema, key)) {
      const problem = structuralProblem(branch);
      if (problem !== undefined) return problem;
    }
  }
  if (schema[PRESERVE] === false) return `internal error: '${PRESERVE}' must be true or undefined`;
  if (branchesOf(schema, 'items').length > 0) return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  const items = childOf(schema, 'items');
  const inItems = items && structuralProblem(items);
  if (inItems !== undefined) return inItems;
  for (const [, property] of propertiesOf(schema)) {
    const problem = structuralProblem(property);
    if (problem !== undefined) return problem;
  }
  const rest = childOf(schema, 'additionalProperties');
  return rest && structuralProblem(rest);
}

const textOf = (schema: RawSchema, key: string): string =>
  typeof schema[key] === 'string' ? (schema[key] as string) : '';
const isOn = (schema: RawSchema, key: string): boolean => schema[key] === true;

const INT_OR_STRING = 'x-kubernetes-int-or-string';
const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
const EMBEDDED = 'x-kubernetes-embedded-resource';

/** Everything that keeps the schema at `path` from being structural, sorted by text; [] when it is. */
export function structuralErrors(schema: RawSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const found: Found = { errors };
  checkInvariants(schema, 'root', path, found);
  checkCompleteness(schema, path, found);
  const reported: { readonly error: FieldError; readonly text: string }[] = [];
  for (const error of errors) {
    reported.push({ error, text: `${error.field}: ${fieldErrorBody(error)}` });
  }
  const sorted = reported.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  return sorted.map(({ error }) => error);
}

interface Found {
  readonly errors: FieldError[];
}

function checkInvariants(schema: RawSchema, level: Level, path: string, found: Found): void {
  const { errors } = found;
  const type = typeText(schema);
  const items = childOf(schema, 'items');
  if (type === 'array' && items === undefined) errors.push(required(`${path}.items`, 'must be specified'));
  if (items !== undefined) checkInvariants(items, 'item', `${path}.items`, found);
  for (const [name, property] of propertiesOf(schema)) {
    checkInvariants(property, 'field', `${path}.properties[${name}]`, found);
  }
  const rest = schema['additionalProperties'];
  if (rest !== undefined && rest !== null) {
    const field = `${path}.additionalProperties`;
    if (level === 'root') errors.push(forbidden(field, 'must not be used at the root'));
    if (isJsonObject(rest)) checkInvariants(rest, 'field', field, found);
    if (isOn(schema, EMBEDDED)) {
      errors.push(forbidden(field, `must not be used if ${EMBEDDED} is set`));
    }
  }
  for (const key of [PRESERVE, EMBEDDED]) {
    if (isOn(schema, INT_OR_STRING) && isOn(schema, key)) {
      errors.push(invalid(`${path}.${key}`, true, `must be false if ${INT_OR_STRING} is true`));
    }
  }
  checkValueValidations(schema, path, found);
  checkType(schema, level, path, errors);
  checkMetadata(schema, level, path, errors);
}

function checkType(schema: RawSchema, level: Level, path: string, errors: FieldError[]): void {
  const type = typeText(schema);
  const field = `${path}.type`;
  if (isOn(schema, EMBEDDED) && type !== 'object') {
    const detail = `must be object if ${EMBEDDED} is true`;
    errors.push(type === '' ? required(field, detail) : invalid(field, type, detail));
  } else if (type === '' && !isOn(schema, INT_OR_STRING) && !isOn(schema, PRESERVE)) {
    const where =
      level === 'root' ? 'at the root' : level === 'item' ? 'for specified array items' : 'for specified object fields';
    errors.push(required(field, `must not be empty ${where}`));
  }
  if (level === 'root' && type !== '' && type !== 'object')
    errors.push(invalid(field, type, 'must be object at the root'));
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
    errors.push(
      forbidden(
        field,
        'must not specify anything other than name and generateName, but metadata is implicitly specified',
      ),
    );
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
  found: Found,
  spare: { readonly anyOf: boolean; readonly allOf: boolean } = { anyOf: true, allOf: true },
): void {
  const anyOf = branchesOf(schema, 'anyOf');
  if (!(spare.anyOf && isIntOrString(anyOf))) {
    for (const [i, branch] of anyOf.entries()) checkNested(branch, `${path}.anyOf[${i}]`, found, false);
  }
  for (const [i, branch] of branchesOf(schema, 'allOf').entries()) {
    checkNested(branch, `${path}.allOf[${i}]`, found, i === 0 && spare.allOf);
  }
  for (const [i, branch] of branchesOf(schema, 'oneOf').entries())
    checkNested(branch, `${path}.oneOf[${i}]`, found, false);
  const not = childOf(schema, 'not');
  if (not !== undefined) checkNested(not, `${path}.not`, found, false);
  const pattern = textOf(schema, 'pattern');
  if (pattern === '') return;
  try {
    compilePattern(pattern);
  } catch (error) {
    const why = (error as Error).message;
    found.errors.push(invalid(`${path}.pattern`, pattern, `must be a valid regular expression, but isn't: ${why}`));
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

function checkNested(schema: RawSchema, path: string, found: Found, spareAnyOf: boolean): void {
  const { errors } = found;
  checkValueValidations(schema, path, found, { anyOf: spareAnyOf, allOf: false });
  const items = childOf(schema, 'items');
  if (items !== undefined) checkNested(items, `${path}.items`, found, false);
  for (const [name, property] of propertiesOf(schema)) {
    checkNested(property, `${path}.properties[${name}]`, found, false);
  }
  for (const [key, detail] of FORBIDDEN_INSIDE) {
    const value = schema[key];
    const isUnset = value === undefined || value === null || value === '' || (value === false && key !== 'default');
    if (!isUnset && !(Array.isArray(value) && value.length === 0 && key !== 'default'))
      errors.push(forbidden(`${path}.${key}`, detail));
  }
  if (propertyOf(schema, 'metadata') !== undefined) {
    errors.push(forbidden(`${path}.properties[metadata]`, 'must not be specified in a nested context'));
  }
}

/** Whatever a branch of the root speaks of must be declared outside of it. Upstream does not ask it of other nodes. */
const checkCompleteness = (schema: RawSchema, path: string, found: Found): void =>
  checkBranchesComplete(schema, schema, { outer: path, inner: path }, found);

interface Paths {
  readonly outer: string;
  readonly inner: string;
}

function checkBranchesComplete(from: RawSchema, outer: RawSchema, paths: Paths, found: Found): void {
  for (const key of ['anyOf', 'allOf', 'oneOf']) {
    for (const [i, branch] of branchesOf(from, key).entries()) {
      checkBranchComplete(branch, outer, { ...paths, inner: `${paths.inner}.${key}[${i}]` }, found);
    }
  }
  const not = childOf(from, 'not');
  if (not !== undefined) checkBranchComplete(not, outer, { ...paths, inner: `${paths.inner}.not` }, found);
}

function checkBranchComplete(branch: RawSchema, outer: RawSchema | undefined, paths: Paths, found: Found): void {
  if (outer === undefined) {
    found.errors.push(required(paths.outer, `because it is defined in ${paths.inner}`));
    return;
  }
  checkBranchesComplete(branch, outer, paths, found);
  const below = (step: string): Paths => ({ outer: paths.outer + step, inner: paths.inner + step });
  const items = childOf(branch, 'items');
  if (items !== undefined) checkBranchComplete(items, childOf(outer, 'items'), below('.items'), found);
  for (const [name, property] of propertiesOf(branch)) {
    checkBranchComplete(property, propertyOf(outer, name), below(`.properties[${name}]`), found);
  }
}
