/** The environments: CEL as Kubernetes has it, with the optional libraries of admission. */
import type { Environment, Overload, StructType } from './declarations.ts';
import { AUTHORIZER_LIBRARY } from './libraries/authorizer.ts';
import { KUBERNETES } from './libraries/kubernetes.ts';
import { MUTATION_LIBRARY, mutationStruct } from './libraries/mutation.ts';
import { OPTIONALS } from './libraries/optionals.ts';
import { STANDARD } from './libraries/standard.ts';
import {
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
  STRING,
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
  const functions = new Map<string, Overload[]>();
  for (const entry of overloads) {
    const list = functions.get(entry.name);
    if (list === undefined) functions.set(entry.name, [entry]);
    else list.push(entry);
  }
  const types = new Map(TYPES);
  for (const name of opaque) types.set(name, opaqueType(name));
  return {
    functions,
    types,
    struct: (): StructType | undefined => undefined,
    bindings: false,
    homogeneous: true,
    literalChecks: true,
  };
}
