/** Short constructors of field errors with upstream's wording, and the small checks many kinds share. */
import type { CelCompileError } from '../../../cel/cel.ts';
import { deepEqual } from '../../../meta/deep-equal.ts';
import { checkLabelName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Pace, Steps } from '../../../meta/steps.ts';
import { isObject, type JsonObject, objectsAt, textAt, valueAt } from '../read-value.ts';

/** Kinds that may hold very much are judged in steps. */
export type Validate = (object: JsonObject, old?: JsonObject) => readonly FieldError[] | Steps<readonly FieldError[]>;

/** Where one judgement collects what it finds, and how it lets others in. */
export interface Judging {
  readonly errors: FieldError[];
  readonly pace: Pace;
}

/** The stops of a part of the work; of little work a list of none or one, which costs less than a generator. */
export type Stops = Iterable<undefined, void>;
const NO_STOP: Stops = [];
const ONE_STOP: Stops = [undefined];
const FEW = 32;

/** Judges item by item. What is found is added one by one: as arguments, some hundred thousand would not fit the stack. */
export function judgeEach<T>(
  judging: Judging,
  items: readonly T[],
  judge: (item: T, index: number) => readonly FieldError[],
): Stops {
  if (items.length > FEW) return judgeMany(judging, items, judge);
  for (let i = 0; i < items.length; i++) for (const error of judge(items[i]!, i)) judging.errors.push(error);
  return judging.pace.due(items.length) ? ONE_STOP : NO_STOP;
}

function* judgeMany<T>(
  { errors, pace }: Judging,
  items: readonly T[],
  judge: (item: T, index: number) => readonly FieldError[],
): Steps<void> {
  for (let i = 0; i < items.length; i++) {
    for (const error of judge(items[i]!, i)) errors.push(error);
    if (pace.due()) yield;
  }
}

/** Adds one by one: as arguments of `push`, some hundred thousand would not fit the stack. */
export function addAll(errors: FieldError[], more: Iterable<FieldError>): void {
  for (const error of more) errors.push(error);
}

/** Validators of one group's resources, by plural name. */
export type GroupValidators = Readonly<Record<string, Validate>>;

export const required = (field: string, detail = ''): FieldError => ({ type: 'FieldValueRequired', field, detail });
export const forbidden = (field: string, detail: string): FieldError => ({
  type: 'FieldValueForbidden',
  field,
  detail,
});
export const duplicate = (field: string, value: unknown): FieldError => ({ type: 'FieldValueDuplicate', field, value });
export const absent = (field: string, value: unknown): FieldError => ({ type: 'FieldValueNotFound', field, value });
export const tooLong = (field: string, max: number): FieldError => ({
  type: 'FieldValueTooLong',
  field,
  detail: `may not be more than ${max} bytes`,
});
export const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  type: 'FieldValueInvalid',
  field,
  value,
  detail,
});
export const tooMany = (field: string, count: number, max: number): FieldError => ({
  type: 'FieldValueTooMany',
  field,
  value: count,
  detail: `must have at most ${max} items`,
});

/** An expression that does not compile. What only fails as a program is an internal error, as upstream has it. */
export const expressionFault = (field: string, expression: string, error: CelCompileError): FieldError =>
  error.reason === 'program'
    ? { type: 'InternalError', field, detail: error.message }
    : invalid(field, expression, error.message);

/** `supported values: "A", "B"`, sorted as upstream sorts them. */
export const unsupported = (field: string, value: unknown, supported: readonly string[]): FieldError => ({
  type: 'FieldValueNotSupported',
  field,
  value,
  detail: `supported values: ${[...supported]
    .sort()
    .map((one) => JSON.stringify(one))
    .join(', ')}`,
});

export const IMMUTABLE = 'field is immutable';

/** An error when a field that must stay has changed. */
export function immutable(at: { object: JsonObject; old: JsonObject; path: string; detail?: string }): FieldError[] {
  const steps = at.path.split('.');
  const now = valueAt(at.object, ...steps);
  return deepEqual(now, valueAt(at.old, ...steps)) ? [] : [invalid(at.path, now, at.detail ?? IMMUTABLE)];
}

/** An error when a text field is set to something outside a list. */
export function oneOf(
  object: unknown,
  field: { name: string; path: string },
  supported: readonly string[],
): FieldError[] {
  const value = valueAt(object, field.name);
  if (value === undefined || value === null || (typeof value === 'string' && supported.includes(value))) return [];
  return [unsupported(field.path, value, supported)];
}

/** An error for a number below zero. */
export function nonNegative(object: unknown, path: string): FieldError[] {
  const value = valueAt(object, ...path.split('.'));
  return typeof value === 'number' && value < 0 ? [invalid(path, value, 'must be greater than or equal to 0')] : [];
}

export const isPort = (port: unknown): boolean =>
  typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535;

export const PORT_RANGE = 'must be between 1 and 65535, inclusive';

/** Checks the `name` of each list item: present, a DNS label, used once. */
export function uniqueNames(judging: Judging, items: readonly JsonObject[], path: string): Stops {
  const seen = new Set<string>();
  return judgeEach(judging, items, (item, i) => {
    const name = textAt(item, 'name');
    if (name === '') return [required(`${path}[${i}].name`)];
    if (seen.has(name)) return [duplicate(`${path}[${i}].name`, name)];
    seen.add(name);
    return checkLabelName(name).map((detail) => invalid(`${path}[${i}].name`, name, detail));
  });
}

/** A workload's selector must be there, and must select its own template. */
export function validateSelector(object: JsonObject): FieldError[] {
  const selector = valueAt(object, 'spec', 'selector');
  if (!isObject(selector)) return [required('spec.selector')];
  const matchLabels = valueAt(selector, 'matchLabels');
  const wanted = isObject(matchLabels) ? Object.entries(matchLabels) : [];
  const expressions = objectsAt(selector, 'matchExpressions');
  if (wanted.length === 0 && expressions.length === 0) {
    return [invalid('spec.selector', selector, 'empty selector is invalid for deployment')];
  }
  const labels = valueAt(object, 'spec', 'template', 'metadata', 'labels');
  const matches = wanted.every(([key, value]) => valueAt(labels, key) === value);
  return matches
    ? []
    : [invalid('spec.template.metadata.labels', labels ?? {}, '`selector` does not match template `labels`')];
}
