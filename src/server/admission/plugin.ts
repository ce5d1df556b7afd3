/**
 * Admission plug-ins: named functions in upstream's order. Mutating ones all run first, then defaulting and validation
 * of the kind, then the validating ones. A plug-in that serves only some resources says so in `matches`, so that the
 * hot path skips it without a call.
 */

import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../auth/identity.ts';

export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

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
  readonly signal: AbortSignal;
}

export interface AdmissionPlugin {
  readonly name: string;
  matches(operation: AdmissionOperation, info: ResourceInfo, subresource: string): boolean;
  /** Changes `attributes.object` in place. Throws ApiError to refuse. */
  readonly mutate?: (attributes: AdmissionAttributes) => Promise<void> | void;
  /** Throws ApiError to refuse. */
  readonly validate?: (attributes: AdmissionAttributes) => Promise<void> | void;
}
