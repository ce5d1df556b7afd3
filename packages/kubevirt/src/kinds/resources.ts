/** The KubeVirt kinds as served resources, and as the CustomResourceDefinitions that `kubectl get crd` shows. */
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { builtinSchema } from '@coracle/apimachinery/types/builtin-types';
import { type DefinedKind, establishedDefinition } from '@coracle/apimachinery/types/established-definition';
import type { ResourceInfo, ScalePaths, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { customStrategy } from '@coracle/apimachinery/types/strategy';
import type { CustomResourceDefinition } from '@coracle/apimachinery/types/types';
import { age, KINDS, type KindTable, VERSIONS, type Version } from './kind-tables.ts';
import { KUBEVIRT_GROUP } from './kinds.ts';
import { toStructuralSchema } from './structural-schema.ts';

/** In the order in which discovery of custom resources lists them. */
const VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const;

/** Where those that can be scaled have their numbers. */
const SCALE: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.labelSelector',
};

const hasStatusSubresource = ({ status, statusInObject }: KindTable): boolean =>
  status !== undefined && statusInObject !== true;
const groupOf = (table: KindTable): string => table.group ?? KUBEVIRT_GROUP;

function schemaOf(table: KindTable, metadata: Schema): Schema {
  const properties: Record<string, Schema> = Object.create(null);
  properties['apiVersion'] = { type: 'string', description: 'Version of the API this object is written in.' };
  properties['kind'] = { type: 'string', description: 'Kind of this object.' };
  properties['metadata'] = metadata;
  properties['spec'] = toStructuralSchema(table.spec);
  if (table.status !== undefined) properties['status'] = toStructuralSchema(table.status);
  return { type: 'object', description: table.description, properties, required: ['spec'] };
}

function infoOf(table: KindTable, version: Version, schema: Schema): ResourceInfo {
  const singular = table.kind.toLowerCase();
  const storage = table.storage ?? 'v1';
  const group = groupOf(table);
  const subresources: SubresourceInfo[] = [];
  const verbs = ['get', 'patch', 'update'];
  if (hasStatusSubresource(table)) subresources.push({ name: 'status', kind: table.kind, verbs });
  if (table.scalable)
    subresources.push({ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs, scale: SCALE });
  return {
    group,
    version: version.name,
    resource: table.plural ?? `${singular}s`,
    singular,
    kind: table.kind,
    listKind: `${table.kind}List`,
    namespaced: table.scope !== 'Cluster',
    verbs: VERBS,
    shortNames: table.shortNames,
    categories: table.categories ?? ['all'],
    subresources,
    schema,
    // A CustomResourceDefinition without columns is shown with the age alone.
    columns: table.columns.length > 0 ? table.columns : [age],
    selectableFields: {},
    strategy: customStrategy({ statusSubresource: hasStatusSubresource(table) }),
    ...(version.name !== storage && { storageVersion: `${group}/${storage}` }),
    ...(version.deprecationWarning !== undefined && { deprecationWarning: version.deprecationWarning }),
  };
}

let resources: readonly ResourceInfo[] | undefined;

/** Every served version of every KubeVirt kind; the stored version of a kind comes without `storageVersion`. */
export function kubevirtResources(): readonly ResourceInfo[] {
  resources ??= KINDS.flatMap((table) => {
    const schema = schemaOf(table, builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'));
    return (table.versions ?? VERSIONS).map((version) => infoOf(table, version, schema));
  });
  return resources;
}

/** The CustomResourceDefinition of each kind, once. `now` is the time their conditions carry. */
export function kubevirtCrds(now: number): readonly CustomResourceDefinition[] {
  return kubevirtResources()
    .filter(({ storageVersion }) => storageVersion === undefined)
    .map((info) => kubevirtCrd(info, now));
}

/**
 * The CustomResourceDefinition of the kind that `info` (any version of it) serves, with the status of an accepted one.
 * `now` is the time its conditions carry.
 * @throws Error when `info` is no KubeVirt resource
 */
export function kubevirtCrd(info: ResourceInfo, now: number): CustomResourceDefinition {
  const table = KINDS.find((candidate) => info.group === groupOf(candidate) && candidate.kind === info.kind);
  if (table === undefined) throw new Error(`${info.group}/${info.kind} is not a kind of ${KUBEVIRT_GROUP}`);
  return establishedDefinition(
    {
      group: info.group,
      kind: info.kind,
      plural: info.resource,
      shortNames: info.shortNames,
      categories: info.categories,
      scope: table.scope ?? 'Namespaced',
      labels: info.kind === 'KubeVirt' ? { 'operator.kubevirt.io': '' } : { 'kubevirt.io': '' },
      storage: table.storage ?? 'v1',
      versions: (table.versions ?? VERSIONS).map((version) => versionOf(table, version)),
    },
    now,
  );
}

function versionOf(table: KindTable, version: Version): DefinedKind['versions'][number] {
  return {
    name: version.name,
    ...(version.deprecationWarning !== undefined && {
      deprecated: true,
      deprecationWarning: version.deprecationWarning,
    }),
    schema: { openAPIV3Schema: schemaOf(table, { type: 'object' }) as Record<string, unknown> },
    ...(hasStatusSubresource(table) && {
      subresources: { status: {}, ...(table.scalable && { scale: { ...SCALE } }) },
    }),
    ...(table.columns.length > 0 && {
      additionalPrinterColumns: table.columns.map(({ name, type, description, priority, path }) => ({
        name,
        type,
        ...(description !== undefined && { description }),
        ...(priority > 0 && { priority }),
        jsonPath: path!,
      })),
    }),
  };
}
