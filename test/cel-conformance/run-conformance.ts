/** Runs one case of the public CEL conformance data in the environment that the Kubernetes one is built from. */
import {
  CelEvaluationError,
  type CelType,
  celBudget,
  compileIn,
  listOf,
  makeEnvironment,
  mapOf,
  optionalOf,
} from '../../packages/cel/src/cel.ts';
import { type Environment, parseType } from '../../packages/cel/src/declarations.ts';
import { equals } from '../../packages/cel/src/equality.ts';
import { KUBERNETES } from '../../packages/cel/src/libraries/kubernetes.ts';
import { OPTIONALS } from '../../packages/cel/src/libraries/optionals.ts';
import { STANDARD } from '../../packages/cel/src/libraries/standard.ts';
import { mapReplace } from '../../packages/cel/src/map-access.ts';
import { parseDuration, parseTimestamp } from '../../packages/cel/src/time.ts';
import { formatType, opaqueType, typeOf, wrapperOf } from '../../packages/cel/src/types.ts';
import { CelDouble, CelMap, CelTypeValue, CelUint, fromJson, intFromBigInt } from '../../packages/cel/src/values.ts';

type Json = Record<string, unknown>;

/** A case of the data as it ships: protobuf JSON of cel.expr.conformance.test.SimpleTest. */
export interface ConformanceCase {
  readonly name?: string;
  readonly expr: string;
  readonly value?: Json;
  readonly typedResult?: { readonly result?: Json; readonly deducedType?: Json };
  readonly evalError?: Json;
  readonly typeEnv?: readonly Json[];
  readonly bindings?: Readonly<Record<string, { readonly value: Json }>>;
  readonly container?: string;
  readonly disableCheck?: boolean;
  readonly checkOnly?: boolean;
}

/** What Kubernetes turns on, plus mixed literals and `cel.bind`, which the data takes for granted. */
const ENVIRONMENT: Environment = {
  ...makeEnvironment([...STANDARD, ...OPTIONALS, ...KUBERNETES], []),
  homogeneous: false,
  literalChecks: false,
  bindings: true,
};

/** Undefined when the case passes, else what went wrong. */
export function runCase(test: ConformanceCase): string | undefined {
  const outcome = evaluate(test);
  if ('error' in outcome) {
    // An expected failure happens at run time; a compile error only stands in for it where nothing is to be checked.
    const expected = test.evalError !== undefined && (outcome.ran || test.disableCheck === true);
    return expected ? undefined : outcome.error;
  }
  if (test.evalError !== undefined) return 'no error';
  const expected = test.value ?? test.typedResult?.result;
  const wanted = expected === undefined ? true : celValueOf(expected);
  if (isNaNValue(wanted) && isNaNValue(outcome.value)) return undefined;
  return equals(outcome.value, wanted) && sameKind(outcome.value, wanted) ? undefined : 'a different value';
}

/** The type the checker deduces, as cel-go prints it; undefined when the expression does not compile. */
export function deducedType(test: ConformanceCase): string | undefined {
  try {
    return formatType(compileIn(ENVIRONMENT, test.expr, { variables: variablesOf(test) }).resultType);
  } catch {
    return undefined;
  }
}

function variablesOf(test: ConformanceCase): Record<string, CelType> {
  const variables: Record<string, CelType> = {};
  for (const declaration of test.typeEnv ?? []) {
    const ident = declaration['ident'] as { type: Json } | undefined;
    if (ident !== undefined) variables[declaration['name'] as string] = typeFrom(ident.type);
  }
  for (const name of Object.keys(test.bindings ?? {})) variables[name] ??= parseType('dyn');
  return variables;
}

const isNaNValue = (value: unknown): boolean => value instanceof CelDouble && Number.isNaN(value.value);

/** 1, 1u and 1.0 are equal but not the same result. */
const sameKind = (a: unknown, b: unknown): boolean =>
  typeof a === typeof b &&
  a instanceof CelDouble === b instanceof CelDouble &&
  a instanceof CelUint === b instanceof CelUint;

function evaluate(test: ConformanceCase): { value: unknown } | { error: string; ran: boolean } {
  try {
    const variables = variablesOf(test);
    const bindings: Record<string, unknown> = {};
    for (const [name, { value }] of Object.entries(test.bindings ?? {})) bindings[name] = celValueOf(value);
    const program = compileIn(ENVIRONMENT, test.expr, { variables });
    if (test.checkOnly === true) return { value: test.value === undefined ? true : celValueOf(test.value) };
    return { value: program.run(bindings, celBudget(1e9, 1e9)) };
  } catch (error) {
    return { error: (error as Error).message, ran: error instanceof CelEvaluationError };
  }
}

const PRIMITIVES: Readonly<Record<string, string>> = {
  BOOL: 'bool',
  INT64: 'int',
  UINT64: 'uint',
  DOUBLE: 'double',
  STRING: 'string',
  BYTES: 'bytes',
};

function typeFrom(type: Json): CelType {
  const [kind, of] = Object.entries(type)[0] ?? ['dyn', {}];
  switch (kind) {
    case 'primitive':
      return parseType(PRIMITIVES[of as string]!);
    case 'wrapper':
      return wrapperOf(parseType(PRIMITIVES[of as string]!));
    case 'wellKnown':
      return parseType(String(of).toLowerCase());
    case 'null':
      return parseType('null_type');
    case 'listType':
      return listOf(typeFrom((of as { elemType?: Json }).elemType ?? {}));
    case 'mapType': {
      const { keyType, valueType } = of as { keyType?: Json; valueType?: Json };
      return mapOf(typeFrom(keyType ?? {}), typeFrom(valueType ?? {}));
    }
    case 'abstractType': {
      const { name, parameterTypes } = of as { name: string; parameterTypes?: readonly Json[] };
      return name === 'optional_type' ? optionalOf(typeFrom(parameterTypes?.[0] ?? {})) : opaqueType(name);
    }
    case 'type':
      return typeOf(typeFrom(of as Json));
    case 'messageType':
      throw new Error(`protobuf message ${String(of)}`);
    default:
      return parseType('dyn');
  }
}

function celValueOf(value: Json): unknown {
  const [kind, of] = Object.entries(value)[0] ?? ['nullValue', null];
  switch (kind) {
    case 'int64Value':
      return intFromBigInt(BigInt(of as string));
    case 'uint64Value':
      return new CelUint(BigInt(of as string));
    case 'doubleValue':
      return new CelDouble(Number(String(of).replace('nan', 'NaN')));
    case 'bytesValue':
      return Uint8Array.from(atob(of as string), (char) => char.charCodeAt(0));
    case 'nullValue':
      return null;
    case 'typeValue':
      return new CelTypeValue(of as string);
    case 'listValue':
      return ((of as { values?: readonly Json[] }).values ?? []).map(celValueOf);
    case 'mapValue': {
      const map = new CelMap();
      for (const entry of (of as { entries?: readonly { key: Json; value: Json }[] }).entries ?? []) {
        mapReplace(map, celValueOf(entry.key), celValueOf(entry.value));
      }
      return map;
    }
    case 'objectValue':
      return wellKnown(of as Json);
    default:
      return of;
  }
}

function wellKnown(message: Json): unknown {
  switch (String(message['@type']).replace('type.googleapis.com/google.protobuf.', '')) {
    case 'Timestamp':
      return parseTimestamp(message['value'] as string);
    case 'Duration':
      return parseDuration(message['value'] as string);
    case 'Struct':
    case 'ListValue':
    case 'Value':
      return fromJson(message['value']);
    default:
      throw new Error(`protobuf message ${String(message['@type'])}`);
  }
}
