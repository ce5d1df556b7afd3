/**
 * Admission plug-ins: named functions in upstream's order. Mutating ones all run first, then defaulting and validation
 * of the kind, then the validating ones. A plug-in that serves only some resources says so in `matches`, so that the
 * hot path skips it without a call.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
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

/**
 * Asked within the step that decides a write, so that nothing can be written between it and the write. Throws ApiError to
 * refuse, or ObjectMoved to have the whole write, admission included, tried again.
 */
export type WriteCheck = () => void;

export interface AdmissionAttributes {
  readonly operation: AdmissionOperation;
  /** The verb that was authorised: patches are an UPDATE, too. */
  readonly requestVerb: string;
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
  /** Aborts when the client goes or its time is over. */
  readonly signal: AbortSignal;
  /** When its time is over, in monotonic milliseconds; undefined on long-running requests. */
  readonly deadline?: number | undefined;
  /** The request's options as an object of meta.k8s.io/v1 (`CreateOptions`, ...); undefined on CONNECT. */
  readonly options: Readonly<Record<string, unknown>> | undefined;
  /** What a validating plug-in adds here is created in the commit of a create or a delete. Undefined for other writes. */
  readonly companions?: Companion[] | undefined;
  /** Where a validating plug-in puts what is to be asked again when the object is written; absent where nothing is. */
  readonly checks?: WriteCheck[] | undefined;
  /** Set by the first webhook or policy that is called: what the second mutating pass must know. */
  reinvocation: Reinvocation | undefined;
  /** Set by a mutating plug-in that took back a part of an update: what changes has to be validated anew. */
  takenBack?: boolean;
  /**
   * Set by a mutating plug-in that knows an update to write down what the stored object meant already: nothing else is
   * wanted than before, so metadata.generation stays.
   */
  sameGeneration?: boolean;
}

export interface AdmissionPlugin {
  readonly name: string;
  matches(operation: AdmissionOperation, info: ResourceInfo, subresource: string): boolean;
  /** Its mutating half refuses only: nothing that it lets pass is changed. */
  readonly changesNothing?: true;
  /** Changes `attributes.object` in place. Throws ApiError to refuse. */
  readonly mutate?: (attributes: AdmissionAttributes) => Promise<void> | void;
  /**
   * Rights that a kind asks for in its own rules, of writes to a subresource: what is missing is listed together with what
   * those rules are against. After the mutating plug-ins, so that it sees what webhooks made of the object.
   */
  readonly missingRights?: (attributes: AdmissionAttributes) => Promise<readonly FieldError[]>;
  /** Throws ApiError to refuse. */
  readonly validate?: (attributes: AdmissionAttributes) => Promise<void> | void;
}
