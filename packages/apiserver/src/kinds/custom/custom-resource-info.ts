/** What a definition serves, as the server knows every other resource: one ResourceInfo for each served version. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { eachFromBelow } from '@coracle/apimachinery/meta/each-from-below';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import { defaultedFields } from '@coracle/apimachinery/schema/defaulted-fields';
import { hasEmbedded } from '@coracle/apimachinery/schema/embedded-resource';
import { CUSTOM_ROOT_SCHEMA } from '@coracle/apimachinery/schema/object-meta-schema';
import { hasMapLists } from '@coracle/apimachinery/schema/ratcheting';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { childSchemas } from '@coracle/apimachinery/schema/schema-reach';
import type {
  PrinterColumn,
  RemoteConversion,
  ResourceInfo,
  StoredView,
  SubresourceInfo,
} from '@coracle/apimachinery/types/resource';
import { customStrategy } from '@coracle/apimachinery/types/strategy';
import type { StageResource } from '../../registry/stage-resource.ts';
import { compareVersions } from '../discovery/discovery.ts';
import { readJsonPath } from '../json-path.ts';
import { type Crd, type CrdNames, type CrdVersion, storageVersionOf } from './crd.ts';
import { type KnownSchemas, rawSchemasBelow, rootSchemaOf, toSchema } from './crd-schema.ts';
import { createCustomValidation } from './custom-validation.ts';
import { hasRules } from './rules.ts';
import { createStoredShapes, type StoredShapes } from './stored-shapes.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;
const WRITE_VERBS = ['get', 'patch', 'update'] as const;

export interface CustomInfoOptions {
  /** What `versionSchemas` made of the versions; made here where absent. */
  readonly schemas?: ReadonlyMap<string, Schema>;
  /** Objects written at this store revision or later were written under the definition as it is now. */
  readonly unchangedSince: number;
  /** Shows a large stored object, given as its JSON, in the version of a resource, on another thread; absent = here. */
  readonly viewElsewhere?: (resource: StageResource, json: Uint8Array) => Promise<Record<string, unknown>>;
  /** Converts between versions with a webhook; absent = versions differ in apiVersion only. */
  readonly convert?: (
    objects: readonly Readonly<Record<string, unknown>>[],
    apiVersion: string,
  ) => Promise<Record<string, unknown>[]>;
}

/** The infos of every version of a definition, by name; `served` says which of them clients may see. */
export function customResourceInfos(
  crd: Crd,
  options: CustomInfoOptions,
): { readonly served: readonly ResourceInfo[]; readonly storage: ResourceInfo } {
  const { spec } = crd;
  const schemas = options.schemas ?? versionSchemas(spec.versions);
  const storage = storageVersionOf(spec)!;
  const shapes = createStoredShapes(spec.group, schemas);
  const versions = (): readonly ResourceInfo[] => infos;
  const infos: readonly ResourceInfo[] = spec.versions.map((version) => ({
    ...infoOf(crd, { version, storage, schemas, shapes, options }),
    versions,
  }));
  return {
    served: infos.filter((_, i) => spec.versions[i]!.served),
    storage: infos[spec.versions.indexOf(storage)]!,
  };
}

/** The schemas of a definition's versions, by name. Versions written alike share one, and with it everything that is compiled from it. */
export function versionSchemas(versions: readonly CrdVersion[], known: KnownSchemas = new Map()): Map<string, Schema> {
  const schemas = new Map<string, Schema>();
  const made = new Map<string, Schema>();
  for (const { name, schema: from } of versions) {
    const text = versions.length > 1 ? (JSON.stringify(from) ?? '') : '';
    const schema = made.get(text) ?? rootSchemaOf(from?.openAPIV3Schema, known);
    made.set(text, schema);
    schemas.set(name, schema);
  }
  return schemas;
}

/**
 * The same for a definition of very many fields, looked through for all that serving it asks first; `pause` is awaited
 * between some hundred of them.
 */
export async function largeVersionSchemas(versions: readonly CrdVersion[], pause: Pause): Promise<Map<string, Schema>> {
  const known: KnownSchemas = new Map();
  for (const { schema } of versions) {
    const raw = schema?.openAPIV3Schema;
    if (raw === undefined) continue;
    await eachFromBelow(raw, rawSchemasBelow, (node) => toSchema(node, known), pause);
    await eachFromBelow(toSchema(raw, known), childSchemas, lookInto, pause);
  }
  await pause();
  return versionSchemas(versions, known);
}

/** Once they were asked of all that lies below a node, they know of it in no time. */
function lookInto(schema: Schema): void {
  hasEmbedded(schema);
  hasRules(schema);
  hasMapLists(schema);
  defaultedFields(schema);
}

interface Making {
  readonly version: CrdVersion;
  readonly storage: CrdVersion;
  readonly schemas: ReadonlyMap<string, Schema>;
  readonly shapes: StoredShapes;
  readonly options: CustomInfoOptions;
}

function infoOf(crd: Crd, making: Making): ResourceInfo {
  const { version, storage, schemas, options } = making;
  const { group, scope } = crd.spec;
  // Names that are taken stay out of discovery until they are free.
  const accepted = crd.status?.acceptedNames;
  const names: CrdNames = accepted?.plural ? accepted : crd.spec.names;
  const schema = schemas.get(version.name)!;
  const hasStatus = version.subresources?.status !== undefined;
  const warning = deprecationOf(crd, version);
  return {
    group,
    version: version.name,
    resource: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    namespaced: scope === 'Namespaced',
    verbs: VERBS,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    subresources: subresourcesOf(version, names.kind),
    schema,
    columns: columnsOf(version),
    selectableFields: selectableFieldsOf(version),
    strategy: customStrategy({
      statusSubresource: hasStatus,
      wideIntegers: true,
      validateSchema: createCustomValidation(schema, { scale: version.subresources?.scale }),
    }),
    decodeSchema: CUSTOM_ROOT_SCHEMA,
    ...(version !== storage && { storageVersion: `${group}/${storage.name}` }),
    view: viewOf(making, { group, version: version.name, resource: names.plural, kind: names.kind }),
    ...(options.convert && crd.spec.versions.length > 1 && { remote: remoteOf(making, options.convert) }),
    ...(warning !== undefined && { deprecationWarning: warning }),
  };
}

/** Versions of one shape share the stored bytes; others are pruned to what their own schema knows. */
function viewOf({ version, storage, schemas, shapes, options }: Making, resource: StageResource): StoredView {
  const { viewElsewhere } = options;
  const stored = schemas.get(storage.name)!;
  const sameShape = deepEqual(schemas.get(version.name), stored);
  return {
    fromStored: (object) => shapes.shown(shapes.completed(object), version.name),
    ...(viewElsewhere && { fromLarge: (json) => viewElsewhere(resource, json) }),
    toStored: (object) => (sameShape ? (object as Record<string, unknown>) : shapes.shown(object, storage.name)),
    ...(sameShape && isWrittenComplete(stored, schemas) && { currentFrom: options.unchangedSince }),
  };
}

/**
 * What is written in a version of another shape was given the defaults of that version alone: those of the stored one it
 * is given each time it is read. Versions that look alike share their schema.
 */
const isWrittenComplete = (stored: Schema, schemas: ReadonlyMap<string, Schema>): boolean =>
  defaultedFields(stored) === 0 || [...schemas.values()].every((schema) => schema === stored);

function remoteOf(
  { version, storage, shapes }: Making,
  convert: NonNullable<CustomInfoOptions['convert']>,
): RemoteConversion {
  const converted = async (objects: Parameters<typeof convert>[0], to: string): Promise<Record<string, unknown>[]> =>
    (await convert(objects, shapes.apiVersionOf(to))).map((object) => shapes.shown(object, to));
  return {
    fromStored: (objects) => converted(objects.map(shapes.completed), version.name),
    toStored: async (object) => (await converted([object], storage.name))[0]!,
    fromOther: (objects) => converted(objects, version.name),
  };
}

function deprecationOf({ spec }: Crd, version: CrdVersion): string | undefined {
  if (!version.deprecated) return undefined;
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const better = spec.versions
    .filter(({ name, served, deprecated }) => served && !deprecated && compareVersions(name, version.name) < 0)
    .sort((a, b) => compareVersions(a.name, b.name))[0];
  const advice = better === undefined ? '' : `; use ${spec.group}/${better.name} ${spec.names.kind}`;
  return `${spec.group}/${version.name} ${spec.names.kind} is deprecated${advice}`;
}

function subresourcesOf({ subresources }: CrdVersion, kind: string): SubresourceInfo[] {
  const found: SubresourceInfo[] = [];
  if (subresources?.status !== undefined) found.push({ name: 'status', kind, verbs: WRITE_VERBS });
  const scale = subresources?.scale;
  if (scale !== undefined) {
    const { specReplicasPath, statusReplicasPath, labelSelectorPath } = scale;
    found.push({
      name: 'scale',
      kind: 'Scale',
      group: 'autoscaling',
      version: 'v1',
      verbs: WRITE_VERBS,
      scale: { specReplicasPath, statusReplicasPath, ...(labelSelectorPath && { labelSelectorPath }) },
    });
  }
  return found;
}

const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description:
    'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata',
  priority: 0,
  path: '.metadata.creationTimestamp',
};

function columnsOf({ additionalPrinterColumns: columns = [] }: CrdVersion): PrinterColumn[] {
  if (columns.length === 0) return [AGE];
  return columns.map(({ name, type, format, description, priority, jsonPath }) => ({
    name,
    type: type as PrinterColumn['type'],
    ...(format && { format }),
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    priority: priority ?? 0,
    path: jsonPath,
  }));
}

/** Labels are the paths without the leading dot; a value that is not there matches the empty text. */
function selectableFieldsOf({ selectableFields = [] }: CrdVersion): ResourceInfo['selectableFields'] {
  const reader = (jsonPath: string) => (object: Readonly<Record<string, unknown>>) => {
    const value = readJsonPath(object, jsonPath);
    return ['string', 'number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : '';
  };
  return Object.fromEntries(selectableFields.map(({ jsonPath }) => [jsonPath.replace(/^\./, ''), reader(jsonPath)]));
}
