/** Optional values. */
import { type Overload, overload } from '../declarations.ts';
import { fail } from '../errors.ts';
import { stringOf } from '../to-string.ts';
import { CelDouble, CelMap, CelOptional, CelUint, celOptional, fromJson, isPlainObject, NONE } from '../values.ts';

function isZero(value: unknown): boolean {
  if (value === null || value === false || value === 0 || value === '') return true;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  if (value instanceof CelDouble) return value.value === 0;
  if (value instanceof CelUint) return value.value === 0n;
  if (value instanceof CelMap) return value.entries.size === 0;
  return isPlainObject(value) && Object.keys(value).length === 0;
}

const unused = (): never => fail('no such overload');

export const OPTIONALS: readonly Overload[] = [
  overload('optional.of', '(A): optional(A)', (value: unknown) => new CelOptional(value)),
  overload('optional.none', '(): optional(A)', () => NONE),
  overload('optional.ofNonZeroValue', '(A): optional(A)', (value: unknown) =>
    isZero(value) ? NONE : new CelOptional(value),
  ),
  overload('hasValue', 'optional(A).(): bool', (optional: CelOptional) => optional.value !== undefined),
  overload('value', 'optional(A).(): A', (optional: CelOptional) => {
    if (optional.value === undefined) fail('optional.none() dereference');
    return optional.value;
  }),
  // Both are compiled apart: the alternative is lazy.
  overload('or', 'optional(A).(optional(A)): optional(A)', unused),
  overload('orValue', 'optional(A).(A): A', unused),
  overload('optional.unwrap', '(list(optional(A))): list(A)', unwrap),
  overload('unwrapOpt', 'list(optional(A)).(): list(A)', unwrap),
  overload('first', 'list(A).(): optional(A)', (list: readonly unknown[]) => celOptional(fromJson(list[0]))),
  overload('last', 'list(A).(): optional(A)', (list: readonly unknown[]) => celOptional(fromJson(list.at(-1)))),
];

function unwrap(list: readonly unknown[]): unknown[] {
  const kept: unknown[] = [];
  for (const item of list) {
    if (!(item instanceof CelOptional)) return fail(`value ${stringOf(item)} is not optional`);
    if (item.value !== undefined) kept.push(item.value);
  }
  return kept;
}
