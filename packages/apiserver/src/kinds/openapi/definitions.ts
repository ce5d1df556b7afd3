/**
 * Turns schemas into OpenAPI definitions: named nodes become definitions that are referred to, everything else stands
 * where it is used. Two dialects: OpenAPI 3.0 keeps what it can express, Swagger 2.0 drops what it cannot (nullable,
 * anyOf, oneOf, not), as apiextensions does when it publishes custom resources.
 */
import type { GroupVersionKind } from '@coracle/apimachinery/meta/gvk';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { builtinKindOf, builtinSchema, hasBuiltinType } from '@coracle/apimachinery/types/builtin-types';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import {
  type EnumField,
  EVERYWHERE,
  fieldDescription,
  kindDescription,
  metadataDescription,
  readEnums,
  readTypeTexts,
} from './texts/type-texts.ts';

type Dialect = 'v3' | 'v2';
export type OpenApiObject = Record<string, unknown>;

export const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const LIST_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta';

/** `kubevirt.io/v1 VirtualMachine` -> `io.kubevirt.v1.VirtualMachine`. */
const customDefinitionName = (gvk: GroupVersionKind): string =>
  `${gvk.group.split('.').reverse().join('.')}.${gvk.version}.${gvk.kind}`;

/** The definition name of a resource's kind. */
const definitionName = (info: ResourceInfo): string =>
  info.strategy.custom ? customDefinitionName(info) : (info.schema['x-coracle-name'] ?? customDefinitionName(info));

/** Keys that mean the same in both dialects and in a Schema. */
const PLAIN_KEYS = [
  'description',
  'title',
  'format',
  'default',
  'enum',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'example',
] as const;

const EXTENSION_KEYS = [
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-validations',
] as const;

/** Fields converted in one go; what a kind has beyond these is put off. */
const TOGETHER = 400;

/** Fields that are yet to be converted. */
interface PutOff {
  readonly out: OpenApiObject;
  readonly properties: Readonly<Record<string, Schema>>;
  readonly names: readonly string[];
  /** What every object has, behind its own fields. */
  readonly common: OpenApiObject;
}

/** Collects definitions for one document. What was asked for is whole after `rest`. */
export class Definitions {
  readonly #dialect: Dialect;
  readonly #found = new Map<string, OpenApiObject>();
  readonly #putOff: PutOff[] = [];
  #left = TOGETHER;
  /** Above zero within a named type: its fields are described as soon as they are converted, so nothing is put off. */
  #within = 0;
  readonly #texts = readTypeTexts();
  readonly #enums = readEnums();
  /** Every group version with its own DeleteOptions and WatchEvent; others declare their kinds themselves. */
  readonly #groupVersions: readonly { readonly group: string; readonly version: string }[];

  constructor(dialect: Dialect, groupVersions: readonly { readonly group: string; readonly version: string }[]) {
    this.#dialect = dialect;
    this.#groupVersions = groupVersions;
  }

  /** Converts what was put off; `pause` is awaited between some hundred fields. */
  async rest(pause: Pause): Promise<void> {
    for (let next = this.#putOff.pop(); next !== undefined; next = this.#putOff.pop()) {
      const { out, properties, names, common } = next;
      for (const name of names) {
        if (this.#left <= 0) {
          await pause();
          this.#left = TOGETHER;
        }
        this.#field(out, name, { properties, common });
      }
      addMissing(out, common);
    }
    if (this.#left <= 0) await pause();
    this.#left = TOGETHER;
  }

  /** The definitions so far, by name in order. */
  toObject(): Record<string, OpenApiObject> {
    return Object.fromEntries([...this.#found].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  ref(name: string): OpenApiObject {
    return { $ref: `${this.#dialect === 'v3' ? '#/components/schemas/' : '#/definitions/'}${name}` };
  }

  /** Publishes a built-in type and gives a reference to it. */
  builtin(name: string): OpenApiObject {
    return this.#named(name, builtinSchema(name));
  }

  /** Publishes the kind of a resource and gives a reference to it. */
  kind(info: ResourceInfo): OpenApiObject {
    const name = definitionName(info);
    if (!info.strategy.custom && info.schema['x-coracle-name'] !== undefined) return this.#named(name, info.schema);
    const own = this.#freeName(name);
    if (!this.#found.has(own)) this.#found.set(own, this.#customKind(info));
    return this.ref(own);
  }

  /** Where all groups share one document, a kind that is called as a type of Kubernetes comes second (kube-openapi). */
  #freeName(name: string): string {
    return this.#dialect === 'v2' && hasBuiltinType(name) ? `${name}_v2` : name;
  }

  /** Publishes the list kind of a resource and gives a reference to it. */
  list(info: ResourceInfo): OpenApiObject {
    const list = `${definitionName(info)}List`;
    const name = info.strategy.custom ? this.#freeName(list) : list;
    if (!this.#found.has(name)) {
      this.#found.set(name, {
        description: kindDescription(info.listKind),
        type: 'object',
        required: ['items'],
        properties: {
          apiVersion: { description: fieldDescription('apiVersion'), type: 'string' },
          items: { description: `List of ${info.resource}`, type: 'array', items: this.kind(info) },
          kind: { description: fieldDescription('kind'), type: 'string' },
          metadata: this.#described(this.builtin(LIST_META), fieldDescription('metadata')),
        },
        ...(info.strategy.custom && selectableFields(info)),
        'x-kubernetes-group-version-kind': [{ group: info.group, kind: info.listKind, version: info.version }],
      });
    }
    return this.ref(name);
  }

  #named(name: string, schema: Schema): OpenApiObject {
    if (this.#found.has(name)) return this.ref(name);
    const definition: OpenApiObject = {};
    // Put down before it is filled: a type may refer to itself.
    this.#found.set(name, definition);
    this.#within++;
    Object.assign(definition, this.#inline(schema, { named: true }));
    this.#within--;
    const kind = builtinKindOf(name);
    const texts = this.#texts.get(name);
    const description = texts?.text ?? (kind && kindDescription(kind.kind));
    if (description !== undefined) definition['description'] ??= description;
    this.#describeFields(
      definition,
      (field) =>
        (name === OBJECT_META ? metadataDescription(field) : undefined) ??
        texts?.fields.get(field) ??
        (kind && fieldDescription(field)) ??
        (isBuiltin(name) ? this.#texts.get(EVERYWHERE)?.fields.get(field) : undefined),
    );
    for (const [field, values] of this.#enums.get(name) ?? []) enumerate(definition, field, values);
    if (kind !== undefined) {
      const { everyGroup, ...gvk } = kind;
      definition['x-kubernetes-group-version-kind'] = everyGroup
        ? this.#groupVersions.map(({ group, version }) => ({ group, kind: kind.kind, version }))
        : [gvk];
    }
    return this.ref(name);
  }

  /** A kind without a named type: apiVersion, kind and metadata are the same for all and are put in here. */
  #customKind(info: ResourceInfo): OpenApiObject {
    const known = {
      ...selectableFields(info),
      'x-kubernetes-group-version-kind': [{ group: info.group, kind: info.kind, version: info.version }],
    };
    // Where anything may stand, kubectl would take whatever is said here for all there is and refuse the rest.
    if (this.#dialect === 'v2' && info.schema['x-kubernetes-preserve-unknown-fields'] === true) {
      return { type: 'object', ...known };
    }
    const common = this.#commonFields();
    const definition = this.#inline(info.schema, { named: true, first: common });
    return { ...definition, type: 'object', properties: definition['properties'] ?? common, ...known };
  }

  /** What every object has at its root. */
  #commonFields(): OpenApiObject {
    return {
      apiVersion: { description: fieldDescription('apiVersion'), type: 'string' },
      kind: { description: fieldDescription('kind'), type: 'string' },
      metadata: this.#described(this.builtin(OBJECT_META), fieldDescription('metadata')),
    };
  }

  #describeFields(definition: OpenApiObject, describe: (field: string) => string | undefined): void {
    const properties = (definition['properties'] ?? {}) as Record<string, OpenApiObject>;
    for (const field of Object.keys(properties)) {
      properties[field] = this.#described(properties[field]!, describe(field));
    }
  }

  /** OpenAPI 3.0 ignores what stands beside `$ref`, so a description needs `allOf` there; Swagger readers take both. */
  #described(schema: OpenApiObject, description: string | undefined): OpenApiObject {
    if (description === undefined || schema['description'] !== undefined) return schema;
    return '$ref' in schema && this.#dialect === 'v3' ? { description, allOf: [schema] } : { description, ...schema };
  }

  #convert(schema: Schema): OpenApiObject {
    const name = schema['x-coracle-name'];
    if (name === undefined) return this.#inline(schema, { named: false });
    // A property may override what its type says (Deployment strategy, claimRef): only the difference stands beside.
    const type = isBuiltin(name) ? builtinSchema(name) : schema;
    const ref = this.#named(name, type);
    const own: OpenApiObject = {};
    for (const key of [...EXTENSION_KEYS, 'description', 'default', 'nullable'] as const) {
      if (schema[key] !== type[key] && schema[key] !== undefined) own[key] = schema[key];
    }
    if (this.#dialect === 'v2') {
      delete own['nullable'];
      return { ...own, ...ref };
    }
    return Object.keys(own).length === 0 ? ref : { ...own, allOf: [ref] };
  }

  #inline(schema: Schema, { named, first }: { named: boolean; first?: OpenApiObject }): OpenApiObject {
    const scalar = builtinScalar(schema, this.#dialect);
    if (scalar !== undefined && named) return scalar;
    const out: OpenApiObject = {};
    for (const key of PLAIN_KEYS) if (schema[key] !== undefined) out[key] = schema[key];
    for (const key of EXTENSION_KEYS) if (schema[key] !== undefined) out[key] = schema[key];
    if (schema.type !== undefined) out['type'] = schema.type;
    if (schema.required !== undefined && schema.required.length > 0) out['required'] = schema.required;
    if (schema.items !== undefined) out['items'] = this.#convert(schema.items);
    const { properties = {} } = schema;
    const isWhole = schema['x-kubernetes-embedded-resource'] === true;
    const names = Object.keys(properties).sort();
    if (names.length > 0 || isWhole) {
      const common = isWhole ? this.#commonFields() : first;
      out['properties'] = this.#convertAll(properties, { names, ...(first && { first }), ...(common && { common }) });
    }
    const { additionalProperties: extra } = schema;
    if (extra !== undefined) out['additionalProperties'] = typeof extra === 'boolean' ? extra : this.#convert(extra);
    if (isWhole) out['required'] = [...new Set([...(schema.required ?? []), 'kind', 'apiVersion'])];
    if (this.#dialect === 'v3') this.#addV3(out, schema);
    else this.#reduceToV2(out, schema);
    return out;
  }

  /** Fields as they stand: those in `first`, then by name, then what of `common` is not there yet. */
  #convertAll(
    properties: Readonly<Record<string, Schema>>,
    {
      names,
      first = {},
      common = {},
    }: Pick<PutOff, 'names'> & { readonly first?: OpenApiObject; common?: OpenApiObject },
  ): OpenApiObject {
    const out: OpenApiObject = Object.assign(Object.create(null), first);
    if (this.#within === 0 && names.length > this.#left) {
      this.#putOff.push({ out, properties, names, common });
      return out;
    }
    for (const name of names) this.#field(out, name, { properties, common });
    addMissing(out, common);
    return out;
  }

  #field(out: OpenApiObject, name: string, { properties, common }: Pick<PutOff, 'properties' | 'common'>): void {
    this.#left--;
    out[name] = Object.hasOwn(common, name) ? common[name] : this.#convert(properties[name]!);
  }

  #addV3(out: OpenApiObject, schema: Schema): void {
    if (schema.nullable === true) out['nullable'] = true;
    for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
      const branches = schema[key];
      if (branches !== undefined) out[key] = branches.map((branch) => this.#convert(branch));
    }
    if (schema.not !== undefined) out['not'] = this.#convert(schema.not);
    if (schema['x-kubernetes-int-or-string'] === true && schema.anyOf === undefined) {
      out['anyOf'] = [{ type: 'integer' }, { type: 'string' }];
    }
  }

  /**
   * Without its constructs a v2 reader must accept more rather than refuse what is valid: what may be null or anything
   * has neither a type nor members (apiextensions-apiserver openapi/v2 ToStructuralOpenAPIV2).
   */
  #reduceToV2(out: OpenApiObject, schema: Schema): void {
    const open = schema['x-kubernetes-preserve-unknown-fields'] === true;
    if (schema.nullable === true || schema['x-kubernetes-int-or-string'] === true) delete out['type'];
    if (schema.nullable === true || open) {
      delete out['items'];
      delete out['properties'];
    }
    const openObject = open && out['type'] === 'object' && schema['x-coracle-name'] === undefined;
    if (openObject || (out['type'] === 'array' && out['items'] === undefined)) delete out['type'];
    // Nothing is added to what may be anything, so nothing of it is required but what the author said.
    const required = requiredInV2(schema, open ? (schema.required ?? []) : ((out['required'] ?? []) as string[]));
    if (required.length > 0) out['required'] = required;
    else delete out['required'];
    delete out['default'];
  }
}

/** Says which values a field has; of one that has a value itself, in words too, as kube-openapi puts them. */
function enumerate(definition: OpenApiObject, field: string, { part, values }: EnumField): void {
  const properties = definition['properties'] as Record<string, OpenApiObject>;
  const schema = properties[field];
  if (schema === undefined) return;
  if (part !== 'itself') {
    properties[field] = { ...schema, [part]: { ...(schema[part] as OpenApiObject), enum: values } };
    return;
  }
  const reported = values.map((value) => ` - \`${JSON.stringify(value)}\``).join('\n');
  const text = `Possible enum values:\n${reported}`;
  const { description } = schema;
  properties[field] = {
    ...schema,
    description: typeof description === 'string' ? `${description}\n\n${text}` : text,
    enum: values,
  };
}

function addMissing(out: OpenApiObject, common: OpenApiObject): void {
  for (const name of Object.keys(common)) if (!Object.hasOwn(out, name)) out[name] = common[name];
}

/** A v2 reader takes null for missing, so nothing that may be null is required. */
function requiredInV2({ properties = {}, additionalProperties }: Schema, required: readonly string[]): string[] {
  if (typeof additionalProperties === 'object' && additionalProperties.nullable === true) return [];
  return required.filter((name) => !Object.hasOwn(properties, name) || properties[name]?.nullable !== true);
}

const selectableFields = ({ selectableFields: fields }: ResourceInfo): OpenApiObject => {
  const paths = Object.keys(fields).map((fieldPath) => ({ fieldPath }));
  return paths.length === 0 ? {} : { 'x-kubernetes-selectable-fields': paths };
};

const isBuiltin = (name: string): boolean => name.startsWith('io.k8s.');

/** The types that stand for one value of two JSON types, as their own definitions. */
function builtinScalar(schema: Schema, dialect: Dialect): OpenApiObject | undefined {
  if (schema.format === 'quantity') {
    return dialect === 'v2' ? { type: 'string' } : { oneOf: [{ type: 'string' }, { type: 'number' }] };
  }
  if (schema.format === 'int-or-string' && schema.type === undefined) {
    return dialect === 'v2'
      ? { type: 'string', format: 'int-or-string' }
      : { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] };
  }
  return undefined;
}
