/**
 * How many bytes of objects each namespace holds, and how many it may: without a bound one tenant could fill the disk,
 * and the memory of all who list.
 */
import { ApiError } from '@coracle/apimachinery/meta/status';

/** Of one namespace, where its annotation says nothing else. */
export const NAMESPACE_BYTES = 512 * 1024 * 1024;
/** Of all of them together, those for the cluster included: what etcd holds by default. */
export const TOTAL_BYTES = 2 * 1024 * 1024 * 1024;
/** On a Namespace, which administrators alone may write: its bound in bytes. */
export const MAX_BYTES_ANNOTATION = 'coracle.dev/max-object-bytes';

/** What is there may still change when nothing new is taken: a status has to be written. */
const UPDATE_MARGIN = 1.1;

export interface ByteLimits {
  readonly namespace: number;
  readonly total: number;
}

export class NamespaceBytes {
  readonly #limits: ByteLimits;
  readonly #annotations: (namespace: string) => Readonly<Record<string, string>> | undefined;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** `annotations`: those of a Namespace. */
  constructor(
    limits: Partial<ByteLimits>,
    annotations: (namespace: string) => Readonly<Record<string, string>> | undefined,
  ) {
    this.#limits = { namespace: NAMESPACE_BYTES, total: TOTAL_BYTES, ...limits };
    this.#annotations = annotations;
  }

  /** Bytes that a namespace holds. */
  of(namespace: string): number {
    return this.#held.get(namespace) ?? 0;
  }

  /** An object came, grew, shrank (negative) or went. */
  add(namespace: string, bytes: number): void {
    const held = this.of(namespace) + bytes;
    if (held === 0) this.#held.delete(namespace);
    else this.#held.set(namespace, held);
    this.#total += bytes;
  }

  /** Why so many more bytes are not taken; undefined when they are. */
  refusal(namespace: string, bytes: number, isCreate: boolean): ApiError | undefined {
    // What was beyond its bound before there was one may always shrink.
    if (bytes <= 0 || namespace === '') return undefined;
    const margin = isCreate ? 1 : UPDATE_MARGIN;
    const held = this.of(namespace) + bytes;
    if (held > this.#limits.namespace * margin) {
      const limit = this.#limitOf(namespace);
      if (held > limit * margin) return tooMuch(namespace, limit);
    }
    return isCreate && this.#total + bytes > this.#limits.total ? full(this.#limits.total) : undefined;
  }

  #limitOf(namespace: string): number {
    const text = this.#annotations(namespace)?.[MAX_BYTES_ANNOTATION] ?? '';
    return /^\d{1,15}$/.test(text) ? Number(text) : this.#limits.namespace;
  }
}

const tooMuch = (namespace: string, limit: number): ApiError =>
  new ApiError({
    code: 403,
    reason: 'Forbidden',
    message:
      `exceeded quota: the objects of namespace ${JSON.stringify(namespace)} may have ${limit} bytes together: delete some, ` +
      `or ask an administrator for more (annotation ${MAX_BYTES_ANNOTATION} of the Namespace)`,
    details: { kind: 'namespaces', name: namespace },
  });

const full = (limit: number): ApiError =>
  new ApiError({
    code: 507,
    reason: 'InsufficientStorage',
    message: `all objects together may have ${limit} bytes: no new ones are accepted until some are deleted`,
  });
