/**
 * The API client that controllers and agents use: typed verbs over an `ApiHandler`. It does not know whether the
 * handler is the embedded server or HTTPS to a cluster. Failures of the API are thrown as ApiError.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey, ObjectList, WatchEventType } from '@coracle/apimachinery/meta/object';

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface ListCallOptions extends CallOptions {
  /** All namespaces when undefined. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  /** Only apiVersion, kind and metadata of each object (PartialObjectMetadata). */
  readonly metadataOnly?: boolean;
}

export interface WatchCallOptions extends ListCallOptions {
  readonly allowWatchBookmarks?: boolean;
  readonly sendInitialEvents?: boolean;
  readonly timeoutSeconds?: number;
  /**
   * Events may be frozen and shared with others: the caller promises to change nothing in them. With `metadataOnly`
   * managedFields may be missing.
   */
  readonly readOnly?: boolean;
}

export interface WatchEvent<T> {
  readonly type: WatchEventType;
  /** For ERROR this is a Status. */
  readonly object: T;
}

/** A patch and how to read it. `fieldManager` is required for 'apply'. */
export type Patch =
  | { readonly type: 'json'; readonly body: readonly JsonPatchOperation[] }
  | { readonly type: 'merge' | 'strategic'; readonly body: unknown }
  | { readonly type: 'apply'; readonly body: unknown; readonly fieldManager: string; readonly force?: boolean };

export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly value?: unknown;
  readonly from?: string;
}

export interface DeleteCallOptions extends CallOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: boolean;
}

export interface SubresourceOptions extends CallOptions {
  /** A patch of `status` goes where the server takes it: to the object itself for a kind that has no `/status` there. */
  readonly subresource?: string;
  /** Everything but the write: admission, validation, the object as it would be. */
  readonly dryRun?: boolean;
  /** Who writes, for managedFields; the user agent's name when absent. */
  readonly fieldManager?: string;
  /** What to do with unknown and duplicate fields; the server's default is Warn. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
  /** Only apiVersion, kind and metadata of the object (PartialObjectMetadata). */
  readonly metadataOnly?: boolean;
}

export interface Client {
  /**
   * The same server, asked in another's name (`Impersonate-User`): what that one may not do is refused with 403. Takes the
   * right to impersonate it.
   */
  impersonating(user: string): Client;
  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, options?: SubresourceOptions): Promise<T>;
  /** One page when `limit` is given, else everything. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListCallOptions): Promise<ObjectList<T>>;
  /** Namespace is the object's. With `subresource`, POSTs to `<name>/<subresource>`. */
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: SubresourceOptions): Promise<T>;
  update<T extends KubeObject>(type: ResourceType<T>, object: T, options?: SubresourceOptions): Promise<T>;
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options?: SubresourceOptions,
  ): Promise<T>;
  /** Resolves when the server accepted the deletion (the object may stay for its finalizers). Missing objects throw 404. */
  delete<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, options?: DeleteCallOptions): Promise<void>;
  /** Yields events until the server ends the stream or the signal fires. */
  watch<T extends KubeObject>(type: ResourceType<T>, options: WatchCallOptions): AsyncIterable<WatchEvent<T>>;
  /** Any request below the API root, for endpoints that are no resources; path begins with '/'. JSON in and out; text out when it is no JSON. */
  raw(
    method: string,
    path: string,
    options?: CallOptions & { readonly query?: string; readonly body?: unknown },
  ): Promise<unknown>;
}
