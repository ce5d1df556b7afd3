/**
 * The keywords a definition's schema may use, and how they go together (apiextensions validation.go,
 * ValidateCustomResourceDefinitionOpenAPISchema). Whether the schema is structural is asked in `structural-rules`.
 */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  forbidden,
  invalid,
  required,
  unsupported,
  unsupportedInOrder,
} from '@coracle/apimachinery/validation/field-errors';
import type { RawSchema } from './crd.ts';
import { findFieldPath } from './field-path.ts';
import {
  branchesOf,
  childOf,
  isFilled,
  isSomething,
  propertiesOf,
  propertyOf,
  schemasIn,
  structuralProblem,
  typeText,
} from './structural-rules.ts';

/** What is so for a node because of where it stands. */
interface Place {
  /** Why defaults are not allowed here; undefined where they are. */
  readonly noDefaults?: string;
  readonly insideMeta?: boolean;
}

/** The types of OpenAPI v3. */
const SCHEMA_TYPES: readonly string[] = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const META = new Set(['metadata', 'kind', 'apiVersion']);
const LIST_TYPE = 'x-kubernetes-list-type';
const LIST_KEYS = 'x-kubernetes-list-map-keys';
const MAP_TYPE = 'x-kubernetes-map-type';
const RULES = 'x-kubernetes-validations';

/** What is wrong with the schema that stands at `path`, and the nodes at or below which something is: their rules are not compiled. */
export function schemaProblems(
  schema: RawSchema,
  path: string,
): { readonly errors: FieldError[]; readonly faulty: ReadonlySet<RawSchema> } {
  const isStructural = structuralProblem(schema) === undefined;
  const visit: Visit = {
    root: true,
    place: {},
    errors: [],
    faulty: new Set(),
    isReadable: (node) => isStructural || structuralProblem(node) === undefined,
  };
  checkSchema(schema, path, visit);
  return visit;
}

interface Visit {
  readonly root: boolean;
  readonly place: Place;
  readonly errors: FieldError[];
  readonly faulty: Set<RawSchema>;
  /** True for a node that can be read as a structural one. */
  readonly isReadable: (node: RawSchema) => boolean;
}

function checkSchema(schema: RawSchema, path: string, visit: Visit): void {
  const { errors, place } = visit;
  const before = errors.length;
  checkKeywords(schema, path, visit);
  checkAdditional(schema, path, visit);
  const isWhole = visit.root || schema['x-kubernetes-embedded-resource'] === true;
  for (const [name, property] of propertiesOf(schema)) {
    const noDefaults = visit.root && { noDefaults: `in top-level ${name}` };
    const below: Place = isWhole && META.has(name) ? { ...place, insideMeta: true, ...noDefaults } : place;
    checkSchema(property, `${path}.properties[${name}]`, { ...visit, root: false, place: below });
  }
  const others = Array.isArray(schema['items']) ? [...BRANCHES, 'items', ...NAMED] : [...BRANCHES, ...NAMED, 'items'];
  for (const [step, child] of schemasIn(schema, others)) {
    checkSchema(child, path + step, { ...visit, root: false });
  }
  const preserve = 'x-kubernetes-preserve-unknown-fields';
  if (schema[preserve] === false) errors.push(invalid(`${path}.${preserve}`, false, 'must be true or undefined'));
  checkTopology(schema, path, errors);
  checkMapKeys(schema, path, errors);
  checkRuleTexts(schema, path, visit);
  if (errors.length > before) visit.faulty.add(schema);
}

/** Keywords of the nodes below, beside properties and items, in the order in which they are reported. */
const BRANCHES = ['not', 'allOf', 'oneOf', 'anyOf'];
const NAMED = ['definitions', 'dependencies'];

/** Keywords that are refused, and when they count as set: Go tells an empty map from none in some of them. */
const NOT_SUPPORTED: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ['id', (value) => typeof value === 'string' && value !== ''],
  ['additionalItems', isSomething],
  ['patternProperties', isFilled],
  ['definitions', isFilled],
  ['dependencies', isSomething],
  ['$ref', isSomething],
];

function checkKeywords(schema: RawSchema, path: string, { place, errors }: Visit): void {
  const type = typeText(schema);
  if (type !== '' && !SCHEMA_TYPES.includes(type)) {
    errors.push(unsupported(`${path}.type`, type, SCHEMA_TYPES));
  }
  if (isSomething(schema['default']) && place.noDefaults !== undefined) {
    errors.push(forbidden(`${path}.default`, `must not be set ${place.noDefaults}`));
  }
  for (const [key, isSet] of NOT_SUPPORTED) {
    if (isSet(schema[key])) errors.push(forbidden(`${path}.${key}`, `${key} is not supported`));
  }
  if (type === 'null') {
    errors.push(forbidden(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'));
  }
  if (Array.isArray(schema['items']) && schema['items'].length > 0) {
    errors.push(forbidden(`${path}.items`, 'items must be a schema object and not an array'));
  }
  const embedded = 'x-kubernetes-embedded-resource';
  if (place.insideMeta && schema[embedded] === true) {
    errors.push(forbidden(`${path}.${embedded}`, 'must not be used inside of resource meta'));
  }
  if (schema['uniqueItems'] === true) {
    const detail = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push(forbidden(`${path}.uniqueItems`, detail));
  }
}

function checkAdditional(schema: RawSchema, path: string, visit: Visit): void {
  const { place, errors } = visit;
  const additional = schema['additionalProperties'];
  if (!isSomething(additional)) return;
  const field = `${path}.additionalProperties`;
  if (propertiesOf(schema).length > 0 && additional !== true) {
    errors.push(forbidden(field, 'additionalProperties and properties are mutual exclusive'));
  }
  if (!isJsonObject(additional)) return;
  const inside: Place = place.insideMeta
    ? { ...place, noDefaults: 'inside additionalProperties applying to object metadata' }
    : place;
  checkSchema(additional, field, { ...visit, root: false, place: inside });
}

/** List and map types, and the types of the values they stand on. */
function checkTopology(schema: RawSchema, path: string, errors: FieldError[]): void {
  const type = typeText(schema);
  const mustBe = (wanted: string, key: string): void => {
    const detail = `must be ${wanted} if ${key} is specified`;
    errors.push(type === '' ? required(`${path}.type`, detail) : invalid(`${path}.type`, type, detail));
  };
  const oneOf = (key: string, supported: readonly string[]): void => {
    if (!supported.includes(schema[key] as string))
      errors.push(unsupportedInOrder(`${path}.${key}`, schema[key], supported));
  };
  const listType = schema[LIST_TYPE];
  const items = childOf(schema, 'items');
  if (schema[MAP_TYPE] !== undefined) {
    if (type !== 'object') mustBe('object', MAP_TYPE);
    oneOf(MAP_TYPE, ['atomic', 'granular']);
  }
  if (listType !== undefined && type !== 'array') mustBe('array', LIST_TYPE);
  else if (listType === 'set' && items !== undefined) checkSetItems(items, path, errors);
  if (listType !== undefined) oneOf(LIST_TYPE, ['atomic', 'set', 'map']);
  if (keysOf(schema).length > 0 && listType !== 'map') {
    const detail = `must be map if ${LIST_KEYS} is non-empty`;
    const field = `${path}.${LIST_TYPE}`;
    errors.push(listType === undefined ? required(field, detail) : invalid(field, listType, detail));
  }
  if (listType === 'map') checkMapList(schema, path, errors);
}

const keysOf = (schema: RawSchema): readonly string[] =>
  Array.isArray(schema[LIST_KEYS]) ? (schema[LIST_KEYS] as string[]) : [];

function checkSetItems(items: RawSchema, path: string, errors: FieldError[]): void {
  const detail = `must be atomic as item of a list with ${LIST_TYPE}=set`;
  const type = typeText(items);
  if (type === 'array' && items[LIST_TYPE] !== undefined && items[LIST_TYPE] !== 'atomic') {
    errors.push(invalid(`${path}.items.${LIST_TYPE}`, items[LIST_TYPE], detail));
  } else if (type === 'object' && items[MAP_TYPE] !== 'atomic') {
    // Upstream shows the list type here, which an object has none of as a rule.
    errors.push(invalid(`${path}.items.${MAP_TYPE}`, items[LIST_TYPE] ?? null, detail));
  }
}

function checkMapList(schema: RawSchema, path: string, errors: FieldError[]): void {
  const keys = keysOf(schema);
  const field = `${path}.${LIST_KEYS}`;
  if (keys.length === 0) errors.push(required(field, `must not be empty if ${LIST_TYPE} is map`));
  const items = childOf(schema, 'items');
  if (items === undefined) {
    const given = schema['items'];
    errors.push(
      isSomething(given)
        ? invalid(`${path}.items`, given, `must only have a single schema if ${LIST_TYPE} is map`)
        : required(`${path}.items`, `must have a schema if ${LIST_TYPE} is map`),
    );
    return;
  }
  const type = typeText(items);
  if (type !== 'object') {
    errors.push(invalid(`${path}.items.type`, type, `must be object if parent array's ${LIST_TYPE} is map`));
    return;
  }
  const seen = new Set<string>();
  for (const key of keys) {
    const property = propertyOf(items, key);
    if (property === undefined) errors.push(invalid(field, keys, 'entries must all be names of item properties'));
    else if (typeText(property) === 'array' || typeText(property) === 'object') {
      const detail = `must be a scalar type if parent array's ${LIST_TYPE} is map`;
      errors.push(invalid(`${path}.items.properties[${key}].type`, type, detail));
    }
    if (seen.has(key)) errors.push(invalid(field, keys, 'must not contain duplicate entries'));
    seen.add(key);
  }
}

/** Items of sets and keys of maps are always there and never null. */
function checkMapKeys(schema: RawSchema, path: string, errors: FieldError[]): void {
  const listType = schema[LIST_TYPE];
  const items = childOf(schema, 'items');
  if (items === undefined || (listType !== 'set' && listType !== 'map')) return;
  if (items['nullable'] === true) {
    errors.push(forbidden(`${path}.items.nullable`, `cannot be nullable when ${LIST_TYPE} is ${listType}`));
  }
  if (listType !== 'map') return;
  const needed = Array.isArray(items['required']) ? items['required'] : [];
  for (const key of keysOf(schema)) {
    const property = propertyOf(items, key);
    if (property === undefined) continue;
    const field = `${path}.items.properties[${key}]`;
    if (!needed.includes(key) && !isSomething(property['default'])) {
      const detail = `this property is in ${LIST_KEYS}, so it must have a default or be a required property`;
      errors.push(required(`${field}.default`, detail));
    }
    if (property['nullable'] === true) {
      errors.push(forbidden(`${field}.nullable`, `this property is in ${LIST_KEYS}, so it cannot be nullable`));
    }
  }
}

/** The rules of a node as they were sent. */
export const rulesOf = (schema: RawSchema): readonly RawSchema[] => branchesOf(schema, RULES);

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const hasNewline = (text: string): boolean => /[\n\r]/.test(text);

/** The texts around an expression; the expression itself is compiled in `rule-errors`. */
function checkRuleTexts(schema: RawSchema, path: string, { errors, isReadable }: Visit): void {
  let isStructural: boolean | undefined;
  for (const [i, rule] of rulesOf(schema).entries()) {
    const at = `${path}.${RULES}[${i}]`;
    const text = (key: string): string => (typeof rule[key] === 'string' ? (rule[key] as string) : '');
    const message = text('message');
    if (text('rule').trim() === '') errors.push(required(`${at}.rule`, 'rule is not specified'));
    else if (message !== '' && message.trim() === '') {
      errors.push(invalid(`${at}.message`, message, 'must be non-empty if specified'));
    } else if (hasNewline(message.trim())) {
      errors.push(invalid(`${at}.message`, message, 'must not contain line breaks'));
    } else if (hasNewline(text('rule').trim()) && message.trim() === '') {
      errors.push(required(`${at}.message`, 'message must be specified if rule contains line breaks'));
    }
    if (text('messageExpression') !== '' && text('messageExpression').trim() === '') {
      errors.push(required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'));
    }
    const reason = rule['reason'];
    if (isSomething(reason) && !REASONS.includes(String(reason))) {
      errors.push(unsupported(`${at}.reason`, reason, REASONS));
    }
    const fieldPath = text('fieldPath');
    if (fieldPath === '') continue;
    const field = `${at}.fieldPath`;
    if (fieldPath.trim() === '') errors.push(invalid(field, fieldPath, 'must be non-empty if specified'));
    if (hasNewline(fieldPath)) errors.push(invalid(field, fieldPath, 'must not contain line breaks'));
    isStructural ??= isReadable(schema);
    if (isStructural && 'problem' in findFieldPath(schema, fieldPath)) {
      errors.push(invalid(field, fieldPath, 'must be a valid path'));
    }
  }
}
