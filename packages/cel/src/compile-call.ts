/**
 * Calls and operators as closures. A call whose argument fails fails with it, and costs what it would have; so does one that
 * no function takes.
 */

import { constantOf, isConstantSet } from './compile-constant.ts';
import { type Code, type Frame, type NodeCompiler, spend } from './compile-frame.ts';
import { type CostModel, ONE } from './cost-models.ts';
import type { Implementation, Overload } from './declarations.ts';
import { equals } from './equality.ts';
import { CelCompileError, type CelEvaluationError, failureOf, isFailure, noOverload } from './errors.ts';
import { compileTest } from './libraries/regex.ts';
import { type Call, children } from './syntax.ts';
import { type CelType, isDynamic } from './types.ts';
import { CelOpaque, CelOptional, fromJson, isPlainObject, matchesType, NONE, noFit } from './values.ts';

type ListType = NonNullable<CelType['listType']>;

/** `a == b` for such lists. */
function equalByListType(listType: ListType, a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return equals(a, b);
  if (a.length !== b.length) return false;
  const byKey = new Map(b.map((item) => [elementKey(listType, item), item]));
  return a.every((item) => {
    const key = elementKey(listType, item);
    return byKey.has(key) && equals(fromJson(item), fromJson(byKey.get(key)));
  });
}

/** `a + b`: elements of the right replace those of the left in place, new ones follow. */
function mergeByListType(listType: ListType, a: unknown, b: unknown): unknown[] {
  if (!Array.isArray(a) || !Array.isArray(b)) throw noOverload();
  const merged = new Map<string, unknown>();
  for (const item of [...a, ...b]) merged.set(elementKey(listType, item), item);
  return [...merged.values()];
}

function elementKey({ kind, keys }: ListType, item: unknown): string {
  if (kind === 'set' || !isPlainObject(item)) return JSON.stringify(item) ?? String(item);
  return JSON.stringify(keys.map((key) => item[key] ?? null));
}

/** Compiles a call that is no path. */
export function compileCall(compiler: NodeCompiler, expr: Call): Code {
  const { name } = expr;
  const args = children(expr).map((arg) => compiler.compile(arg));
  const [a, b] = args;
  switch (name) {
    case '_&&_':
      return shortCircuit(a!, b!, false);
    case '_||_':
      return shortCircuit(a!, b!, true);
    case '_==_':
    case '_!=_':
      return equality(expr, a!, b!);
    case 'orValue':
    case 'or':
      return orElse(a!, b!, name);
    case 'matches':
    case 'find':
    case 'findAll':
      return hasKnownPattern(compiler, expr)
        ? invoke(expr, args, true, noOverload)
        : invoke(expr, args, args.length > 2);
    default: {
      const folded = constantOf(compiler.environment, expr);
      if (folded !== undefined) return () => folded.value;
      if (isConstantSet(compiler.environment, expr)) return membership(a!, b!, expr.overloads![0]!.run);
      return invoke(expr, args, args.length > 2 || isOpen(expr));
    }
  }
}

/** Whether the pattern is a literal: it is read beforehand. Throws CelCompileError when it is no pattern. */
function hasKnownPattern(compiler: NodeCompiler, { target, args }: Call): boolean {
  const pattern = target === undefined ? args[1] : args[0];
  const known = pattern === undefined ? undefined : constantOf(compiler.environment, pattern);
  if (known === undefined || typeof known.value !== 'string') return false;
  try {
    compileTest(known.value);
  } catch (error) {
    if (compiler.environment.literalChecks) throw new CelCompileError('program', failureOf(error).message);
  }
  return true;
}

/**
 * `&&` (decided by false) and `||` (by true) are true to their tables whichever side fails: an error on one side does not
 * matter when the other decides.
 */
function shortCircuit(left: Code, right: Code, decisive: boolean): Code {
  return (frame) => {
    const first = left(frame);
    if (first === decisive) return decisive;
    const second = right(frame);
    if (second === decisive) return decisive;
    if (isFailure(first)) return first;
    if (typeof first !== 'boolean') return noOverload();
    return typeof second === 'boolean' || isFailure(second) ? second : noOverload();
  };
}

function equality(expr: Call, left: Code, right: Code): Code {
  const model = expr.overloads![0]!.cost!;
  const negate = expr.name === '_!=_';
  const listType = expr.args[0]!.type?.listType ?? expr.args[1]!.type?.listType;
  const test = listType === undefined ? equals : (a: unknown, b: unknown) => equalByListType(listType, a, b);
  return (frame) => {
    const a = left(frame);
    const b = right(frame);
    if (typeof a !== 'object' && typeof a !== 'string') frame.cost += 1;
    else spend(frame, (negate || !(a instanceof CelOpaque) ? model : ONE).run([a, b], undefined));
    if (isFailure(a)) return a;
    return isFailure(b) ? b : test(a, b) !== negate;
  };
}

function membership(item: Code, list: Code, test: Implementation): Code {
  return (frame) => {
    const value = item(frame);
    return isFailure(value) ? value : test(value, list(frame));
  };
}

/** The alternative is evaluated only when it is needed. */
function orElse(optional: Code, alternative: Code, name: string): Code {
  return (frame) => {
    const value = optional(frame);
    if (!(value instanceof CelOptional)) return isFailure(value) ? value : noOverload();
    if (value !== NONE && value.value !== undefined) return name === 'or' ? value : value.value;
    return alternative(frame);
  };
}

/** Whether the static types leave nothing to find out at run time. */
const isStatic = (expr: Call, overloads: readonly Overload[]): boolean =>
  overloads[0]!.unguarded === true ||
  (overloads.length === 1 && children(expr).every((arg, i) => isSettled(overloads[0]!.args[i]!, arg.type)));

function isSettled(declared: CelType, actual: CelType | undefined): boolean {
  if (isDynamic(declared) || declared.kind === 'param') return true;
  if (actual === undefined || actual.nullable === true) return false;
  if (isDynamic(actual) || actual.kind === 'null' || actual.kind === 'wrapper') return false;
  const looksInside = declared.kind === 'list' || declared.kind === 'map';
  return !looksInside || declared.params.every((inner, i) => isSettled(inner, actual.params[i]));
}

/** Lists of type set and map are joined without doubles. */
function implementation(expr: Call, overload: Overload): Implementation {
  const listType = expr.name === '_+_' ? expr.args[0]!.type?.listType : undefined;
  return listType === undefined ? overload.run : (a, b) => mergeByListType(listType, a, b);
}

/** What a call costs: while several functions may be meant, upstream goes by the name alone. */
function modelOf(overloads: readonly Overload[]): CostModel | undefined {
  const model = overloads[0]?.cost;
  return overloads.length === 1 || model?.byName === true ? model : undefined;
}

/** Pays for a call whose cost the arguments decide; the rest is paid by `payAfter`. */
function payBefore(frame: Frame, model: CostModel | undefined, args: readonly unknown[]): void {
  if (model === undefined) frame.cost += 1;
  else if (model.after === undefined) spend(frame, model.run(args, undefined));
}

function payAfter(frame: Frame, model: CostModel | undefined, args: readonly unknown[], result: unknown): void {
  if (model?.after === true) spend(frame, model.run(args, result));
}

/** A failed call costs what it would have. */
function failedCall(
  frame: Frame,
  model: CostModel | undefined,
  args: readonly unknown[],
  failure: CelEvaluationError,
): CelEvaluationError {
  payBefore(frame, model, args);
  payAfter(frame, model, args, failure);
  return failure;
}

/**
 * A call. `inOrder` (of more than two arguments, or open) stops at the first that fails, and is charged only when that was the
 * last one.
 */
function invoke(expr: Call, args: readonly Code[], inOrder: boolean, refusal: typeof noFit = noFit): Code {
  const overloads = expr.overloads!;
  const model = modelOf(overloads);
  const run = isStatic(expr, overloads) ? implementation(expr, overloads[0]!) : dispatch(expr, refusal);
  const [a, b] = args;
  if (args.length === 1) {
    return (frame) => {
      const x = a!(frame);
      const values = model === undefined ? NOTHING : [x];
      if (isFailure(x)) return failedCall(frame, model, values, x);
      payBefore(frame, model, values);
      const result = attempt(run, x);
      payAfter(frame, model, values, result);
      return result;
    };
  }
  if (args.length === 2 && !inOrder) {
    return (frame) => {
      const x = a!(frame);
      const y = b!(frame);
      const values = model === undefined ? NOTHING : [x, y];
      if (isFailure(x)) return failedCall(frame, model, values, x);
      if (isFailure(y)) return failedCall(frame, model, values, y);
      payBefore(frame, model, values);
      const result = attempt(run, x, y);
      payAfter(frame, model, values, result);
      return result;
    };
  }
  return (frame) => {
    const values: unknown[] = new Array(args.length);
    for (let i = 0; i < args.length; i++) {
      const value = args[i]!(frame);
      values[i] = value;
      if (isFailure(value)) return i === args.length - 1 ? failedCall(frame, model, values, value) : value;
    }
    payBefore(frame, model, values);
    const result = attempt(run, ...values);
    payAfter(frame, model, values, result);
    return result;
  };
}

const NOTHING: readonly unknown[] = [];

function attempt(run: Implementation, ...values: readonly unknown[]): unknown {
  try {
    return run(...values);
  } catch (error) {
    return failureOf(error);
  }
}

/** Whether a function, no operator, is only found when the values are there: its arguments are looked at in order then. */
const isOpen = ({ name, overloads }: Call): boolean => overloads!.length > 1 && !/^[_@!-]/.test(name);

/** Picks the overload by the values. */
function dispatch(expr: Call, refusal: typeof noFit): Implementation {
  const overloads = expr.overloads!;
  const implementations = overloads.map((overload) => implementation(expr, overload));
  return (...values: readonly unknown[]) => {
    const chosen = overloads.findIndex((overload) => fits(overload, values));
    return chosen === -1 ? refusal(expr.name, values) : implementations[chosen]!(...values);
  };
}

function fits({ args }: Overload, values: readonly unknown[]): boolean {
  for (let i = 0; i < values.length; i++) if (!matchesType(args[i]!, values[i])) return false;
  return true;
}
