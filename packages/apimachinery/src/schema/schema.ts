// What a schema says of the Go type that it describes beyond what is published: under symbols, so that no document has it.

/** Marks an integer that Go holds without a sign. */
export const UNSIGNED: unique symbol = Symbol('unsigned');

/**
 * The properties that Go writes though nobody sent them, with the value they then have, which may be null. They are not
 * asked for, whatever `required` publishes.
 */
export const ZEROS: unique symbol = Symbol('zeros');

/** The properties that Go leaves out (omitempty) while they hold `false`, 0, '', or an empty list or map. */
export const OMITTED: unique symbol = Symbol('omitted');

/** What the objects and the lists of a type hold whose JSON takes several forms (JSONSchemaPropsOrArray). */
export const FORMS: unique symbol = Symbol('forms');

export interface Forms {
  readonly object: Schema;
  /** Of type `array`; absent where no list is decoded. */
  readonly list?: Schema;
}

/** The form that a value takes; undefined for scalars and for what is not decoded. */
export const formOf = (forms: Forms, value: unknown): Schema | undefined => {
  if (Array.isArray(value)) return forms.list;
  return typeof value === 'object' && value !== null ? forms.object : undefined;
};

/**
 * The structural schema that everything is derived from: pruning, defaulting, validation, unknown-field reports,
 * strategic merge, server-side-apply topology, OpenAPI and `kubectl explain`. It is the JSON-Schema dialect of
 * apiextensions/v1 JSONSchemaProps; `$ref`s of the built-in table are resolved into shared nodes, so the graph may be
 * cyclic (JSONSchemaProps itself is): walk it along a value, never on its own without a visited set.
 */
export interface Schema {
  readonly [UNSIGNED]?: true;
  readonly [ZEROS]?: Readonly<Record<string, unknown>>;
  readonly [OMITTED]?: ReadonlySet<string>;
  readonly [FORMS]?: Forms;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: string;
  readonly description?: string;
  readonly title?: string;
  readonly example?: unknown;
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'granular' | 'atomic';
  readonly 'x-kubernetes-patch-merge-key'?: string;
  /** `merge`, `replace`, `retainKeys`, or `merge,retainKeys`. */
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];
  /** Definition name (`io.k8s.api.core.v1.PodSpec`) when this node is a named type: OpenAPI turns it back into a $ref. */
  readonly 'x-coracle-name'?: string;
  /** Protobuf field number of the property that holds this node is kept by the parent: property -> number. */
  readonly 'x-coracle-proto'?: Readonly<Record<string, number>>;
  /**
   * Properties that JSON inlines but protobuf keeps in a nested message: property -> path of field numbers, outermost
   * first (`Volume.secret` -> [2, 6]: field 6 of the message in field 2).
   */
  readonly 'x-coracle-proto-inline'?: Readonly<Record<string, readonly number[]>>;
}

/** The schema of the members of a map; undefined where there is none, or any member is allowed. */
export const restSchema = ({ additionalProperties: rest }: Schema): Schema | undefined =>
  typeof rest === 'object' ? rest : undefined;

/** The schema of one member of an object; undefined where none is declared. */
export const memberSchema = (schema: Schema, key: string): Schema | undefined =>
  schema.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : restSchema(schema);

/** A CEL rule (apiextensions/v1 ValidationRule). */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/** The Go type that a node of a built-in kind describes, without its package (`PodSpec`); undefined for other nodes. */
export function goTypeName(schema: Schema): string | undefined {
  const name = schema['x-coracle-name'];
  return name?.slice(name.lastIndexOf('.') + 1);
}

/** True for an amount in a definition, as KubeVirt's have it: a whole number or text, and the pattern of a quantity. */
export const isQuantitySchema = (schema: Schema): boolean =>
  schema['x-kubernetes-int-or-string'] === true && schema.pattern?.startsWith(QUANTITY_PATTERN_START) === true;

/** The start of the pattern that controller-gen writes for resource.Quantity. */
const QUANTITY_PATTERN_START = '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)';
