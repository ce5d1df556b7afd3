/** The shapes every Kubernetes object shares (API conventions, meta/v1). */

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: 'Apply' | 'Update';
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** Any API object. Typed kinds extend it; the server works on it as it is. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** An object seen as an open JSON value: what the server and generic code handle. */
export interface UnstructuredObject extends KubeObject {
  [field: string]: unknown;
}

export interface ObjectList<T extends KubeObject = KubeObject> {
  apiVersion: string;
  kind: string;
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

/** Namespace and name; namespace is '' for cluster-scoped objects. */
export interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

/** 'namespace/name', or 'name' when cluster-scoped: for logs, queues and maps. */
export const keyText = (key: ObjectKey): string => (key.namespace === '' ? key.name : `${key.namespace}/${key.name}`);

/** The key of an object. */
export const keyOf = (object: DeepReadonly<KubeObject>): ObjectKey => ({
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name ?? '',
});

/** A read-only view, all the way down: what caches hand out. */
export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

let lastSecond = { second: Number.NaN, text: '' };

/** `2006-01-02T15:04:05Z`: meta/v1 Time, whole seconds UTC. */
export function formatTime(ms: number): string {
  // Every write stamps the current second, several times: it is spelled out once.
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond.second) {
    lastSecond = { second, text: `${new Date(second * 1000).toISOString().slice(0, 19)}Z` };
  }
  return lastSecond.text;
}

/** `2006-01-02T15:04:05.000000Z`: meta/v1 MicroTime. */
export const formatMicroTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 23)}000Z`;

/** An object as stores and caches hand it out: nobody changes it. */
export type ReadonlyObject = DeepReadonly<KubeObject>;
