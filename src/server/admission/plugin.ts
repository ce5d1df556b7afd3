/**
 * Admission plug-ins: named functions in upstream's order. Mutating ones all run first, then defaulting and validation
 * of the kind, then the validating ones. A plug-in that serves only some resources says so in `matches`, so that the
 * hot path skips it without a call.
 */

import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../auth/identity.ts';
import type { Reinvocation } from './reinvocation.ts';

export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

/** An object that is created in the same commit as the one that is admitted, unless its name is taken. */
export interface Companion {
  readonly info: ResourceInfo;
  /** Named, in its storage form; the server sets uid, time and field ownership. */
  readonly object: UnstructuredObject;
  /** Whom its fields belong to. */
  readonly manager: string;
}

export interface AdmissionAttributes {
  readonly operation: AdmissionOperation;
  readonly info: ResourceInfo;
  /** '' for the main resource. */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** The incoming object: mutable for mutating plug-ins, to be left alone by validating ones. Absent on DELETE. */
  readonly object: UnstructuredObject | undefined;
  /** The stored object (frozen). Absent on CREATE. */
  readonly oldObject: Readonly<UnstructuredObject> | undefined;
  /** Adds a `Warning: 299` header to the response. */
  warn(text: string): void;
  /**
   * Adds an annotation to the request's audit event; `key` is a qualified name. Of one key the last value stays. `detail`:
   * only at the levels Request and RequestResponse, as it shows something of the body.
   */
  annotate(key: string, value: string, detail?: boolean): void;
  readonly signal: AbortSignal;
  /** The request's options as an object of meta.k8s.io/v1 (`CreateOptions`, ...); undefined on CONNECT. */
  readonly options: Readonly<Record<string, unknown>> | undefined;
  /** What a validating plug-in adds here is created together with the object. Undefined unless one is created. */
  readonly companions?: Companion[] | undefined;
  /** Set by the first webhook or policy that is called: what the second mutating pass must know. */
  reinvocation: Reinvocation | undefined;
}

export interface AdmissionPlugin {
  readonly name: string;
  matches(operation: AdmissionOperation, info: ResourceInfo, subresource: string): boolean;
  /** Changes `attributes.object` in place. Throws ApiError to refuse. */
  readonly mutate?: (attributes: AdmissionAttributes) => Promise<void> | void;
  /** Throws ApiError to refuse. */
  readonly validate?: (attributes: AdmissionAttributes) => Promise<void> | void;
}
