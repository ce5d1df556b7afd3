/**
 * CEL as Kubernetes uses it. Compile once, run often:
 *
 *     const self = celTypeOfSchema(schema, { root: true });
 *     const program = compileCel('self.spec.replicas <= 5', { variables: { self }, resultTypes: [BOOL] });
 *     program.estimatedCost;                        // static worst case, for the budget at CRD create
 *     const budget = celBudget(10_000_000, 1_000_000);
 *     program.run({ self: object }, budget) === true;
 *
 * Bindings are plain frozen JSON, used as they are; nothing is copied. A value that should be computed only when it is
 * read is a getter on the object that holds it (`variables`): what it throws behaves like any CEL error. `run` gives a CEL
 * value; booleans, strings, null and lists are themselves, small ints are JS numbers; `celToJson` makes JSON of anything.
 */
import { checkExpression } from './check.ts';
import { compileExpression } from './compile.ts';
import type { Frame } from './compile-frame.ts';
import { estimateCost } from './cost.ts';
import type { Environment, Overload } from './declarations.ts';
import { CelBudgetError, CelCompileError, failureOf, isFailure } from './errors.ts';
import { celToJson } from './json.ts';
import { AUTHORIZER_LIBRARY } from './libraries/authorizer.ts';
import { KUBERNETES } from './libraries/kubernetes.ts';
import { MUTATION_LIBRARY, mutationStruct } from './libraries/mutation.ts';
import { OPTIONALS } from './libraries/optionals.ts';
import { STANDARD } from './libraries/standard.ts';
import { parseExpression } from './parser.ts';
import { selectsField } from './syntax.ts';
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  fullTypeName,
  INT,
  listOf,
  mapOf,
  NULL,
  opaqueType,
  optionalOf,
  STRING,
  sameType,
  TIMESTAMP,
  UINT,
} from './types.ts';

export type OptionalLibrary = 'bindings' | 'mutation';

const TYPES: readonly (readonly [string, CelType])[] = [
  ...[BOOL, INT, UINT, DOUBLE, STRING, BYTES].map((type) => [type.name, type] as const),
  ['list', listOf(DYN)],
  ['map', mapOf(DYN, DYN)],
  ['null_type', NULL],
  ['type', { kind: 'type', name: 'type', params: [] }],
  ['optional_type', optionalOf(DYN)],
  ['google.protobuf.Timestamp', TIMESTAMP],
  ['google.protobuf.Duration', DURATION],
];
const KUBERNETES_TYPES = ['net.IP', 'net.CIDR'];
const known = new Map<string, Environment>();

/** The environment of every Kubernetes expression, plus the libraries named. Made once for each set. */
export function kubernetesEnvironment(libraries: readonly OptionalLibrary[]): Environment {
  const key = [...libraries].sort().join();
  let environment = known.get(key);
  if (environment === undefined) {
    // The functions of the authorizer are known where there is none to call them on, too.
    const overloads = [...STANDARD, ...OPTIONALS, ...KUBERNETES, ...AUTHORIZER_LIBRARY];
    if (libraries.includes('mutation')) overloads.push(...MUTATION_LIBRARY);
    environment = {
      ...makeEnvironment(overloads, KUBERNETES_TYPES),
      ...(libraries.includes('mutation') ? { struct: mutationStruct } : {}),
      bindings: libraries.includes('bindings'),
    };
    known.set(key, environment);
  }
  return environment;
}

/** An environment of these functions, with every syntax but `cel.bind` and mixed literals. */
export function makeEnvironment(overloads: readonly Overload[], opaque: readonly string[]): Environment {
  const functions = Map.groupBy(overloads, ({ name }) => name);
  const types = new Map([...TYPES, ...opaque.map((name) => [name, opaqueType(name)] as const)]);
  return { functions, types, struct: () => undefined, bindings: false, homogeneous: true, literalChecks: true };
}

export { CelBudgetError, CelCompileError, CelEvaluationError, CelTypeNameError } from './errors.ts';
export { celToJson } from './json.ts';
export type { CelAuthorizer, CelAuthorizerAttributes, CelAuthorizerDecision } from './libraries/authorizer.ts';
export { AUTHORIZER, authorizerValue, REQUEST_RESOURCE, resourceCheckValue } from './libraries/authorizer.ts';
export { JSON_PATCH, MUTATION_OBJECT } from './libraries/mutation.ts';
export { celTypeOfSchema } from './schema-type.ts';
export type { CelType } from './types.ts';
export { ANY, BOOL, DYN, listOf, mapOf, NULL, objectOf, opaqueType, optionalOf, STRING } from './types.ts';
export { celOptional } from './values.ts';

/**
 * What evaluations may still cost. Mutable: one budget is shared over all rules of an object; each run takes from
 * `remaining`. CRD rules: 10 000 000 in all and 1 000 000 a call; match conditions: 2 500 000.
 */
export interface CelBudget {
  remaining: number;
  readonly perCall: number;
}

/** A fresh budget, in cost units. */
export const celBudget = (total: number, perCall: number): CelBudget => ({ remaining: total, perCall });

export interface CelCompileOptions {
  /** The names an expression may use, with their types. */
  readonly variables: Readonly<Record<string, CelType>>;
  /** The result must be exactly one of these types (`dyn` is not `bool`). Absent: anything. `ANY` in the list: anything. */
  readonly resultTypes?: readonly CelType[];
  /**
   * Beyond what every Kubernetes expression has: `bindings` (`cel.bind`); `mutation` (`Object{}`,
   * `JSONPatch{}`, `jsonpatch`).
   */
  readonly libraries?: readonly OptionalLibrary[];
}

export interface CelProgram {
  readonly expression: string;
  readonly resultType: CelType;
  /** Static worst-case cost, in units, capped at 2^64: cel-go's checker cost with the estimators of Kubernetes. */
  readonly estimatedCost: number;
  /** The variables that the expression mentions: a rule that mentions `oldSelf` is a transition rule. */
  readonly references: ReadonlySet<string>;
  /** Whether it names a field of a variable: `claims.email`, `claims.?email`, `has(claims.email)`. */
  selects(variable: string, field: string): boolean;
  /**
   * Evaluates. `bindings` has a value for each declared variable that is used (`undefined` reads as `no such attribute`).
   * @throws CelEvaluationError, CelBudgetError
   */
  run(bindings: Readonly<Record<string, unknown>>, budget: CelBudget): unknown;
  /**
   * Evaluates and gives plain JSON, as a patch, a message or an audit annotation needs it.
   * @throws CelEvaluationError (also for what JSON cannot say), CelBudgetError
   */
  json(bindings: Readonly<Record<string, unknown>>, budget: CelBudget): unknown;
}

/**
 * Parses, checks and compiles an expression.
 * @throws CelCompileError with the place: `compilation failed: ERROR: <input>:1:5: undefined field 'z'...`
 */
export function compileCel(expression: string, options: CelCompileOptions): CelProgram {
  return compileIn(kubernetesEnvironment(options.libraries ?? []), expression, options);
}

/** The same in an environment of one's own (the conformance data needs the plain CEL one). */
export function compileIn(environment: Environment, expression: string, options: CelCompileOptions): CelProgram {
  const root = parseExpression(expression, environment);
  const { type: resultType, references } = checkExpression(root, expression, environment, options.variables);
  const { resultTypes } = options;
  if (resultTypes?.every((type) => type.kind !== 'any' && !sameType(type, resultType))) {
    const names = resultTypes.map(fullTypeName);
    const wanted = names.length === 1 ? names[0] : `one of [${names.join(' ')}]`;
    throw new CelCompileError('result', `must evaluate to ${wanted} but got ${fullTypeName(resultType)}`);
  }
  const { code, slots, bound } = compileExpression(root, environment, options.variables);
  let estimated: number | undefined;
  const run = (bindings: Readonly<Record<string, unknown>>, budget: CelBudget): unknown => {
    const values: unknown[] = new Array(slots);
    for (const { name, slot, wrap } of bound) {
      const raw = bindings[name];
      values[slot] = raw === undefined ? raw : wrap(raw);
    }
    const frame: Frame = { values, cost: 0, limit: budget.perCall };
    let value: unknown;
    try {
      value = code(frame);
      if (frame.cost > frame.limit) throw new CelBudgetError('call');
    } catch (error) {
      value = error instanceof CelBudgetError ? error : failureOf(error);
    }
    charge(budget, frame.cost);
    if (isFailure(value) || value instanceof CelBudgetError) throw value;
    return value;
  };
  return {
    expression,
    resultType,
    references,
    get estimatedCost() {
      // Sizes that nothing else says are taken from `self`.
      estimated ??= estimateCost(root, options.variables['self']);
      return estimated;
    },
    selects: (variable, field) => selectsField(root, variable, field),
    run,
    json: (bindings, budget) => celToJson(run(bindings, budget)),
  };
}

/** What an evaluation cost is taken even when it failed; running out beats whatever the evaluation said. */
function charge(budget: CelBudget, cost: number): void {
  const remaining = budget.remaining - Math.min(cost, budget.perCall);
  budget.remaining = Math.max(remaining, 0);
  if (remaining < 0) throw new CelBudgetError('total');
}
