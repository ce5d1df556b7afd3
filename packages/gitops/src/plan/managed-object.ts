/** A declared object as it is applied: with what says whose it is and where it comes from. */
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { ReadonlyObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { withKeptParts } from '../server-fields/kept-parts.ts';
import { applySetId } from '../status/apply-set.ts';
import {
  CLUSTER_NAME,
  DECLARED_FIELDS,
  DECLARED_VERSION,
  DEPENDENTS,
  GIT_CONTEXT,
  MANAGED,
  MANAGED_BY,
  MANAGER,
  MUTATION,
  OWNING_INVENTORY,
  PART_OF,
  RESOURCE_ID,
  SOURCE_PATH,
  TOKEN,
} from '../status/metadata-keys.ts';
import { inventoryId, managerName, type SyncIdentity } from '../status/sync-identity.ts';
import type { Declared } from './declared.ts';
import { resourceId } from './object-ref.ts';

export interface SourceContext {
  readonly repo: string;
  readonly branch?: string;
  readonly rev?: string;
}

export interface ManagedBy {
  readonly sync: SyncIdentity;
  readonly commit: string;
  /** '' = the cluster has none. */
  readonly clusterName: string;
  /** Where it comes from, as annotation `git-context` says: of every kind of source. */
  readonly context: SourceContext;
  /** Objects say which of their fields are declared, for the admission that guards them. */
  readonly isGuarded: boolean;
}

/** The metadata alone. */
export function managementMetadata(one: Declared, { sync, commit, context, clusterName }: ManagedBy) {
  return {
    labels: {
      [MANAGED_BY.key]: MANAGED_BY.value,
      [PART_OF]: applySetId(sync),
      [DECLARED_VERSION]: one.type.version,
    },
    annotations: {
      [MANAGED]: 'enabled',
      [RESOURCE_ID]: resourceId(one.ref),
      [MANAGER]: managerName(sync),
      [OWNING_INVENTORY]: inventoryId(sync),
      [TOKEN]: one.since ?? commit,
      ...(one.path !== undefined && { [SOURCE_PATH]: one.path }),
      ...(clusterName !== '' && { [CLUSTER_NAME]: clusterName }),
      [GIT_CONTEXT]: JSON.stringify(context),
      ...(one.dependents !== undefined && { [DEPENDENTS]: one.dependents }),
      // Of an object that is left alone otherwise this is changed all the same.
      ...(one.object.metadata.annotations?.[MUTATION] === 'ignore' && { [MUTATION]: 'ignore' }),
    },
  };
}

/**
 * The whole object, with the parts of the live one that are the server's. `fields`: its annotation of declared fields; while
 * that is not known anew, the one that the live object has.
 */
export function managedObject(
  one: Declared,
  by: ManagedBy,
  live?: ReadonlyObject,
  fields: string | undefined = liveDeclaredFields(live, by),
): UnstructuredObject {
  const { labels, annotations } = managementMetadata(one, by);
  const declared = withKeptParts(one.object, live);
  const { creationTimestamp: _null, ...metadata } = declared.metadata;
  const { status: _empty, ...object } = declared;
  return {
    ...object,
    apiVersion: apiVersionOf(one.type),
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...labels },
      annotations: {
        ...metadata.annotations,
        ...annotations,
        ...(fields !== undefined && { [DECLARED_FIELDS]: fields }),
      },
    },
  } as UnstructuredObject;
}

/** What a live object says of its declared fields, where it is to say so. */
export const liveDeclaredFields = (live: ReadonlyObject | undefined, by: ManagedBy): string | undefined =>
  by.isGuarded ? live?.metadata.annotations?.[DECLARED_FIELDS] : undefined;
