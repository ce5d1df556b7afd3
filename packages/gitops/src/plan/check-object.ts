/** What upstream refuses in one declared object, by its codes. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ObjectRef } from '../kinds/kinds.ts';
import { DELETE_WITH_DEPENDENTS, isReserved, MANAGED, SYSTEM_NAMESPACES } from '../status/metadata-keys.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import { isDeleteMode, MODES_TEXT } from './dependents.ts';

export interface Problem {
  readonly code: number;
  readonly text: string;
}

export interface Place {
  readonly ref: ObjectRef;
  readonly sync: SyncIdentity;
  /** Undefined when the kind is not known. */
  readonly type: ResourceType | undefined;
}

/** Fields that the server sets. */
const SERVER_FIELDS = [
  'ownerReferences',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
];
const CONFIG_GROUPS: ReadonlySet<string> = new Set([
  'configsync.gke.io',
  'configmanagement.gke.io',
  'kpt.dev',
  'clusterregistry.k8s.io',
]);
const HIERARCHY_KINDS: ReadonlySet<string> = new Set(['Repo', 'HierarchyConfig']);

type Check = (object: UnstructuredObject, place: Place) => Problem | undefined;

/** In this order; the first that finds something decides. */
const CHECKS: readonly Check[] = [
  valuesAreText,
  reservedKeys,
  managedValue,
  deleteMode,
  nameAndNamespace,
  serverFields,
  kinds,
  scope,
];

/** The first thing that is wrong with an object; undefined when nothing is. */
export function checkObject(object: UnstructuredObject, place: Place): Problem | undefined {
  for (const check of CHECKS) {
    const problem = check(object, place);
    if (problem) return problem;
  }
  return undefined;
}

function valuesAreText({ metadata }: UnstructuredObject): Problem | undefined {
  for (const field of ['labels', 'annotations'] as const) {
    const values: unknown = metadata[field];
    if (values === undefined || values === null) continue;
    if (typeof values !== 'object' || Array.isArray(values))
      return { code: 1054, text: `metadata.${field} is not a map` };
    for (const [key, value] of Object.entries(values))
      if (typeof value !== 'string') return { code: 1054, text: `metadata.${field}[${key}] is not a string: quote it` };
  }
  return undefined;
}

function reservedKeys({ metadata }: UnstructuredObject): Problem | undefined {
  const annotation = Object.keys(metadata.annotations ?? {}).find(isReserved);
  if (annotation !== undefined) return { code: 1010, text: `annotation ${annotation} is reserved` };
  const label = Object.keys(metadata.labels ?? {}).find(isReserved);
  return label === undefined ? undefined : { code: 1011, text: `label ${label} is reserved` };
}

function managedValue({ metadata }: UnstructuredObject): Problem | undefined {
  const value = metadata.annotations?.[MANAGED];
  if (value === undefined || value === 'disabled') return undefined;
  return { code: 1005, text: `annotation ${MANAGED} is ${JSON.stringify(value)}; only "disabled" may be declared` };
}

function deleteMode({ metadata }: UnstructuredObject): Problem | undefined {
  const value = metadata.annotations?.[DELETE_WITH_DEPENDENTS];
  if (value === undefined || isDeleteMode(value)) return undefined;
  return { code: 1054, text: `annotation ${DELETE_WITH_DEPENDENTS} is ${JSON.stringify(value)}; it is ${MODES_TEXT}` };
}

function nameAndNamespace({ metadata }: UnstructuredObject, { ref }: Place): Problem | undefined {
  if (typeof metadata.name !== 'string' || metadata.name === '') return { code: 1031, text: 'it has no metadata.name' };
  if (/[/%]/.test(metadata.name) || metadata.name.length > 253 || metadata.name === '.' || metadata.name === '..')
    return { code: 1036, text: `${JSON.stringify(metadata.name)} is not a valid name` };
  if (
    metadata.namespace !== undefined &&
    (typeof metadata.namespace !== 'string' || !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(metadata.namespace))
  )
    return { code: 1055, text: `${JSON.stringify(metadata.namespace)} is not a valid namespace name` };
  if (ref.group === '' && ref.kind === 'Namespace' && SYSTEM_NAMESPACES.has(ref.name))
    return { code: 1034, text: 'namespaces of Config Sync are not declared in a source' };
  return undefined;
}

function serverFields(object: UnstructuredObject): Problem | undefined {
  const metadata = object.metadata as unknown as Record<string, unknown>;
  // A null says nothing: exported manifests have one for the time of creation.
  const field = SERVER_FIELDS.find((name) => metadata[name] !== undefined && metadata[name] !== null);
  if (field !== undefined) return { code: 1045, text: `metadata.${field} is set by the server: take it out` };
  const status = object['status'];
  if (typeof status === 'object' && status !== null && Object.keys(status).length > 0)
    return { code: 1045, text: 'status is set by the server: take it out' };
  return undefined;
}

function kinds(object: UnstructuredObject, { ref, sync }: Place): Problem | undefined {
  if (ref.group === 'configmanagement.gke.io' && HIERARCHY_KINDS.has(ref.kind))
    return { code: 1032, text: `a ${ref.kind} belongs to a source of format hierarchy` };
  if (ref.group === 'configmanagement.gke.io' && ref.kind === 'NamespaceSelector')
    return { code: 1058, text: 'a RepoSync has one namespace, and selects none' };
  if (ref.group === 'configmanagement.gke.io' || ref.group === 'clusterregistry.k8s.io')
    return { code: 1043, text: `${ref.kind} is not supported` };
  if (ref.kind === 'CustomResourceDefinition') {
    const { group, names } = (object['spec'] ?? {}) as { group?: unknown; names?: { plural?: unknown } };
    if (typeof group === 'string' && CONFIG_GROUPS.has(group))
      return { code: 1043, text: 'definitions of the kinds of Config Sync are not declared in a source' };
    if (ref.name !== `${String(names?.plural)}.${String(group)}`)
      return { code: 1048, text: `its name is to be ${String(names?.plural)}.${String(group)}` };
  }
  if (
    ref.group === 'configsync.gke.io' &&
    ref.kind === sync.kind &&
    ref.name === sync.name &&
    ref.namespace === sync.namespace
  )
    return { code: 1069, text: `this ${sync.kind} cannot manage itself: remove it from its own source` };
  return undefined;
}

function scope({ metadata }: UnstructuredObject, { ref, sync, type }: Place): Problem | undefined {
  if (!type) return undefined;
  if (!type.namespaced && metadata.namespace)
    return { code: 1052, text: `a ${ref.kind} is in no namespace: take metadata.namespace out` };
  if (sync.kind !== 'RepoSync') return undefined;
  if (!type.namespaced) return { code: 1058, text: `a RepoSync manages no objects of the cluster` };
  if (ref.namespace !== sync.namespace)
    return { code: 1058, text: `this RepoSync manages only objects of namespace ${sync.namespace}` };
  return undefined;
}
