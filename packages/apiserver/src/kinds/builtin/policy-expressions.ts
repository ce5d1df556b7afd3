/**
 * What the expressions of match conditions, policies and mutations can name (admission/plugin/cel), with their types: for
 * whoever checks, compiles or evaluates them.
 */
import {
  AUTHORIZER,
  BOOL,
  type CelType,
  celTypeOfSchema,
  DYN,
  listOf,
  mapOf,
  objectOf,
  REQUEST_RESOURCE,
  STRING,
} from '@coracle/cel/cel';

const KIND = objectOf('kubernetes.GroupVersionKind', { group: STRING, version: STRING, kind: STRING });
const RESOURCE = objectOf('kubernetes.GroupVersionResource', { group: STRING, version: STRING, resource: STRING });
const USER = objectOf('kubernetes.UserInfo', {
  username: STRING,
  uid: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
});

const REQUEST = objectOf('kubernetes.AdmissionRequest', {
  kind: KIND,
  resource: RESOURCE,
  subResource: STRING,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: USER,
  dryRun: BOOL,
  options: DYN,
});

const TIME = celTypeOfSchema({ type: 'string', format: 'date-time' });
const INTEGER = celTypeOfSchema({ type: 'integer' });

const NAMESPACE = objectOf('kubernetes.Namespace', {
  metadata: objectOf('kubernetes.NamespaceMetadata', {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: mapOf(STRING, STRING),
    annotations: mapOf(STRING, STRING),
    UID: STRING,
    creationTimestamp: TIME,
    deletionGracePeriodSeconds: INTEGER,
    deletionTimestamp: TIME,
    generation: INTEGER,
    resourceVersion: STRING,
    finalizers: listOf(STRING),
  }),
  spec: objectOf('kubernetes.NamespaceSpec', { finalizers: listOf(STRING) }),
  status: objectOf('kubernetes.NamespaceStatus', {
    conditions: listOf(
      objectOf('kubernetes.NamespaceCondition', {
        status: STRING,
        type: STRING,
        lastTransitionTime: TIME,
        message: STRING,
        reason: STRING,
      }),
    ),
    phase: STRING,
  }),
});

/** Names and types for an expression; objects and parameters are dynamic. */
export function expressionVariables(parts: {
  readonly params: CelType | undefined;
  readonly authorizer: boolean;
  readonly variables?: CelType;
}): Record<string, CelType> {
  return {
    object: DYN,
    oldObject: DYN,
    request: REQUEST,
    namespaceObject: NAMESPACE,
    ...(parts.params && { params: parts.params }),
    ...(parts.authorizer && { authorizer: AUTHORIZER, 'authorizer.requestResource': REQUEST_RESOURCE }),
    ...(parts.variables && { variables: parts.variables }),
  };
}

/** The type of `variables` when these are defined: of each, what composition keeps of its type. */
export const typeOfVariables = (fields: Readonly<Record<string, CelType>>): CelType =>
  objectOf(
    'kubernetes.variables',
    Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, composedType(type)])),
  );

const SCALARS: ReadonlySet<CelType['kind']> = new Set([
  'any',
  'bool',
  'bytes',
  'double',
  'duration',
  'int',
  'null',
  'string',
  'timestamp',
  'uint',
]);

/** Only scalars, and lists and maps of them, keep their type; objects, optionals and opaque values become dynamic. */
function composedType(type: CelType): CelType {
  if (SCALARS.has(type.kind)) return type;
  if (type.kind === 'list') return listOf(composedType(type.params[0]!));
  if (type.kind === 'map') return mapOf(composedType(type.params[0]!), composedType(type.params[1]!));
  return DYN;
}
