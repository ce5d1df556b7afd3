/** Short constructors of field errors with upstream's wording, and the small checks many kinds share. */
import { deepEqual } from '../meta/deep-equal.ts';
import { checkLabelName, checkLabelValue, checkQualifiedName } from '../meta/name-rules.ts';
import type { FieldError } from '../meta/status.ts';
import { type JsonObject, textAt, valueAt } from '../types/read-value.ts';

/** What is wrong with an object; `old` is what it was before an update. */
export type Validate = (object: JsonObject, old?: JsonObject) => readonly FieldError[];

/**
 * Mistakes after which no more are looked for in what is left of a list: an answer tells a thousand, and an object of
 * 3 MiB may hold more than a million.
 */
const MOST_FOUND = 100_000;

type Check<T> = (item: T, index: number) => readonly FieldError[];

/** Validates item by item. What is found is added one by one: as arguments, some hundred thousand would not fit the stack. */
export function validateEach<T>(errors: FieldError[], items: readonly T[], validateOne: Check<T>): void {
  for (let i = 0; i < items.length && errors.length < MOST_FOUND; i++) addAll(errors, validateOne(items[i]!, i));
}

/** Validates items that hold lists of their own: `validateOne` adds to the same errors. */
export function validateNested<T>(
  errors: readonly FieldError[],
  items: readonly T[],
  validateOne: (item: T, index: number) => void,
): void {
  for (let i = 0; i < items.length && errors.length < MOST_FOUND; i++) validateOne(items[i]!, i);
}

/** The names of a map, sorted. */
export const sortedKeys = (map: JsonObject): string[] => Object.keys(map).sort();

/** Adds one by one: as arguments of `push`, some hundred thousand would not fit the stack. */
export function addAll(errors: FieldError[], more: Iterable<FieldError>): void {
  for (const error of more) errors.push(error);
}

export const required = (field: string, detail = ''): FieldError => ({ type: 'FieldValueRequired', field, detail });
export function forbidden(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, detail };
}
export const duplicate = (field: string, value: unknown): FieldError => ({ type: 'FieldValueDuplicate', field, value });
export const absent = (field: string, value: unknown): FieldError => ({ type: 'FieldValueNotFound', field, value });
export function tooLong(field: string, max: number): FieldError {
  return { type: 'FieldValueTooLong', field, detail: `may not be more than ${max} bytes` };
}
export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, value, detail };
}
/** What a check of names says of one value. */
export const invalidEach = (field: string, value: unknown, details: readonly string[]): FieldError[] =>
  details.map((detail) => invalid(field, value, detail));
/** A text that has to be there, and what a check says of it. */
export const requiredText = (field: string, text: string, check: (text: string) => readonly string[]): FieldError[] =>
  text === '' ? [required(field)] : invalidEach(field, text, check(text));
export function tooMany(field: string, count: number, max: number): FieldError {
  return { type: 'FieldValueTooMany', field, value: count, detail: `must have at most ${max} items` };
}

/** `supported values: "A", "B"`, sorted as upstream sorts its sets. */
export const unsupported = (field: string, value: unknown, supported: readonly string[]): FieldError =>
  unsupportedInOrder(field, value, [...supported].sort());

/** The same in the order given, as upstream has lists. */
export function unsupportedInOrder(field: string, value: unknown, supported: readonly string[]): FieldError {
  const detail = `supported values: ${supported.map((one) => JSON.stringify(one)).join(', ')}`;
  return { type: 'FieldValueNotSupported', field, value, detail };
}

export const IMMUTABLE = 'field is immutable';

interface Kept {
  readonly object: JsonObject;
  readonly old: JsonObject;
  readonly path: string;
  readonly detail?: string;
}

/** An error when a text or number that must stay has changed. */
export function immutable({ object, old, path, detail = IMMUTABLE }: Kept): FieldError[] {
  const steps = path.split('.');
  const now = valueAt(object, ...steps);
  return deepEqual(now, valueAt(old, ...steps)) ? [] : [invalid(path, now, detail)];
}

/** An error when a text field is set to something outside a list. */
export function oneOf(object: unknown, at: { name: string; path: string }, supported: readonly string[]): FieldError[] {
  const value = valueAt(object, at.name) ?? undefined;
  const isOne = value === undefined || (typeof value === 'string' && supported.includes(value));
  return isOne ? [] : [unsupported(at.path, value, supported)];
}

/** An error for a number below zero; it is reported at `at`. */
export function nonNegative(object: unknown, path: string, at = path): FieldError[] {
  const value = valueAt(object, ...path.split('.'));
  return typeof value === 'number' && value < 0 ? [invalid(at, value, 'must be greater than or equal to 0')] : [];
}

export const isPort = (port: unknown): boolean =>
  typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535;

export const PORT_RANGE = 'must be between 1 and 65535, inclusive';

/** Checks the `name` of each list item: present, a DNS label, used once. */
export function uniqueNames(errors: FieldError[], items: readonly JsonObject[], path: string): void {
  const seen = new Set<string>();
  validateEach(errors, items, (item, i) => {
    const name = textAt(item, 'name');
    if (name === '') return [required(`${path}[${i}].name`)];
    if (seen.has(name)) return [duplicate(`${path}[${i}].name`, name)];
    seen.add(name);
    return invalidEach(`${path}[${i}].name`, name, checkLabelName(name));
  });
}

/** Validates labels by which something is selected: a key or a value that is none is reported at the whole. */
export const validateLabels = (errors: FieldError[], labels: JsonObject, at: string): void =>
  validateEach(errors, Object.keys(labels), (key) => [
    ...invalidEach(at, key, checkQualifiedName(key)),
    ...invalidEach(at, labels[key], checkLabelValue(String(labels[key]))),
  ]);
