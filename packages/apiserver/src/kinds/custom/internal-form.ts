/**
 * Parts of a definition as upstream's error texts show them. There the error carries a value of the internal Go types,
 * which have no JSON names: every field is printed, under the name of the struct's, set or not.
 */
import { sortMembers } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { CrdColumn, CrdSubresources, CrdVersion, RawSchema } from './crd.ts';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const flag = (value: unknown): boolean => value === true;
const pointer = (value: unknown): unknown => value ?? null;
const json = (value: unknown): unknown => (value === undefined || value === null ? null : sortMembers(value));
const list = <T>(value: unknown, each: (item: T) => unknown): unknown =>
  Array.isArray(value) ? value.map(each as (item: unknown) => unknown) : null;

/** One entry of x-kubernetes-validations. */
export const internalRule = (rule: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  Rule: text(rule['rule']),
  Message: text(rule['message']),
  MessageExpression: text(rule['messageExpression']),
  Reason: pointer(rule['reason']),
  FieldPath: text(rule['fieldPath']),
  OptionalOldSelf: pointer(rule['optionalOldSelf']),
});

const isSchema = (value: unknown): value is RawSchema => isJsonObject(value);
const one = (value: unknown): unknown => (isSchema(value) ? internalSchema(value) : null);
const some = (value: unknown): unknown => list<RawSchema>(value, internalSchema);

function named(value: unknown, each: (member: unknown) => unknown = one): unknown {
  if (!isJsonObject(value)) return null;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, each(value[key])]),
  );
}

/** A JSONSchemaPropsOrBool; a schema implies that the rest is allowed. */
const schemaOrBool = (value: unknown): unknown =>
  value === undefined || value === null ? null : { Allows: value !== false, Schema: one(value) };

/** A JSONSchemaPropsOrArray. */
export const internalItems = (value: unknown): unknown =>
  value === undefined || value === null ? null : { Schema: one(value), JSONSchemas: some(value) };

/** A JSONSchemaProps. */
export function internalSchema(schema: RawSchema): Record<string, unknown> {
  const docs = schema['externalDocs'];
  return {
    ID: text(schema['id']),
    Schema: text(schema['$schema']),
    Ref: pointer(schema['$ref']),
    Description: text(schema['description']),
    Type: text(schema['type']),
    Nullable: flag(schema['nullable']),
    Format: text(schema['format']),
    Title: text(schema['title']),
    Default: json(schema['default']),
    Maximum: pointer(schema['maximum']),
    ExclusiveMaximum: flag(schema['exclusiveMaximum']),
    Minimum: pointer(schema['minimum']),
    ExclusiveMinimum: flag(schema['exclusiveMinimum']),
    MaxLength: pointer(schema['maxLength']),
    MinLength: pointer(schema['minLength']),
    Pattern: text(schema['pattern']),
    MaxItems: pointer(schema['maxItems']),
    MinItems: pointer(schema['minItems']),
    UniqueItems: flag(schema['uniqueItems']),
    MultipleOf: pointer(schema['multipleOf']),
    Enum: list(schema['enum'], json),
    MaxProperties: pointer(schema['maxProperties']),
    MinProperties: pointer(schema['minProperties']),
    Required: pointer(schema['required']),
    Items: internalItems(schema['items']),
    AllOf: some(schema['allOf']),
    OneOf: some(schema['oneOf']),
    AnyOf: some(schema['anyOf']),
    Not: one(schema['not']),
    Properties: named(schema['properties']),
    AdditionalProperties: schemaOrBool(schema['additionalProperties']),
    PatternProperties: named(schema['patternProperties']),
    Dependencies: named(schema['dependencies'], (value) => ({ Schema: one(value), Property: list(value, json) })),
    AdditionalItems: schemaOrBool(schema['additionalItems']),
    Definitions: named(schema['definitions']),
    ExternalDocs: isJsonObject(docs) ? { Description: text(docs['description']), URL: text(docs['url']) } : null,
    Example: json(schema['example']),
    XPreserveUnknownFields: pointer(schema['x-kubernetes-preserve-unknown-fields']),
    XEmbeddedResource: flag(schema['x-kubernetes-embedded-resource']),
    XIntOrString: flag(schema['x-kubernetes-int-or-string']),
    XListMapKeys: pointer(schema['x-kubernetes-list-map-keys']),
    XListType: pointer(schema['x-kubernetes-list-type']),
    XMapType: pointer(schema['x-kubernetes-map-type']),
    XValidations: list<Record<string, unknown>>(schema['x-kubernetes-validations'], internalRule),
  };
}

/** The parts of a version that stand at the top of the internal form when every version has the same. */
export const VERSION_PARTS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;
export type VersionPart = (typeof VERSION_PARTS)[number];

/** The versions, without the parts that all of them share. */
export function internalVersions(versions: readonly CrdVersion[], shared: ReadonlySet<VersionPart>): unknown {
  if (versions.length === 0) return null;
  return versions.map((version) => {
    const own = <K extends VersionPart>(part: K): CrdVersion[K] | undefined =>
      shared.has(part) ? undefined : version[part];
    const schema = own('schema');
    return {
      Name: version.name ?? '',
      Served: version.served === true,
      Storage: version.storage === true,
      Deprecated: version.deprecated === true,
      DeprecationWarning: pointer(version.deprecationWarning),
      Schema: schema === undefined ? null : { OpenAPIV3Schema: one(schema.openAPIV3Schema) },
      Subresources: internalSubresources(own('subresources')),
      AdditionalPrinterColumns: list<CrdColumn>(own('additionalPrinterColumns'), (column) => ({
        Name: column.name ?? '',
        Type: column.type ?? '',
        Format: column.format ?? '',
        Description: column.description ?? '',
        Priority: column.priority ?? 0,
        JSONPath: column.jsonPath ?? '',
      })),
      SelectableFields: list<{ jsonPath?: string }>(own('selectableFields'), (field) => ({
        JSONPath: field.jsonPath ?? '',
      })),
    };
  });
}

/** A part of a version for comparing: empty lists and maps are as good as none. */
export function comparable(version: CrdVersion, part: VersionPart): unknown {
  const others = new Set(VERSION_PARTS.filter((other) => other !== part));
  const [{ Schema, Subresources, AdditionalPrinterColumns, SelectableFields }] = internalVersions(
    [version],
    others,
  ) as readonly [Record<string, unknown>];
  return withoutEmpty([Schema, Subresources, AdditionalPrinterColumns, SelectableFields]);
}

/** The same of a schema. */
export const comparableSchema = (schema: RawSchema): unknown => withoutEmpty(internalSchema(schema));

function withoutEmpty(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(withoutEmpty);
  const entries = Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)] as const);
  const kept = entries.filter(([key, member]) => member !== null || key === 'Status');
  return kept.length === 0 ? null : Object.fromEntries(kept);
}

function internalSubresources(subresources: CrdSubresources | undefined): unknown {
  if (subresources === undefined) return null;
  const { status, scale } = subresources;
  return {
    Status: status === undefined || status === null ? null : {},
    Scale:
      scale === undefined || scale === null
        ? null
        : {
            SpecReplicasPath: scale.specReplicasPath ?? '',
            StatusReplicasPath: scale.statusReplicasPath ?? '',
            LabelSelectorPath: pointer(scale.labelSelectorPath),
          },
  };
}
