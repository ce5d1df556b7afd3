/** Calls and operators as closures. */
import type { Code, Compiler, Frame } from './compile.ts';
import { constantOf, spend } from './compile.ts';
import { type CostModel, constant } from './cost-models.ts';
import type { Implementation, Overload } from './declarations.ts';
import { equals } from './equality.ts';
import { CelCompileError, CelEvaluationError, noOverload } from './errors.ts';
import { compileRegex } from './libraries/regex-cache.ts';
import { equalByListType, mergeByListType } from './list-types.ts';
import { index, optionalIndex, stepInOptional } from './map-access.ts';
import type { Call, Expr } from './syntax.ts';
import { type CelType, isDynamic } from './types.ts';
import { CelMap, CelOptional, matchesType, NONE, runtimeTypeName } from './values.ts';

export function compileCall(compiler: Compiler, expr: Call): Code {
  const { name } = expr;
  const args = (expr.target === undefined ? expr.args : [expr.target, ...expr.args]).map((arg) =>
    compiler.compile(arg),
  );
  const [a, b, c] = args;
  switch (name) {
    case '_&&_':
      return shortCircuit(a!, b!, false);
    case '_||_':
      return shortCircuit(a!, b!, true);
    case '_?_:_':
      return conditional(a!, b!, c!);
    case '!_':
      return not(a!);
    case '_==_':
    case '_!=_':
      return equality(expr, a!, b!, name === '_!=_');
    case '_[_]':
      refuseQualifier(compiler, expr.args[1]!);
      return element(expr.args[0]!, a!, { key: b!, named: expr.args[1]!.op === 'ident' });
    case '_[?_]':
      refuseQualifier(compiler, expr.args[1]!);
      return optionalElement(expr.args[0]!, a!, b!);
    case 'orValue':
    case 'or':
      return orElse(a!, b!, name);
    case 'matches':
    case 'find':
    case 'findAll':
      refusePattern(compiler, expr);
      return dispatchOrDirect(expr, args);
    default:
      if (!isFolded(expr)) return dispatchOrDirect(expr, args);
      return knownToWork(compiler, expr, dispatchOrDirect(free(expr), args));
  }
}

const CONVERSIONS = new Set(['bool', 'bytes', 'double', 'duration', 'dyn', 'int', 'string', 'timestamp', 'uint']);
const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null || !Array.isArray(value);

/** Calls that cel-go works out beforehand: conversions of literals, and membership in a list of them. */
function isFolded({ name, target, args }: Call): boolean {
  if (target !== undefined) return false;
  if (CONVERSIONS.has(name)) return args.length === 1 && isConstant(args[0]!);
  const list = name === '@in' ? constantOf(args[1]!)?.value : undefined;
  return Array.isArray(list) && list.every(isScalar);
}

/** A literal, or a conversion of one. */
const isConstant = (expr: Expr): boolean =>
  constantOf(expr) !== undefined || (expr.op === 'call' && CONVERSIONS.has(expr.name) && isFolded(expr));

/** A conversion of a literal that fails is refused with the whole expression. Throws CelCompileError. */
function knownToWork(compiler: Compiler, { name }: Call, code: Code): Code {
  if (!compiler.environment.literalChecks || !CONVERSIONS.has(name)) return code;
  try {
    code({ values: [], cost: 0, limit: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw new CelCompileError('program', evaluationError(error).message);
  }
  return code;
}

/** A literal pattern that is none. Throws CelCompileError. */
function refusePattern(compiler: Compiler, { target, args }: Call): void {
  const pattern = target === undefined ? args[1] : args[0];
  if (!compiler.environment.literalChecks || pattern?.op !== 'literal' || typeof pattern.value !== 'string') return;
  try {
    compileRegex(pattern.value);
  } catch (error) {
    throw new CelCompileError('program', evaluationError(error).message);
  }
}

/** A constant that nothing can be found by, where the types say nothing. Throws CelCompileError. */
function refuseQualifier(compiler: Compiler, key: Expr): void {
  if (!compiler.environment.literalChecks) return;
  const type = qualifierFault(key);
  if (type !== undefined) throw new CelCompileError('program', `invalid qualifier type: ${type}`);
}

/** Conversions to what nothing can be found by. */
const UNFINDABLE: Readonly<Record<string, string>> = {
  bytes: 'types.Bytes',
  duration: 'types.Duration',
  timestamp: 'types.Timestamp',
};

/** The name of its type in Go; undefined for what may be looked for, and for what is not constant. */
function qualifierFault(key: Expr): string | undefined {
  const named = key.op === 'select' ? key.qualified : key;
  if (named?.op === 'ident' && named.constant !== undefined) return '*types.Type';
  if (key.op === 'call' && Object.hasOwn(UNFINDABLE, key.name) && isConstant(key)) return UNFINDABLE[key.name];
  const known = constantOf(key);
  if (known === undefined) return undefined;
  if (known.value === null) return 'types.Null';
  if (known.value instanceof Uint8Array) return 'types.Bytes';
  if (Array.isArray(known.value)) return '*types.baseList';
  return known.value instanceof CelMap ? '*types.baseMap' : undefined;
}

const FREE = constant(0);

/** The call at no cost but that of its arguments. */
const free = (expr: Call): Call => ({
  ...expr,
  overloads: expr.overloads!.map((overload) => ({ ...overload, cost: FREE })),
});

function dispatchOrDirect(expr: Call, args: readonly Code[]): Code {
  return expr.overloads!.length === 1 && isStatic(expr, expr.overloads![0]!)
    ? direct(expr.overloads![0]!, implementation(expr, expr.overloads![0]!), args)
    : dispatch(expr, args);
}

/**
 * `&&` (decided by false) and `||` (by true) are true to their tables whichever side fails: an error on one side does not
 * matter when the other decides.
 */
function shortCircuit(left: Code, right: Code, decisive: boolean): Code {
  return (frame) => {
    let failure: CelEvaluationError | undefined;
    try {
      const first = left(frame);
      if (first === decisive) return decisive;
      if (typeof first !== 'boolean') failure = noOverload();
    } catch (error) {
      failure = evaluationError(error);
    }
    if (failure === undefined) {
      const second = right(frame);
      if (typeof second !== 'boolean') throw noOverload();
      return second;
    }
    if (absorbed(right, frame) === decisive) return decisive;
    throw failure;
  };
}

/** The value, or undefined when it is an error: the other side's error wins. */
function absorbed(code: Code, frame: Frame): unknown {
  try {
    return code(frame);
  } catch (error) {
    evaluationError(error);
    return undefined;
  }
}

/** Hands on everything that is no failed evaluation, above all an exhausted budget. */
export function evaluationError(error: unknown): CelEvaluationError {
  if (error instanceof CelEvaluationError) return error;
  // Data too deep or a text too long is an evaluation that failed, not a fault of ours.
  if (error instanceof RangeError) return new CelEvaluationError(error.message);
  // A null can get past the static types when a schema is nullable.
  // Nor has data of another kind than its schema says, which BigInt() refuses.
  if (error instanceof TypeError || error instanceof SyntaxError) return noOverload();
  throw error;
}

function conditional(test: Code, yes: Code, no: Code): Code {
  return (frame) => {
    const chosen = test(frame);
    if (chosen === true) return yes(frame);
    if (chosen === false) return no(frame);
    throw noOverload();
  };
}

function not(operand: Code): Code {
  return (frame) => {
    const value = operand(frame);
    frame.cost += 1;
    if (typeof value !== 'boolean') throw noOverload();
    return !value;
  };
}

function equality(expr: Call, left: Code, right: Code, negate: boolean): Code {
  const model = expr.overloads![0]!.cost!;
  const listType = expr.args[0]!.type?.listType ?? expr.args[1]!.type?.listType;
  const test = listType === undefined ? equals : (a: unknown, b: unknown) => equalByListType(listType, a, b);
  return (frame) => {
    const a = left(frame);
    const b = right(frame);
    if (typeof a === 'object' || typeof a === 'string') spend(frame, model.run([a, b], undefined));
    else frame.cost += 1;
    return test(a, b) !== negate;
  };
}

/** A key that is a plain name is read as a part of the path, for nothing. */
function element(target: Expr, list: Code, { key, named }: { readonly key: Code; readonly named: boolean }): Code {
  const wrap = elementWrap(target.type);
  const lifted = target.type?.kind === 'optional';
  return (frame) => {
    const value = list(frame);
    const found = lifted ? stepInOptional(value, key(frame)) : index(value, key(frame));
    if (!named) frame.cost += 1;
    return wrap === undefined ? found : wrap(found);
  };
}

const elementWrap = (type: CelType | undefined): ((raw: unknown) => unknown) | undefined =>
  type?.kind === 'list' || type?.kind === 'map' ? type.params.at(-1)?.wrap : undefined;

function optionalElement(target: Expr, list: Code, key: Code): Code {
  const wrap = elementWrap(target.type?.kind === 'optional' ? target.type.params[0] : target.type);
  return (frame) => {
    const value = list(frame);
    const found = optionalIndex(value, key(frame));
    frame.cost += 1;
    return wrap === undefined || found.value === undefined ? found : new CelOptional(wrap(found.value));
  };
}

/** The alternative is evaluated only when it is needed. */
function orElse(optional: Code, alternative: Code, name: string): Code {
  return (frame) => {
    const value = optional(frame);
    if (!(value instanceof CelOptional)) throw noOverload();
    if (value !== NONE && value.value !== undefined) return name === 'or' ? value : value.value;
    return alternative(frame);
  };
}

/** Whether the static types leave nothing to find out at run time. */
function isStatic(expr: Call, overload: Overload): boolean {
  const args = expr.target === undefined ? expr.args : [expr.target, ...expr.args];
  return args.every((arg, i) => {
    const declared = overload.args[i]!;
    if (isDynamic(declared) || declared.kind === 'param') return true;
    if (arg.type?.nullable === true) return false;
    return arg.type !== undefined && !isDynamic(arg.type) && arg.type.kind !== 'null' && arg.type.kind !== 'wrapper';
  });
}

/** Lists of type set and map are joined without doubles. */
function implementation(expr: Call, overload: Overload): Implementation {
  const listType = expr.name === '_+_' ? expr.args[0]!.type?.listType : undefined;
  return listType === undefined ? overload.run : (a, b) => mergeByListType(listType, a, b);
}

/** Pays for a call whose cost the arguments decide; the rest is paid by `payAfter`. */
function payBefore(frame: Frame, model: CostModel | undefined, args: readonly unknown[]): void {
  if (model === undefined) frame.cost += 1;
  else if (model.after === undefined) spend(frame, model.run(args, undefined));
}

function payAfter(frame: Frame, model: CostModel | undefined, args: readonly unknown[], result: unknown): void {
  if (model?.after === true) spend(frame, model.run(args, result));
}

function direct(overload: Overload, run: Implementation, args: readonly Code[]): Code {
  const { cost } = overload;
  const [a, b] = args;
  switch (args.length) {
    case 1:
      return (frame) => {
        const x = a!(frame);
        const values = cost === undefined ? NOTHING : [x];
        payBefore(frame, cost, values);
        const result = run(x);
        payAfter(frame, cost, values, result);
        return result;
      };
    case 2:
      return (frame) => {
        const x = a!(frame);
        const y = b!(frame);
        const values = cost === undefined ? NOTHING : [x, y];
        payBefore(frame, cost, values);
        const result = run(x, y);
        payAfter(frame, cost, values, result);
        return result;
      };
    default:
      return (frame) => {
        const values = args.map((arg) => arg(frame));
        payBefore(frame, cost, values);
        const result = run(...values);
        payAfter(frame, cost, values, result);
        return result;
      };
  }
}

const NOTHING: readonly unknown[] = [];

/** Picks the overload by the values. */
function dispatch(expr: Call, args: readonly Code[]): Code {
  const overloads = expr.overloads!;
  const implementations = overloads.map((overload) => implementation(expr, overload));
  return (frame) => {
    const values = args.map((arg) => arg(frame));
    for (let i = 0; i < overloads.length; i++) {
      const overload = overloads[i]!;
      if (!fits(overload, values)) continue;
      payBefore(frame, overload.cost, values);
      const result = implementations[i]!(...values);
      payAfter(frame, overload.cost, values, result);
      return result;
    }
    throw noFit(expr.name, values);
  };
}

/** Operators say less than functions, as in cel-go. */
function noFit(name: string, values: readonly unknown[]): CelEvaluationError {
  if (/^[_@!-]/.test(name)) return noOverload();
  return new CelEvaluationError(`no such overload: ${name}(${values.map(runtimeTypeName).join(', ')})`);
}

function fits(overload: Overload, values: readonly unknown[]): boolean {
  for (let i = 0; i < values.length; i++) if (!matchesType(overload.args[i]!, values[i])) return false;
  return true;
}
