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
import types from './policy-types.json' with { type: 'json' };

/** Of `policy-types.json`: a name of a type, an object of its fields by its name, and `[]` or `{}` for a list or map of one. */
function typeOf(of: string): CelType {
  if (of.endsWith('[]')) return listOf(typeOf(of.slice(0, -2)));
  if (of.endsWith('{}')) return mapOf(STRING, typeOf(of.slice(0, -2)));
  const fields: Readonly<Record<string, string>> | undefined = OBJECTS[of];
  if (fields === undefined) return SCALARS_BY_NAME[of]!;
  const members = Object.entries(fields).map(([name, field]) => [name, typeOf(field)]);
  return objectOf(`kubernetes.${of}`, Object.fromEntries(members));
}

const OBJECTS: Readonly<Record<string, Readonly<Record<string, string>>>> = types;
const SCALARS_BY_NAME: Readonly<Record<string, CelType>> = {
  string: STRING,
  bool: BOOL,
  int: celTypeOfSchema({ type: 'integer' }),
  time: celTypeOfSchema({ type: 'string', format: 'date-time' }),
  any: DYN,
};

const REQUEST = typeOf('AdmissionRequest');
const NAMESPACE = typeOf('Namespace');

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

const SCALARS = new Set('any bool bytes double duration int null string timestamp uint'.split(' '));

/** Only scalars, and lists and maps of them, keep their type; objects, optionals and opaque values become dynamic. */
function composedType(type: CelType): CelType {
  if (SCALARS.has(type.kind)) return type;
  if (type.kind === 'list') return listOf(composedType(type.params[0]!));
  if (type.kind === 'map') return mapOf(composedType(type.params[0]!), composedType(type.params[1]!));
  return DYN;
}
