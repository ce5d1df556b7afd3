/** The walk of a validation and the wording of what it finds; the parts of `validate.ts` share it. */
import { goJson, goQuote, isInt64, sortMembers } from '../meta/go-text.ts';
import type { FieldError, FieldErrorType } from '../meta/status.ts';
import { pathText } from './prune.ts';

/** The state of one validation: where it stands and what it found. */
export interface Walk {
  readonly keys: (string | number)[];
  depth: number;
  errors: FieldError[];
  /** Says that the value here is what it was before the update, so that nothing at or below it is looked at. */
  readonly unchanged?: (walk: Walk, value: unknown) => boolean;
}

export type Check = (value: unknown, walk: Walk) => void;

export const here = (walk: Walk): string => pathText(walk.keys, walk.depth);

export function fail(walk: Walk, type: FieldErrorType, value: unknown, detail: string): void {
  walk.errors.push({ type, field: here(walk), value, detail });
}
export const invalid = (walk: Walk, value: unknown, what: string): void =>
  fail(walk, 'FieldValueInvalid', value, `${here(walk)} in body ${what}`);
export const anonymous = (walk: Walk, detail: string): void => {
  walk.errors.push({ type: 'FieldValueInvalid', field: '<nil>', value: '', detail });
};

/** JSON type names as the messages use them. */
export function typeName(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'boolean';
    case 'number':
      return isInt64(value as number) ? 'integer' : 'number';
    case 'bigint':
      return 'integer';
    default:
      return value === null ? 'null' : Array.isArray(value) ? 'array' : 'object';
  }
}

export const typeText = (walk: Walk, wanted: string, found: string): void =>
  fail(walk, 'FieldValueTypeInvalid', found, `${here(walk)} in body must be of type ${wanted}: ${goQuote(found)}`);

export function tooMany(walk: Walk, count: number, limit: number): void {
  fail(walk, 'FieldValueTooMany', count, `must have at most ${limit} ${limit === 1 ? 'item' : 'items'}`);
}

export function unsupported(walk: Walk, value: unknown, allowed: readonly unknown[]): void {
  const listed = allowed.map((v) => goQuote(typeof v === 'string' ? v : goJson(sortMembers(v))));
  fail(walk, 'FieldValueNotSupported', value, `supported values: ${listed.join(', ')}`);
}
