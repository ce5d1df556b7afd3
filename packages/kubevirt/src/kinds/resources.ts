/** The kinds as served resources, and as the CustomResourceDefinitions that `kubectl get crd` shows. */
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { builtinSchema } from '@coracle/apimachinery/types/builtin-types';
import { establishedDefinition } from '@coracle/apimachinery/types/established-definition';
import type { ResourceInfo, ScalePaths, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { customStrategy } from '@coracle/apimachinery/types/strategy';
import type { CustomResourceDefinition } from '@coracle/apimachinery/types/types';
import {
  columnsOf,
  DEFINED_KINDS,
  type KindTable,
  readColumn,
  SERVED_KINDS,
  type Version,
  versionsOf,
} from './kind-tables.ts';
import { definitionSchema } from './structural-schema.ts';

/** In the order in which discovery of custom resources lists them. */
const VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const;

/** Where those that can be scaled have their numbers. */
const SCALE: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.labelSelector',
};
const AGE = readColumn('Age:date .metadata.creationTimestamp');

const hasStatusSubresource = ({ status, statusInObject }: KindTable): boolean =>
  status !== undefined && statusInObject !== true;
const pluralOf = ({ kind, plural }: KindTable): string => plural ?? `${kind.toLowerCase()}s`;
const storageOf = (table: KindTable): string => table.storage ?? versionsOf(table)[0]!.name;

function schemaOf(table: KindTable, version: string, metadata: Schema): Schema {
  const { description, specIsOptional, status } = table;
  const properties: Record<string, Schema> = Object.assign(Object.create(null), {
    apiVersion: { type: 'string', description: 'Version of the API this object is written in.' },
    kind: { type: 'string', description: 'Kind of this object.' },
    metadata,
    spec: definitionSchema(table.specs?.[version] ?? table.spec),
    ...(status !== undefined && { status: definitionSchema(status) }),
  });
  return { type: 'object', description, properties, ...(!specIsOptional && { required: ['spec'] }) };
}

function infoOf(table: KindTable, version: Version, schema: Schema): ResourceInfo {
  const storage = storageOf(table);
  const { group, kind, shortNames = [], categories = [] } = table;
  const subresources: SubresourceInfo[] = [];
  const verbs = ['get', 'patch', 'update'];
  if (hasStatusSubresource(table)) subresources.push({ name: 'status', kind, verbs });
  if (table.scalable)
    subresources.push({ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs, scale: SCALE });
  const columns = columnsOf(table);
  return {
    group,
    version: version.name,
    resource: pluralOf(table),
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    namespaced: table.scope !== 'Cluster',
    verbs: VERBS,
    shortNames,
    categories,
    subresources,
    schema,
    // A CustomResourceDefinition without columns is shown with the age alone.
    columns: columns.length > 0 ? columns : [AGE],
    selectableFields: {},
    strategy: customStrategy({ statusSubresource: hasStatusSubresource(table) }),
    ...(version.name !== storage && { storageVersion: `${group}/${storage}` }),
    ...(version.deprecationWarning !== undefined && { deprecationWarning: version.deprecationWarning }),
  };
}

let resources: readonly ResourceInfo[] | undefined;

/** Every served version of every KubeVirt kind; the stored version of a kind comes without `storageVersion`. */
export function kubevirtResources(): readonly ResourceInfo[] {
  resources ??= SERVED_KINDS.flatMap((table) => {
    const schema = schemaOf(table, '', builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'));
    return versionsOf(table).map((version) => infoOf(table, version, schema));
  });
  return resources;
}

/** The CustomResourceDefinition of each KubeVirt kind, once. `now` is the time their conditions carry. */
export const kubevirtCrds = (now: number): readonly CustomResourceDefinition[] =>
  SERVED_KINDS.map((table) => crdOf(table, now));

/** Those of the kinds of the other groups, which are made when they are missing: an operator's own take their place. */
export const otherCrds = (now: number): readonly CustomResourceDefinition[] =>
  DEFINED_KINDS.map((table) => crdOf(table, now));

function crdOf(table: KindTable, now: number): CustomResourceDefinition {
  const isOurs = SERVED_KINDS.includes(table);
  return establishedDefinition(
    {
      group: table.group,
      kind: table.kind,
      plural: pluralOf(table),
      ...(table.singular && { singular: table.singular }),
      ...(table.shortNames && { shortNames: table.shortNames }),
      ...(table.categories && { categories: table.categories }),
      scope: table.scope === 'Cluster' ? 'Cluster' : 'Namespaced',
      ...(isOurs && { labels: table.kind === 'KubeVirt' ? { 'operator.kubevirt.io': '' } : { 'kubevirt.io': '' } }),
      storage: storageOf(table),
      versions: versionsOf(table).map((version) => versionOf(table, version)),
    },
    now,
  );
}

function versionOf(table: KindTable, { name, deprecationWarning }: Version) {
  const columns = columnsOf(table);
  return {
    name,
    ...(deprecationWarning !== undefined && { deprecated: true, deprecationWarning }),
    schema: { openAPIV3Schema: schemaOf(table, name, { type: 'object' }) as Record<string, unknown> },
    ...(hasStatusSubresource(table) && {
      subresources: { status: {}, ...(table.scalable && { scale: { ...SCALE } }) },
    }),
    ...(columns.length > 0 && {
      additionalPrinterColumns: columns.map(({ name, type, description, priority, path }) => ({
        name,
        type,
        ...(description !== undefined && { description }),
        ...(priority > 0 && { priority }),
        jsonPath: path!,
      })),
    }),
  };
}
