/**
 * What cel-go works out when it makes the program: lists and maps of literals, conversions of them, and membership in an
 * empty list. It costs nothing when the program runs.
 */
import type { Environment } from './declarations.ts';
import { CelCompileError, failureOf } from './errors.ts';
import { mapReplace } from './map-access.ts';
import type { Call, Expr, MapLiteral } from './syntax.ts';
import { CelDouble, CelMap, CelUint, matchesType, noFit } from './values.ts';

const CONVERSIONS = new Set('bool bytes double duration dyn int string timestamp type uint'.split(' '));

interface Constant {
  readonly value: unknown;
}

/**
 * The value of a constant expression, undefined for any other.
 * @throws CelCompileError for a conversion of a literal that fails: it is refused with the whole expression
 */
export function constantOf(environment: Environment, expr: Expr): Constant | undefined {
  switch (expr.op) {
    case 'literal':
      return expr;
    case 'ident':
      return expr.constant;
    case 'select':
      return expr.qualified?.constant;
    case 'list': {
      const list = expr.items.map(({ value, optional }) => (optional ? undefined : constantOf(environment, value)));
      return list.every((item) => item !== undefined) ? { value: list.map(({ value }) => value) } : undefined;
    }
    case 'map':
      return constantMap(environment, expr);
    case 'call':
      return constantCall(environment, expr);
    default:
      return undefined;
  }
}

function constantMap(environment: Environment, expr: MapLiteral): Constant | undefined {
  const map = new CelMap();
  for (const entry of expr.entries) {
    const key = entry.optional ? undefined : constantOf(environment, entry.key);
    const value = key === undefined ? undefined : constantOf(environment, entry.value);
    if (key === undefined || value === undefined) return undefined;
    mapReplace(map, key.value, value.value);
  }
  return { value: map };
}

function constantCall(environment: Environment, expr: Call): Constant | undefined {
  const { name, target, args } = expr;
  if (target !== undefined) return undefined;
  if (name === '@in') {
    const list = expr.overloads!.length === 1 ? constantOf(environment, args[1]!)?.value : undefined;
    return Array.isArray(list) && list.length === 0 ? { value: false } : undefined;
  }
  if (!CONVERSIONS.has(name) || args.length !== 1) return undefined;
  const argument = constantOf(environment, args[0]!);
  if (argument === undefined) return undefined;
  const overload = expr.overloads!.find((entry) => matchesType(entry.args[0]!, argument.value));
  try {
    if (overload === undefined) throw noFit(name, [argument.value]);
    return { value: overload.run(argument.value) };
  } catch (error) {
    if (!environment.literalChecks) return undefined;
    throw new CelCompileError('program', failureOf(error).message);
  }
}

/** Whether membership in a list is looked up in a set that is made beforehand, for nothing but the cost of the item. */
export function isConstantSet(environment: Environment, expr: Call): boolean {
  if (expr.name !== '@in' || expr.overloads!.length !== 1) return false;
  const list = constantOf(environment, expr.args[1]!)?.value;
  return Array.isArray(list) && list.every(isKey);
}

/** Whether anything can be found by a value. */
export const isKey = (value: unknown): boolean =>
  (typeof value !== 'object' && value !== undefined) || value instanceof CelDouble || value instanceof CelUint;
