/**
 * One served resource as data: everything the server must know about a kind to serve it. Built-in kinds come from the
 * generated table (`api/kinds/builtin`), KubeVirt kinds from tables (`kubevirt/kinds`), custom resources from
 * their CustomResourceDefinition: the server treats the three alike.
 */
import type { Schema } from '../schema/schema.ts';
import type { ResourceStrategy } from './strategy.ts';

/** A printed column: `path` is a JSONPath without braces (`.status.phase`), or `cell` computes the value. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 = always shown, > 0 = only with `-o wide`. */
  readonly priority: number;
  readonly path?: string;
  readonly cell?: (object: Readonly<Record<string, unknown>>, now: number) => string | number | boolean | null;
}

/** What a Table says of its rows beside their cells. */
export interface TableRows {
  /** What is to be known of the whole object, as that it has come to its end. */
  readonly conditions?: (object: Readonly<Record<string, unknown>>) => readonly object[] | undefined;
  /** The order of the rows of a list; absent = that of the list. */
  readonly compare?: (a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>) => number;
}

/** Where a scalable kind keeps its replica counts: dotted paths, named as in a CRD's `subresources.scale`. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  /** Leads to a string or a LabelSelector; absent = no selector. */
  readonly labelSelectorPath?: string;
}

export interface SubresourceInfo {
  /** `status`, `scale`, `binding`, `token`, ... */
  readonly name: string;
  readonly kind: string;
  /** Only when they differ from the parent's. */
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
  /** Only for `scale`; absent = `.spec.replicas`, `.status.replicas`, `.spec.selector`. */
  readonly scale?: ScalePaths;
}

/** How a stored object becomes the shape of one version and back. Neither changes what it is given. */
export interface StoredView {
  /** May return the object it was given when nothing is to be changed. */
  fromStored(object: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** As `fromStored`, of a large object's JSON, by another thread; absent where there is none. */
  fromLarge?(json: Uint8Array): Promise<Record<string, unknown>>;
  toStored(object: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Objects written at this revision or later are stored in this shape already; absent = none are. */
  readonly currentFrom?: number;
}

/**
 * Conversion that has to ask somebody else (a webhook), for all objects of a request at once and in their order. Rejects
 * with ApiError 500 when it fails. Objects already in the wanted version are given through.
 */
export interface RemoteConversion {
  fromStored(objects: readonly Readonly<Record<string, unknown>>[]): Promise<Record<string, unknown>[]>;
  toStored(object: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  /** Objects on their way through a write, in whichever version, as this version shows them: nothing is completed. */
  fromOther(objects: readonly Readonly<Record<string, unknown>>[]): Promise<Record<string, unknown>[]>;
}

/** One served resource in one version. */
export interface ResourceInfo {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly SubresourceInfo[];
  /** The schema of the whole object. */
  readonly schema: Schema;
  /** Columns after Name; empty = `Created At` fallback. */
  readonly columns: readonly PrinterColumn[];
  /** Absent = rows are their cells, in the order of the list. */
  readonly rows?: TableRows;
  /** Field selectors beside metadata.name/namespace: label -> reader of the value. */
  readonly selectableFields: Readonly<Record<string, (object: Readonly<Record<string, unknown>>) => string>>;
  /** What the registry does with its objects. */
  readonly strategy: ResourceStrategy;
  /** Every version that the kind is defined in, the unserved ones too, in that order; absent = those that are served. */
  readonly versions?: () => readonly ResourceInfo[];
  /** Storage version (`group/version`) when it differs from this one. */
  readonly storageVersion?: string;
  /** The resource that keeps the objects, when this one is a second face of it. */
  readonly storedAs?: { readonly group: string; readonly resource: string };
  /** Absent = versions differ in apiVersion only. */
  readonly view?: StoredView;
  /** Goes before `view` for objects in other versions. Readers have views prepared (`prepareViews`) before they look. */
  readonly remote?: RemoteConversion;
  /** What must decode before the kind's schema is looked at; absent = the schema itself. Custom resources: metadata. */
  readonly decodeSchema?: Schema;
  readonly deprecationWarning?: string;
}

/** `group/resource`: the prefix under which objects of all versions of a resource are stored; core is `/pods`. */
export const storagePrefix = (info: Pick<ResourceInfo, 'group' | 'resource' | 'storedAs'>): string =>
  info.storedAs === undefined ? `${info.group}/${info.resource}` : `${info.storedAs.group}/${info.storedAs.resource}`;
