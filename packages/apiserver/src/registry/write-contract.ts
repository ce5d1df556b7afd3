/** What a write is, and what the registry consists of that does it: the types that its stages share. */

import type { ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { AdmissionOperation, Companion, WriteCheck } from '../admission/plugin.ts';
import type { Decision, ObjectStore, StoredObject } from '../cache/object-store.ts';
import type { StageResource } from './stage-resource.ts';

/** Ownership of fields (server-side apply). Implemented beside `apimachinery/apply`; without it managedFields stay as they are. */
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
  /** Whether the mutating half may change such an object, or finds rights missing; taken for granted when absent. */
  mayChange?(operation: AdmissionOperation): boolean;
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

/** The body of a request as it was sent, with those of its options that decide how it is read. */
export interface SentBody {
  readonly verb: 'create' | 'update' | 'patch';
  /** The `content-type` header. */
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly fieldValidation: 'Ignore' | 'Warn' | 'Strict';
  /** Of an apply: takes fields from others. */
  readonly force: boolean;
}

/** The two halves of an update that ask nobody: before the mutating admission, and between it and the validating one. */
export interface UpdateStages {
  begin(old: Readonly<UnstructuredObject>): BegunUpdate | Promise<BegunUpdate>;
  complete(
    object: UnstructuredObject,
    about: { readonly old: Readonly<UnstructuredObject> } & Admitted,
  ): Completed | Promise<Completed>;
}

export interface BegunUpdate {
  readonly object: UnstructuredObject;
  /** What was found so far that is not valid. */
  readonly errors: readonly FieldError[];
  readonly pinned: boolean;
}

/** What came of the mutating admission. */
export interface Admitted {
  readonly errors: readonly FieldError[];
  /** Whose the fields were before a plug-in changed some; absent when none did. */
  readonly owners: ObjectMeta['managedFields'];
  readonly isRewritten: boolean;
  readonly isSameGeneration: boolean;
}

/** What one needs to know of an update to do its stages, on whichever thread. */
export interface UpdateFacts
  extends Pick<WriteCall, 'info' | 'subresource' | 'namespace' | 'name' | 'manager' | 'dryRun' | 'warn'> {
  /** True when the caller wants exactly the state it names: a write in between is a conflict, not a reason to repeat. */
  readonly pinned: boolean;
  /** True for PATCH. */
  readonly patch?: boolean;
  /** True when the wanted object has its managedFields already (apply). */
  readonly tracked?: boolean;
}

/** Builds the wanted object (normalised, fresh) from the current one. Called once per attempt; may throw ApiError. */
export type NextObject = (current: Readonly<UnstructuredObject>) => UnstructuredObject | Promise<UnstructuredObject>;

export interface CreateCall extends WriteCall {
  /** Normalised, owned by the callee; or a large body as it was sent, which another thread reads. */
  readonly object: UnstructuredObject | SentBody;
  /** True when managedFields were set already (apply). */
  readonly tracked?: boolean;
  /** True for an object out of the program itself: a test has found it valid, so no start has to find it again. */
  readonly trusted?: boolean;
}

/** The two halves of a create that ask nobody: before the mutating admission, and between it and the validating one. */
export interface CreateStages {
  begin(): BegunCreate | Promise<BegunCreate>;
  /** Once for each name that is tried; `object` is left as it is when it is not the first one. */
  complete(
    object: UnstructuredObject,
    about: { readonly attempt: number; readonly isRewritten: boolean },
  ): Completed | Promise<Completed>;
}

export interface BegunCreate {
  readonly object: UnstructuredObject;
  /** It names a resourceVersion, which a new object does not have. */
  readonly isVersioned: boolean;
}

export interface UpdateCall extends WriteCall, UpdateFacts {
  readonly next: NextObject;
  /** What to do when there is no such object; absent = 404. */
  readonly create?: () => Promise<WriteResult>;
  /** What was sent, for the thread that makes the wanted object of it when that or the current one is large. */
  readonly sent?: () => SentBody;
  readonly isLarge?: boolean;
}

export interface StagesElsewhere {
  create(call: CreateCall, sent: SentBody): CreateStages;
  /** Without `sent`, what is wanted is made here by `call.next`. */
  update(call: UpdateCall, current: StoredObject, sent?: SentBody): UpdateStages;
  /** A large body as an object of its kind. Rejects with ApiError 400, 413, 415. */
  decode(body: {
    readonly info: ResourceInfo;
    readonly sent: SentBody;
    readonly dropStatus: boolean;
    readonly older?: ResourceInfo | undefined;
    readonly client: WriteClient;
    readonly warn: (text: string) => void;
  }): Promise<UnstructuredObject>;
  /** A large custom object, given as its stored JSON, in the version of a resource. */
  view(resource: StageResource, json: Uint8Array): Promise<UnstructuredObject>;
}

/** Who waits for a large write: its owner takes turns with others, its signal ends the waiting. */
export interface WriteClient {
  readonly owner: string;
  readonly signal: AbortSignal;
}

/** One change as field management sees it. Objects are in the version of `info`. */
export interface FieldChange {
  readonly info: ResourceInfo;
  readonly subresource: string;
  readonly manager: string;
  /** The state before; undefined when the object is being created. */
  readonly live: Readonly<UnstructuredObject> | undefined;
  readonly now: number;
}
