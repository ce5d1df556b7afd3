/**
 * The small vocabulary in which the KubeVirt kinds are written: TypeBox values that carry, beside the static type, the
 * marks the structural schema needs. A property is optional unless it is wrapped in `needed`: that is how nearly all of
 * this API is.
 */

import { UNSIGNED } from '@coracle/apimachinery/schema/schema';
import type { TArray, TBoolean, TObject, TOptional, TProperties, TRecord, TSchema, TString, TUnsafe } from 'typebox';

/** A resource amount as written: `2`, `"500m"`, `"1Gi"`. */
export type QuantityValue = string | number;

/** Marks that pass through to the structural schema unchanged. */
export interface Marks {
  readonly nullable?: boolean;
  readonly default?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
}

/** A property that must be present. */
export interface Needed<S extends TSchema> {
  readonly needed: S;
}

export const needed = <S extends TSchema>(schema: S): Needed<S> => ({ needed: schema });

type Members = Readonly<Record<string, TSchema | Needed<TSchema>>>;
type PropertiesOf<M extends Members> = {
  [K in keyof M]: M[K] extends Needed<infer S> ? S : M[K] extends TSchema ? TOptional<M[K]> : never;
};

/**
 * A TypeBox value is a JSON Schema with a static type. The schema is written here and the type is TypeBox's: its own
 * builders would bring the whole library (hundreds of modules) into every start of the program.
 */
const build = <S extends TSchema>(schema: Readonly<Record<string | symbol, unknown>>): S => schema as unknown as S;

const isNeeded = (member: TSchema | Needed<TSchema>): member is Needed<TSchema> => Object.hasOwn(member, 'needed');

/** An object whose members are optional unless `needed`. */
export function object<M extends Members>(
  description: string,
  members: M,
  marks: Marks = {},
): TObject<PropertiesOf<M>> {
  const properties: TProperties = {};
  const required: string[] = [];
  for (const [name, member] of Object.entries(members)) {
    properties[name] = isNeeded(member) ? member.needed : member;
    if (isNeeded(member)) required.push(name);
  }
  return build({ type: 'object', ...(required.length > 0 && { required }), properties, description, ...marks });
}

/** An object that says everything by being there. */
export const flag = (description: string): TObject<Record<never, never>> => object(description, {});

export const str = (description: string, marks: Marks = {}): TString =>
  build({ type: 'string', description, ...marks });

/** A string of a closed list: narrows the static type; `enforced` also puts the list into the schema. */
export const oneOf = <const V extends readonly string[]>(
  values: V,
  description: string,
  options: { enforced?: boolean; nullable?: boolean; default?: V[number] } = {},
): TUnsafe<V[number]> =>
  build({
    type: 'string',
    description,
    ...(options.enforced && { enum: values }),
    ...(options.nullable && { nullable: true }),
    ...(options.default !== undefined && { default: options.default }),
  });

export const bool = (description: string, marks: Marks = {}): TBoolean =>
  build({ type: 'boolean', description, ...marks });

/** Go's int and int32. */
export const int = (description: string, marks: Marks = {}): TUnsafe<number> =>
  build({ type: 'integer', format: 'int32', description, ...marks });

/** Go's int64 and uint64. */
export const long = (description: string, marks: Marks = {}): TUnsafe<number> =>
  build({ type: 'integer', format: 'int64', description, ...marks });

/** Go's uint and uint32, which a structural schema shows without a sign rule: a negative one cannot be decoded. */
export const count = (description: string, marks: Marks = {}): TUnsafe<number> =>
  build({ type: 'integer', format: 'int32', [UNSIGNED]: true, description, ...marks });

export const float = (description: string): TUnsafe<number> => build({ type: 'number', description });

/** An instant, RFC 3339. */
export const time = (description: string, marks: Marks = {}): TString =>
  build({ type: 'string', description, format: 'date-time', ...marks });

/** A Go duration (`1m30s`). */
export const duration = (description: string): TString => build({ type: 'string', description });

const QUANTITY_PATTERN =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

export const quantity = (description: string): TUnsafe<QuantityValue> =>
  build({
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    description,
    pattern: QUANTITY_PATTERN,
    'x-kubernetes-int-or-string': true,
  });

/** A number, or a share such as `25%`. */
export const intOrString = (description: string): TUnsafe<number | string> =>
  build({ anyOf: [{ type: 'integer' }, { type: 'string' }], description, 'x-kubernetes-int-or-string': true });

/** resource name -> amount. */
export const resourceList = (description: string): TUnsafe<Record<string, QuantityValue>> =>
  build({
    type: 'object',
    description,
    additionalProperties: {
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      pattern: QUANTITY_PATTERN,
      'x-kubernetes-int-or-string': true,
    },
  });

const TEXT: TString = build({ type: 'string' });

export const list = <S extends TSchema>(items: S, description: string, marks: Marks = {}): TArray<S> =>
  build({ type: 'array', items, description, ...marks });

/** A list that is replaced as a whole by server-side apply. */
export const atomicList = <S extends TSchema>(items: S, description: string, marks: Marks = {}): TArray<S> =>
  list(items, description, { 'x-kubernetes-list-type': 'atomic', ...marks });

/** A list whose items are distinguished by `keys`. */
export const keyedList = <S extends TSchema>(
  items: S,
  keys: readonly string[],
  description: string,
  marks: Marks = {},
): TArray<S> =>
  list(items, description, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys, ...marks });

export const strings = (description: string, marks: Marks = {}): TArray<TString> => list(TEXT, description, marks);

/** name -> value. */
export const map = <S extends TSchema>(values: S, description: string): TRecord<string, S> =>
  build({ type: 'object', patternProperties: { '^.*$': values }, description });

export const stringMap = (description: string): TRecord<string, TString> => map(TEXT, description);

/** The mark of a node that stands for a built-in Kubernetes type; the converter puts that type's schema in its place. */
export const BUILTIN = 'x-coracle-builtin';

/** A built-in Kubernetes type, by its definition name; `T` is its static type. */
export const builtin = <T>(name: string, description: string, marks: Marks = {}): TUnsafe<T> =>
  build({ [BUILTIN]: name, description, ...marks });

/** Any JSON object, kept as it is. */
export const anyObject = <T = Record<string, unknown>>(description: string, marks: Marks = {}): TUnsafe<T> =>
  build({ type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true, ...marks });
