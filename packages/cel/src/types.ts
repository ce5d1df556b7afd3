/**
 * Static types of CEL. A type that stands for declared data (a schema node) also bounds the size of its values, and says
 * how a raw JSON value of it becomes a CEL value.
 */

type ScalarKind = 'bool' | 'int' | 'uint' | 'double' | 'string' | 'bytes' | 'timestamp' | 'duration' | 'null';
type NestedKind = 'type' | 'list' | 'map' | 'object' | 'optional' | 'wrapper';
export type CelKind = ScalarKind | NestedKind | 'dyn' | 'any' | 'opaque' | 'param';

export interface CelField {
  /** The property of the JSON object, before escaping. */
  readonly property: string;
  readonly type: CelType;
  /** A null is read as no value at all: a field that a schema declares. */
  readonly nullIsAbsent?: true;
}

export interface CelType {
  readonly kind: CelKind;
  /** As `type(x)` prints it; of an object its own name; of a type parameter its letter. */
  readonly name: string;
  /** list: [element]; map: [key, value]; optional, type, wrapper: [inner]. */
  readonly params: readonly CelType[];
  /** Objects: finds a field by its escaped name. Lazy, as schemas may be cyclic. */
  readonly field?: (escaped: string) => CelField | undefined;
  /** Largest size (characters, bytes, items, properties) of declared data; absent where nothing is declared. */
  readonly maxElements?: number;
  /** Smallest number of bytes that a value takes in JSON. */
  readonly minSize?: number;
  /** Makes a CEL value of a raw JSON value. Absent: JSON is the CEL value. Idempotent. */
  readonly wrap?: (raw: unknown) => unknown;
  /** The value may be null although the type does not say so: calls look at the value before they use it. */
  readonly nullable?: true;
  /** Lists that are compared without order (`set`) or by keys (`map`). */
  readonly listType?: { readonly kind: 'set' | 'map'; readonly keys: readonly string[] };
}

const simple = (kind: CelKind, name: string = kind): CelType => ({ kind, name, params: [] });

export const BOOL: CelType = simple('bool');
export const INT: CelType = simple('int');
export const UINT: CelType = simple('uint');
export const DOUBLE: CelType = simple('double');
export const STRING: CelType = simple('string');
export const BYTES: CelType = simple('bytes');
export const TIMESTAMP: CelType = simple('timestamp');
export const DURATION: CelType = simple('duration');
export const NULL: CelType = simple('null');
export const DYN: CelType = simple('dyn');
export const ANY: CelType = simple('any');

export const listOf = (element: CelType): CelType => ({ kind: 'list', name: 'list', params: [element] });
export const mapOf = (key: CelType, value: CelType): CelType => ({ kind: 'map', name: 'map', params: [key, value] });
export const optionalOf = (inner: CelType): CelType => ({ kind: 'optional', name: 'optional_type', params: [inner] });
export const typeOf = (inner: CelType): CelType => ({ kind: 'type', name: 'type', params: [inner] });
export const wrapperOf = (inner: CelType): CelType => ({ kind: 'wrapper', name: inner.name, params: [inner] });
export const paramType = (name: string): CelType => simple('param', name);
/** A type that only its library looks into: `net.IP`, `kubernetes.Quantity`. */
export const opaqueType = (name: string): CelType => simple('opaque', name);

/**
 * An object with named fields. Names are given as they are in JSON and escaped here; a field that cannot be escaped is not
 * reachable, as upstream. Values may be getters: a lazy variable is a field whose getter evaluates it.
 */
export function objectOf(name: string, fields: Readonly<Record<string, CelType>>): CelType {
  const byName = new Map<string, CelField>();
  for (const [property, type] of Object.entries(fields)) {
    const escaped = escapeProperty(property);
    if (escaped !== undefined) byName.set(escaped, { property, type });
  }
  return { kind: 'object', name, params: [], field: (escaped) => byName.get(escaped) };
}

/**
 * The type without what is declared about sizes, all the way down. Upstream's estimator finds bounds by the path of names,
 * and loses the path at `map.key` (not at `map['key']`).
 */
export function withoutBounds(type: CelType): CelType {
  const { maxElements: _, field, ...rest } = type;
  const params = type.params.map(withoutBounds);
  if (field === undefined) return { ...rest, params };
  return {
    ...rest,
    params,
    field(escaped) {
      const found = field(escaped);
      return found === undefined ? undefined : { ...found, type: withoutBounds(found.type) };
    },
  };
}

/** Words that are no names of variables, although the grammar takes them for names. */
export const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(
    ' ',
  ),
);

/** How an expression spells a property (`a-b` -> `a__dash__b`, `for` -> `__for__`); undefined when it cannot be named. */
export function escapeProperty(property: string): string | undefined {
  if (RESERVED.has(property)) return `__${property}__`;
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(property)) return undefined;
  return property
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}

/** How messages name a type: `list(int)`, `map(string, dyn)`. */
export function formatType(type: CelType): string {
  if (type.kind === 'type' && type.params.length === 0) return 'type';
  if (type.kind === 'wrapper') return `wrapper(${formatType(type.params[0]!)})`;
  if (type.params.length === 0) return type.name;
  return `${type.name}(${type.params.map(formatType).join(', ')})`;
}

const FULL_NAMES: Partial<Record<CelKind, string>> = {
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
  null: 'null_type',
  any: 'google.protobuf.Any',
};

/** What `type(x)` prints of a value of the type. */
export const runtimeName = (type: CelType): string => FULL_NAMES[type.kind] ?? type.name;

/** The same as cel-go's Type.String has it: what a result is called that is of a wrong type. */
export function fullTypeName(type: CelType): string {
  if (type.params.length === 0 || type.kind === 'wrapper') return FULL_NAMES[type.kind] ?? formatType(type);
  return `${runtimeName(type)}(${type.params.map(fullTypeName).join(', ')})`;
}

/** Equal in kind, name and parameters; what is known about sizes does not count. */
export function sameType(a: CelType, b: CelType): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind || a.name !== b.name || a.params.length !== b.params.length) return false;
  return a.params.every((param, index) => sameType(param, b.params[index]!));
}

/** Types that turn checking off. */
export const isDynamic = (type: CelType): boolean => type.kind === 'dyn' || type.kind === 'any';
