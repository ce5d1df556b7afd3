/** Macros: calls that become other syntax before anything is checked. */
import type { Environment } from './declarations.ts';
import type { Report } from './report.ts';
import type { Bind, Expr, Fold, FoldKind } from './syntax.ts';

export interface MacroCall {
  readonly at: number;
  readonly name: string;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}

/** Names a macro brings along; `@` cannot be typed, so nothing is shadowed. */
const SORT_INPUT = '@sort_input';
const OPTIONAL_INPUT = '@optional_input';

/** The expansion of a macro call; undefined when the call is none. Wrong arguments are reported. */
export function expandMacro(call: MacroCall, environment: Environment, report: Report): Expr | undefined {
  if (call.target === undefined) return call.name === 'has' && call.args.length === 1 ? has(call, report) : undefined;
  if (environment.optionals && call.args.length === 2) {
    if (call.name === 'optMap') return optionalMap(call, report, true);
    if (call.name === 'optFlatMap') return optionalMap(call, report, false);
  }
  if (call.name === 'bind' && environment.bindings && call.args.length === 3) return bind(call, report);
  if (call.name === 'sortBy' && call.args.length === 2) return sortBy(call, report);
  return fold(call, environment, report);
}

function has({ at, args }: MacroCall, report: Report): Expr {
  const arg = args[0]!;
  // `a.?b` is a call to upstream, not a selection.
  if (arg.op === 'select' && !arg.optional) return { ...arg, at, test: true };
  report.add(arg.at, 'invalid argument to has() macro');
  return arg;
}

const FOLDS: Readonly<Record<string, FoldKind>> = {
  all: 'all',
  exists: 'exists',
  exists_one: 'existsOne',
  map: 'map',
  filter: 'filter',
};
const TWO_NAME_FOLDS: Readonly<Record<string, FoldKind>> = {
  all: 'all',
  exists: 'exists',
  exists_one: 'existsOne',
  existsOne: 'existsOne',
  transformList: 'transformList',
  transformMap: 'transformMap',
  transformMapEntry: 'transformMapEntry',
};

function fold(call: MacroCall, environment: Environment, report: Report): Expr | undefined {
  const { args, name } = call;
  if (Object.hasOwn(FOLDS, name)) {
    const kind = FOLDS[name]!;
    if (args.length === 2)
      return oneName(call, kind, report, kind === 'map' ? [undefined, args[1]] : [args[1], undefined]);
    if (args.length === 3 && kind === 'map') return oneName(call, kind, report, [args[1], args[2]]);
  }
  if (!environment.twoVariables || !Object.hasOwn(TWO_NAME_FOLDS, name)) return undefined;
  const kind = TWO_NAME_FOLDS[name]!;
  const transforms = kind.startsWith('transform');
  if (args.length === 3) return twoNames(call, kind, report, transforms ? [undefined, args[2]] : [args[2], undefined]);
  if (args.length === 4 && transforms) return twoNames(call, kind, report, [args[2], args[3]]);
  return undefined;
}

type Parts = readonly [test: Expr | undefined, body: Expr | undefined];

function oneName({ at, target, args }: MacroCall, kind: FoldKind, report: Report, [test, body]: Parts): Fold {
  const name = simpleName(args[0]!, report);
  return { op: 'fold', at, kind, range: target!, names: [name], test, body };
}

function twoNames({ at, target, args }: MacroCall, kind: FoldKind, report: Report, [test, body]: Parts): Fold {
  const first = simpleName(args[0]!, report);
  const second = simpleName(args[1]!, report);
  if (first === second) report.add(args[1]!.at, `duplicate variable name: ${first}`);
  return { op: 'fold', at, kind, range: target!, names: [first, second], test, body };
}

function simpleName(expr: Expr, report: Report): string {
  if (expr.op === 'ident' && !expr.name.startsWith('.')) {
    if (expr.name === '__result__') {
      report.add(expr.at, 'iteration variable overwrites accumulator variable');
    }
    return expr.name;
  }
  report.add(expr.at, 'argument is not an identifier');
  return '@error';
}

function optionalMap({ at, target, args }: MacroCall, report: Report, wrap: boolean): Expr {
  const name = simpleName(args[0]!, report);
  // Bound once: repeating the target would double a chain of these with every link.
  const input: Expr = { op: 'ident', at, name: OPTIONAL_INPUT };
  const value: Expr = { op: 'call', at, name: 'value', target: input, args: [] };
  const bound: Bind = { op: 'bind', at, name, init: value, body: args[1]! };
  const found: Expr = wrap ? { op: 'call', at, name: 'optional.of', target: undefined, args: [bound] } : bound;
  const none: Expr = { op: 'call', at, name: 'optional.none', target: undefined, args: [] };
  const present: Expr = { op: 'call', at, name: 'hasValue', target: input, args: [] };
  const choice: Expr = { op: 'call', at, name: '_?_:_', target: undefined, args: [present, found, none] };
  return { op: 'bind', at, name: OPTIONAL_INPUT, init: target!, body: choice };
}

function bind(call: MacroCall, report: Report): Expr | undefined {
  const { at, target, args } = call;
  if (target?.op !== 'ident' || target.name !== 'cel') return undefined;
  return { op: 'bind', at, name: simpleName(args[0]!, report), init: args[1]!, body: args[2]! };
}

function sortBy({ at, target, args }: MacroCall, report: Report): Expr {
  const input: Expr = { op: 'ident', at, name: SORT_INPUT };
  const keys: Fold = {
    op: 'fold',
    at,
    kind: 'map',
    range: input,
    names: [simpleName(args[0]!, report)],
    test: undefined,
    body: args[1],
  };
  const sort: Expr = { op: 'call', at, name: '@sortByAssociatedKeys', target: input, args: [keys] };
  return { op: 'bind', at, name: SORT_INPUT, init: target!, body: sort };
}
