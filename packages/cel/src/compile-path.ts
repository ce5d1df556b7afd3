/**
 * Paths: names, fields, elements, and choices between them. cel-go evaluates a path as one step. What it begins with costs
 * 1 when the path is a value of its own, and nothing when it is the key of another, a branch of a choice, or looked for with
 * `has`; every step costs 1, a step that may be missing only where it finds something.
 */

import { constantOf, isKey } from './compile-constant.ts';
import type { Code, Frame, NodeCompiler } from './compile-frame.ts';
import { CelCompileError, CelEvaluationError, failureOf, isFailure, noOverload } from './errors.ts';
import { index, isSet, noSuchKey, optionalIndex, select } from './map-access.ts';
import type { Call, Expr, Select } from './syntax.ts';
import type { CelField, CelType } from './types.ts';
import { CelOptional, fromJson, isPlainObject, NONE, runtimeTypeName } from './values.ts';

/** What a path begins with costs this. */
type Charge = 0 | 1;

/** Whether an expression is a path. */
export function isPath(expr: Expr): boolean {
  switch (expr.op) {
    case 'ident':
      return expr.constant === undefined;
    case 'select':
      return expr.qualified === undefined || isPath(expr.qualified);
    case 'call':
      return expr.name === '_[_]' || expr.name === '_[?_]' || expr.name === '_?_:_';
    default:
      return false;
  }
}

/** Compiles a path. */
export function compilePath(compiler: NodeCompiler, expr: Expr, charge: Charge): Code {
  if (expr.op === 'ident') return compiler.name(expr, charge);
  if (expr.op === 'select') {
    return expr.qualified === undefined ? field(compiler, expr, charge) : compiler.name(expr.qualified, charge);
  }
  const call = expr as Call;
  if (call.name === '_?_:_') return choice(compiler, call);
  refuseKey(compiler, call.args[1]!);
  return element(compiler, call, charge);
}

/** What the steps of a path start from. The value of a call is one more thing that is read. */
function origin(compiler: NodeCompiler, expr: Expr, charge: Charge): Code {
  if (isPath(expr)) return compilePath(compiler, expr, charge);
  const code = compiler.compile(expr);
  if (charge === 0) return code;
  return (frame) => {
    const value = code(frame);
    frame.cost += 1;
    return value;
  };
}

/** A path that is part of another expression which is charged for it. */
const uncharged = (compiler: NodeCompiler, expr: Expr): Code =>
  isPath(expr) ? compilePath(compiler, expr, 0) : compiler.compile(expr);

function field(compiler: NodeCompiler, expr: Select, charge: Charge): Code {
  const name = expr.resolved?.property ?? expr.field;
  const lifted = expr.operand.type?.kind === 'optional';
  const nullIsAbsent = expr.resolved?.nullIsAbsent === true;
  if (expr.test) return presence(origin(compiler, expr.operand, 0), name, nullIsAbsent);
  const operand = origin(compiler, expr.operand, charge);
  if (expr.optional || lifted) {
    const wrap = expr.resolved?.type.wrap;
    return optionalStep(operand, () => name, { wrap, nullIsAbsent });
  }
  if (expr.resolved !== undefined) return objectField(operand, expr.resolved, expr.field);
  const wrap = elementWrap(expr.operand.type);
  return (frame) => {
    const target = operand(frame);
    if (isFailure(target)) return target;
    if (target instanceof CelOptional) return stepInto(frame, target, name, { wrap });
    frame.cost += 1;
    try {
      const value = select(target, name);
      return wrap === undefined ? value : wrap(value);
    } catch (error) {
      return failureOf(error);
    }
  };
}

/** `has`: the last step costs what any step does. */
function presence(operand: Code, name: string, nullIsAbsent: boolean): Code {
  return (frame) => {
    const target = operand(frame);
    if (isFailure(target)) return target;
    try {
      const found = isSet(target, name) && !(nullIsAbsent && isPlainObject(target) && target[name] === null);
      if (found || !(target instanceof CelOptional)) frame.cost += 1;
      return found;
    } catch (error) {
      frame.cost += 1;
      return failureOf(error);
    }
  };
}

/** A declared field of an object: the hottest path there is. */
function objectField(operand: Code, { property, type, nullIsAbsent }: CelField, name: string): Code {
  const { wrap } = type;
  const risky = property in Object.prototype;
  return (frame) => {
    const target = operand(frame);
    if (isFailure(target)) return target;
    frame.cost += 1;
    try {
      const value = !isPlainObject(target) || risky ? select(target, property) : target[property];
      if (value === undefined || (value === null && nullIsAbsent)) return noSuchKey(name);
      if (wrap !== undefined) return wrap(value);
      return typeof value === 'number' ? fromJson(value) : value;
    } catch (error) {
      return failureOf(error);
    }
  };
}

interface Step {
  /** What makes a CEL value of what is found. */
  readonly wrap: ((raw: unknown) => unknown) | undefined;
  readonly nullIsAbsent?: boolean;
}

/** A step that gives an optional: an error or nothing found costs nothing. */
function optionalStep(operand: Code, key: Code, step: Step): Code {
  return (frame) => {
    const target = operand(frame);
    if (isFailure(target)) return target;
    const inner = target instanceof CelOptional ? target.value : target;
    if (inner === undefined) return NONE;
    const at = key(frame);
    return isFailure(at) ? at : stepInto(frame, inner, at, step);
  };
}

/** A step that may find nothing. Gives an optional, or a failure. */
function stepInto(frame: Frame, target: unknown, key: unknown, { wrap, nullIsAbsent }: Step): unknown {
  if (!isKey(key)) return badKey(key);
  try {
    const found = optionalIndex(target, key);
    if (found.value === undefined || (found.value === null && nullIsAbsent === true)) return NONE;
    frame.cost += 1;
    return wrap === undefined ? found : new CelOptional(wrap(found.value));
  } catch (error) {
    return failureOf(error);
  }
}

function element(compiler: NodeCompiler, expr: Call, charge: Charge): Code {
  const { type } = expr.args[0]!;
  const list = origin(compiler, expr.args[0]!, charge);
  const key = uncharged(compiler, expr.args[1]!);
  const wrap = elementWrap(type?.kind === 'optional' ? type.params[0] : type);
  if (type?.kind === 'optional' || expr.name === '_[?_]') return optionalStep(list, key, { wrap });
  return (frame) => {
    const value = list(frame);
    if (isFailure(value)) return value;
    if (value instanceof CelOptional && value.value === undefined) return NONE;
    const at = key(frame);
    if (value instanceof CelOptional) return isFailure(at) ? at : stepInto(frame, value, at, { wrap });
    frame.cost += 1;
    if (isFailure(at)) return at;
    if (!isKey(at)) return badKey(at);
    try {
      const found = index(value, at);
      return wrap === undefined ? found : wrap(found);
    } catch (error) {
      return failureOf(error);
    }
  };
}

/** What makes a CEL value of an item of a list, or of a value of a map. */
export const elementWrap = (type: CelType | undefined): ((raw: unknown) => unknown) | undefined =>
  type?.kind === 'list' || type?.kind === 'map' ? type.params.at(-1)?.wrap : undefined;

function choice(compiler: NodeCompiler, expr: Call): Code {
  const test = compiler.compile(expr.args[0]!);
  const yes = uncharged(compiler, expr.args[1]!);
  const no = uncharged(compiler, expr.args[2]!);
  return (frame) => {
    const chosen = test(frame);
    if (chosen === true) return yes(frame);
    if (chosen === false) return no(frame);
    return isFailure(chosen) ? chosen : noOverload();
  };
}

const badKey = (key: unknown): CelEvaluationError =>
  new CelEvaluationError(`invalid qualifier type: ${runtimeTypeName(key)}`);

/** A constant that nothing can be found by, where the types say nothing. Throws CelCompileError. */
function refuseKey(compiler: NodeCompiler, key: Expr): void {
  if (!compiler.environment.literalChecks) return;
  const known = constantOf(compiler.environment, key);
  if (known === undefined || isKey(known.value)) return;
  throw new CelCompileError('program', badKey(known.value).message);
}
