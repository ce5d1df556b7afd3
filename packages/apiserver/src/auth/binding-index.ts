/**
 * Which bindings name a subject. Kept up to date change by change: there may be thousands of bindings with hundreds of
 * subjects each, and each write of one is followed by a request.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type * as types from '@coracle/apimachinery/types/types';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { lowerBound } from '@coracle/runtime/collections/lower-bound';
import type { Change, ObjectStore, StoredObject } from '../cache/object-store.ts';

export type Subject = DeepReadonly<Pick<types.Subject, 'kind' | 'name' | 'namespace'>>;

export type RoleRef = DeepReadonly<Pick<types.RoleRef, 'kind' | 'name'>>;

interface BindingLike {
  readonly subjects?: readonly Subject[];
  readonly roleRef: RoleRef;
}

/** A binding, whoever its subjects are. */
export interface Bound {
  readonly name: string;
  /** Undefined = everywhere. */
  readonly namespace: string | undefined;
  readonly role: RoleRef;
  /** What stands first decides: bindings of the cluster by name, then the others by namespace and name. */
  readonly order: string;
}

interface OfSubject {
  readonly key: string;
  /** In their order. */
  readonly bindings: Bound[];
}

interface Entry {
  readonly bound: Bound;
  /** Where it stands, to be taken out again. */
  readonly places: readonly OfSubject[];
}

export class BindingIndex {
  readonly #clusterPrefix: string;
  readonly #bySubject = new Map<string, OfSubject>();
  readonly #entries = new Map<string, Entry>();

  /** Prefix of ClusterRoleBindings; what has another one is a RoleBinding. */
  constructor(clusterPrefix: string) {
    this.#clusterPrefix = clusterPrefix;
  }

  /** The bindings that name the subject of this key (`subjectKey`). */
  of(key: string): readonly Bound[] {
    return this.#bySubject.get(key)?.bindings ?? [];
  }

  /** Takes in all that is stored. */
  load(store: Pick<ObjectStore, 'list'>, prefix: string): void {
    for (const item of store.list(prefix).items) this.#put(item);
  }

  apply(changes: readonly Change[]): void {
    for (const { type, current } of changes) {
      if (type === 'DELETED') this.#drop(this.#orderOf(current));
      else this.#put(current);
    }
  }

  #put(stored: StoredObject): void {
    const order = this.#orderOf(stored);
    this.#drop(order);
    const { subjects = [], roleRef } = stored.object as unknown as BindingLike;
    const namespace = stored.prefix === this.#clusterPrefix ? undefined : stored.namespace;
    const bound: Bound = { name: stored.name, namespace, role: { kind: roleRef.kind, name: roleRef.name }, order };
    const places: OfSubject[] = [];
    for (const subject of subjects) {
      const key = subjectKey(subject, namespace);
      const place = getOrInsert(this.#bySubject, key, () => ({ key, bindings: [] }));
      const at = positionOf(place.bindings, order);
      // A subject may be named twice.
      if (place.bindings[at] === bound) continue;
      place.bindings.splice(at, 0, bound);
      places.push(place);
    }
    this.#entries.set(order, { bound, places });
  }

  #drop(order: string): void {
    const entry = this.#entries.get(order);
    if (!entry) return;
    this.#entries.delete(order);
    for (const { key, bindings } of entry.places) {
      bindings.splice(positionOf(bindings, order), 1);
      if (bindings.length === 0) this.#bySubject.delete(key);
    }
  }

  /** A blank sorts before all that may begin a namespace. */
  #orderOf({ prefix, namespace, name }: StoredObject): string {
    return prefix === this.#clusterPrefix ? ` ${name}` : `${namespace}/${name}`;
  }
}

/** What a subject is found by; an account of no namespace is meant in that of the binding. */
export const subjectKey = ({ kind, name, namespace }: Subject, bindingNamespace: string | undefined): string =>
  kind === 'ServiceAccount' ? `ServiceAccount ${namespace || bindingNamespace || ''}/${name}` : `${kind} ${name}`;

/** First index whose order is not below `order`. */
const positionOf = (bindings: readonly Bound[], order: string): number =>
  lowerBound(bindings.length, (i) => bindings[i]!.order < order);
