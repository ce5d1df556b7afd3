/** What one write is given: who asks for what, and the services that every verb shares. */

import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { FieldError } from '../../api/meta/status.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { AdmissionOperation, Companion, WriteCheck } from '../admission/plugin.ts';
import type { Decision, ObjectStore, StoredObject } from '../cache/object-store.ts';
import type { StagesElsewhere, WriteClient } from './stages-elsewhere.ts';

/** One change as field management sees it. Objects are in the version of `info`. */
export interface FieldChange {
  readonly info: ResourceInfo;
  readonly subresource: string;
  readonly manager: string;
  /** The state before; undefined when the object is being created. */
  readonly live: Readonly<UnstructuredObject> | undefined;
  readonly now: number;
}

/** Ownership of fields (server-side apply). Implemented beside `api/apply`; without it managedFields stay as they are. */
export interface FieldManagement {
  /**
   * A create, update or patch: sets `metadata.managedFields` of `object` in place. A promise only where a conversion
   * webhook is asked; when that fails, the fields are nobody's.
   */
  track(change: FieldChange, object: UnstructuredObject): void | Promise<void>;
  /**
   * An apply: the merged object with managedFields. Throws ApiError 409 with FieldManagerConflict causes. A promise only
   * where a conversion webhook is asked; it rejects with ApiError 500 when that fails.
   */
  apply(
    change: FieldChange,
    applied: { readonly config: UnstructuredObject; readonly force: boolean },
  ): UnstructuredObject | Promise<UnstructuredObject>;
}

/** The services behind every verb. */
export interface Registry {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly fields?: FieldManagement;
  /** Does the stages of large writes on another thread; this one does them when absent. */
  readonly elsewhere?: StagesElsewhere;
  /** Kinds of which a collection is deleted whole or not at all; none when absent. */
  readonly deletesWhole?: (info: ResourceInfo) => boolean;
}

/** What the stages of a write need of the registry. */
export interface StageServices {
  readonly fields?: FieldManagement | undefined;
  readonly clock: Pick<Clock, 'now'>;
}

/** Admission as the registry calls it: bound to the request's user, resource and warnings by the endpoints. */
export interface AdmissionHooks {
  mutate(operation: AdmissionOperation, subject: AdmissionSubject): Promise<void> | void;
  /** Rights that the kind's own rules ask for; undefined when they ask for none. */
  missingRights?(operation: AdmissionOperation, subject: AdmissionSubject): Promise<readonly FieldError[]> | undefined;
  validate(operation: AdmissionOperation, subject: AdmissionSubject): Promise<void> | void;
}

export interface AdmissionSubject {
  readonly name: string;
  readonly object: UnstructuredObject | undefined;
  readonly oldObject: Readonly<UnstructuredObject> | undefined;
  /** Where a plug-in puts what is to be created in the same commit; absent but for creates and deletes. */
  readonly companions?: Companion[];
  /** Where a plug-in puts what is to be asked again when the object is written; absent where nothing is. */
  readonly checks?: WriteCheck[];
  /** Set by the mutating pass when a webhook or policy wrote into the object: it then is as foreign as a request's body. */
  rewritten?: boolean;
  /** Set by the mutating pass when the update wants nothing else than the stored object: its generation stays. */
  sameGeneration?: boolean;
}

/** One write of one object. */
export interface WriteCall {
  readonly info: ResourceInfo;
  /** '' for the main resource. */
  readonly subresource: string;
  /** '' when cluster-scoped. */
  readonly namespace: string;
  /** From the URL; '' on create. */
  readonly name: string;
  readonly dryRun: boolean;
  /** Who owns what this write sets (`?fieldManager`, else the User-Agent's first word). */
  readonly manager: string;
  readonly admission: AdmissionHooks;
  /** Who waits for it; asked of large writes only. */
  readonly client?: WriteClient;
  warn(text: string): void;
}

/** What a write left behind. `stored` is absent after a dry run. */
export interface WriteResult {
  readonly created: boolean;
  /** In the version of the call's resource. */
  readonly object: Readonly<UnstructuredObject>;
  readonly stored: StoredObject | undefined;
  /** True for a large object that is not stored: it has to be written out in pieces. */
  readonly isLarge?: boolean;
}

/** An object as it is to be stored, when admission does not refuse it. */
export interface Completed {
  readonly object: UnstructuredObject;
  readonly isLarge?: boolean;
  /** What the store is given of it: once, after admission. A promise only where a webhook converts. */
  decide(): Decision | Promise<Decision>;
}

/** Bodies and objects of more bytes are worked on by another thread, where there is one. */
export const LARGE_WRITE = 256 * 1024;

/** Runs what admission has left to be asked within the decision of a write. Throws what a check throws. */
export function runChecks(checks: readonly WriteCheck[]): void {
  for (const check of checks) check();
}

/** Admission for writes the server makes itself (bootstrap objects). */
export const NO_ADMISSION: AdmissionHooks = { mutate: () => {}, validate: () => {} };

/** Thrown inside a store decision when the object moved since it was read: the caller reads again and repeats. */
export class ObjectMoved extends Error {
  constructor() {
    super('the object was changed by another writer');
    this.name = 'ObjectMoved';
  }
}

/** How often an update, patch or delete without a pinned resourceVersion is tried before it answers 409. */
export const MAX_CONFLICT_RETRIES = 5;
