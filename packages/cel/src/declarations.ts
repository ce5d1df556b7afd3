/** What an environment declares: functions with their overloads, types by name, and which syntax is on. */
import type { CostModel } from './cost-models.ts';
import {
  ANY,
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaqueType,
  optionalOf,
  paramType,
  STRING,
  TIMESTAMP,
  typeOf,
  UINT,
} from './types.ts';

// biome-ignore lint/suspicious/noExplicitAny: the declared signature says what arrives
export type Implementation = (...args: any[]) => unknown;

/** One signature of a function. */
export interface Overload {
  readonly name: string;
  readonly member: boolean;
  /** A member's receiver is the first. */
  readonly args: readonly CelType[];
  readonly result: CelType;
  /** How many type parameters the types have. */
  readonly generics: number;
  readonly run: Implementation;
  readonly cost: CostModel | undefined;
  /** It looks at its arguments itself. */
  readonly unguarded?: true;
}

/** A type whose objects an expression can make: `Object.spec{...}`. */
export interface StructType {
  readonly type: CelType;
  field(name: string): CelType | undefined;
}

export interface Environment {
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  /** Types that are values too (`int`, `net.IP`). */
  readonly types: ReadonlyMap<string, CelType>;
  struct(name: string): StructType | undefined;
  /** `cel.bind`. */
  readonly bindings: boolean;
  /** Elements of a literal must have one type. */
  readonly homogeneous: boolean;
  /** Literal patterns, durations and timestamps are checked when the expression is written. */
  readonly literalChecks: boolean;
}

const PLAIN = [BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, DYN, ANY];
const NAMED = new Map<string, CelType>([['null_type', NULL], ...PLAIN.map((type) => [type.name, type] as const)]);

/** Reads `list(A)`, `map(string, dyn)`, `net.IP`; a single capital is a type parameter. */
export function parseType(text: string): CelType {
  const open = text.indexOf('(');
  if (open === -1) return NAMED.get(text) ?? (/^[A-Z]$/.test(text) ? paramType(text) : opaqueType(text));
  const inner = splitArguments(text.slice(open + 1, -1)).map(parseType);
  switch (text.slice(0, open)) {
    case 'list':
      return listOf(inner[0]!);
    case 'map':
      return mapOf(inner[0]!, inner[1]!);
    case 'optional':
      return optionalOf(inner[0]!);
    case 'type':
      return typeOf(inner[0]!);
    default:
      throw new Error(`no such type: ${text}`);
  }
}

/** What stands between commas, with what it holds in brackets, which hold no more than one pair of their own. */
const splitArguments = (text: string): string[] => text.match(/[^,()\s][^,()]*(?:\((?:[^()]|\([^()]*\))*\))?/g) ?? [];

/**
 * Declares an overload: `overload('startsWith', 'string.(string): bool', run)` is a member,
 * `overload('size', '(list(A)): int', run)` a global function.
 */
export function overload(name: string, signature: string, run: Implementation, cost?: CostModel): Overload {
  const match = /^(?:(.+)\.)?\(((?:[^()]|\([^()]*(?:\([^()]*\)[^()]*)*\))*)\): (.+)$/.exec(signature);
  if (match === null) throw new Error(`no such signature: ${signature}`);
  const [, receiver, args, result] = match;
  const types = splitArguments(args!).map(parseType);
  if (receiver !== undefined) types.unshift(parseType(receiver));
  const type = parseType(result!);
  const generics = new Set([type, ...types].flatMap(paramsOf)).size;
  return { name, member: receiver !== undefined, args: types, result: type, generics, run, cost };
}

const paramsOf = (type: CelType): string[] => (type.kind === 'param' ? [type.name] : type.params.flatMap(paramsOf));
