/** Macros: calls that become other syntax before anything is checked. */
import type { Environment } from './declarations.ts';
import { SourceError } from './report.ts';
import { type Bind, type Expr, type Fold, type FoldKind, call as makeCall } from './syntax.ts';

export interface MacroCall {
  readonly at: number;
  readonly name: string;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}

/** Names a macro brings along; `@` cannot be typed, so nothing is shadowed. */
const SORT_INPUT = '@sort_input';
const OPTIONAL_INPUT = '@optional_input';

/**
 * The expansion of a macro call; undefined when the call is none.
 * @throws SourceError for an argument that the macro does not take
 */
export function expandMacro(call: MacroCall, environment: Environment): Expr | undefined {
  if (call.target === undefined) return call.name === 'has' && call.args.length === 1 ? has(call) : undefined;
  if ((call.name === 'optMap' || call.name === 'optFlatMap') && call.args.length === 2) return optionalMap(call);
  if (call.name === 'bind' && environment.bindings && call.args.length === 3) return bind(call);
  if (call.name === 'sortBy' && call.args.length === 2) return sortBy(call);
  return fold(call);
}

function has({ at, args }: MacroCall): Expr {
  const arg = args[0]!;
  // `a.?b` is a call to upstream, not a selection.
  if (arg.op === 'select' && !arg.optional) return { ...arg, at, test: true };
  throw new SourceError(arg.at, 'invalid argument to has() macro');
}

const QUANTIFIERS = { all: 'all', exists: 'exists', exists_one: 'existsOne' } as const;
const FOLDS: Readonly<Record<string, FoldKind>> = { ...QUANTIFIERS, map: 'map', filter: 'filter' };
const TWO_NAME_FOLDS: Readonly<Record<string, FoldKind>> = {
  ...QUANTIFIERS,
  existsOne: 'existsOne',
  transformList: 'transformList',
  transformMap: 'transformMap',
  transformMapEntry: 'transformMapEntry',
};

function fold(call: MacroCall): Expr | undefined {
  const { args, name } = call;
  if (Object.hasOwn(FOLDS, name)) {
    const kind = FOLDS[name]!;
    if (args.length === 2) return oneName(call, kind, kind === 'map' ? [undefined, args[1]] : [args[1], undefined]);
    if (args.length === 3 && kind === 'map') return oneName(call, kind, [args[1], args[2]]);
  }
  if (!Object.hasOwn(TWO_NAME_FOLDS, name)) return undefined;
  const kind = TWO_NAME_FOLDS[name]!;
  const transforms = kind.startsWith('transform');
  if (args.length === 3) return twoNames(call, kind, transforms ? [undefined, args[2]] : [args[2], undefined]);
  if (args.length === 4 && transforms) return twoNames(call, kind, [args[2], args[3]]);
  return undefined;
}

type Parts = readonly [test: Expr | undefined, body: Expr | undefined];

const NO_NAME = 'argument is not an identifier';
const NO_SIMPLE_NAME = 'argument must be a simple name';

function oneName({ at, target, args }: MacroCall, kind: FoldKind, [test, body]: Parts): Fold {
  const name = nameOf(args[0]!, kind === 'map' || kind === 'filter' ? NO_NAME : NO_SIMPLE_NAME);
  refuseAccumulator(args[0]!, name);
  return { op: 'fold', at, kind, range: target!, names: [name], test, body };
}

function twoNames({ at, target, args }: MacroCall, kind: FoldKind, [test, body]: Parts): Fold {
  const first = nameOf(args[0]!, NO_SIMPLE_NAME);
  const second = nameOf(args[1]!, NO_SIMPLE_NAME);
  if (first === second) throw new SourceError(args[1]!.at, `duplicate variable name: ${first}`);
  refuseAccumulator(args[0]!, first);
  refuseAccumulator(args[1]!, second);
  return { op: 'fold', at, kind, range: target!, names: [first, second], test, body };
}

function nameOf(expr: Expr, otherwise: string): string {
  if (expr.op === 'ident' && !expr.name.startsWith('.')) return expr.name;
  throw new SourceError(expr.at, otherwise);
}

function refuseAccumulator({ at }: Expr, name: string): void {
  if (name === '__result__') throw new SourceError(at, 'iteration variable overwrites accumulator variable');
}

function optionalMap({ at, target, args, name: macro }: MacroCall): Expr {
  const name = nameOf(args[0]!, `${macro}() variable name must be a simple identifier`);
  // Bound once: repeating the target would double a chain of these with every link. A name is repeated, as upstream does.
  const repeated = target!.op === 'ident';
  const input: Expr = repeated ? target! : { op: 'ident', at, name: OPTIONAL_INPUT };
  const value = makeCall(at, 'value', [], { ...input });
  const bound: Bind = { op: 'bind', at, name, init: value, body: args[1]! };
  const found = macro === 'optMap' ? makeCall(at, 'optional.of', [bound]) : bound;
  const present = makeCall(at, 'hasValue', [], input);
  const choice = makeCall(at, '_?_:_', [present, found, makeCall(at, 'optional.none', [])]);
  return repeated ? choice : { op: 'bind', at, name: OPTIONAL_INPUT, init: target!, body: choice };
}

function bind(call: MacroCall): Expr | undefined {
  const { at, target, args } = call;
  if (target?.op !== 'ident' || target.name !== 'cel') return undefined;
  const name = nameOf(args[0]!, 'cel.bind() variable names must be simple identifiers');
  return { op: 'bind', at, name, init: args[1]!, body: args[2]! };
}

function sortBy({ at, target, args }: MacroCall): Expr {
  if (!isSortable(target!)) {
    const kinds = 'a list, identifier, comprehension, call or select expression';
    throw new SourceError(target!.at, `sortBy can only be applied to ${kinds}`);
  }
  const name = nameOf(args[0]!, NO_NAME);
  refuseAccumulator(args[0]!, name);
  const input: Expr = { op: 'ident', at, name: SORT_INPUT };
  const keys: Fold = { op: 'fold', at, kind: 'map', range: input, names: [name], test: undefined, body: args[1] };
  const sort = makeCall(at, '@sortByAssociatedKeys', [keys], input);
  return { op: 'bind', at, name: SORT_INPUT, init: target!, body: sort };
}

const isSortable = ({ op }: Expr): boolean => op !== 'literal' && op !== 'map' && op !== 'struct';
