/**
 * What the registry does with the objects of a kind (the strategies of k8s.io/apiserver registry/rest): facts, and hooks at
 * the places where kinds differ. A kind names what it does otherwise than the default; `defineStrategy` fills in the rest.
 *
 * Hooks ask nobody and wait for nothing, so that they run on whichever thread does the stages of a write. What they are
 * given of the stored state is frozen.
 */
import { cloneJson } from '../meta/deep-clone.ts';
import type { ObjectMeta, UnstructuredObject } from '../meta/object.ts';
import type { FieldError } from '../meta/status.ts';

type Json = Readonly<Record<string, unknown>>;
type Stored = Readonly<UnstructuredObject>;

/** What a validation may want to know beside the object. */
export interface ValidationAbout {
  /** '' or absent = the object itself is written. */
  readonly subresource?: string;
  /** Called with what is let pass and should not stay. */
  readonly warn?: (text: string) => void;
  /** What was found in the metadata before: rules are not asked about an object in which something is missing. */
  readonly before?: readonly FieldError[];
}

/** How objects are updated through one endpoint: their own, or that of a subresource. */
export interface UpdateStrategy {
  /** When `metadata.generation` moves: 'spec' = on a change of spec; 'except-status' = any change outside metadata and status; 'one' = never, after the create; 'none' = never set. */
  readonly generation: 'none' | 'one' | 'spec' | 'except-status';
  /** A part of the metadata whose changes move the generation as well. */
  readonly generationFollows?: 'labels' | 'annotations';
  /** Paths that nobody comes to own through this endpoint (GetResetFields). */
  readonly resetFields: readonly (readonly string[])[];
  /**
   * `object` with all that this endpoint does not write as it is in `old`; may reuse `object`. Before the mutating admission
   * and after it. Throws ApiError 422.
   */
  readonly keepUnwritten: (object: UnstructuredObject, old: Stored) => UnstructuredObject;
  /** What the server makes of the object, once, after admission and defaults. Sets members of it, and none below. */
  readonly prepareForUpdate?: (object: UnstructuredObject, old: Stored, about: { readonly now: number }) => void;
  readonly validateUpdate?: (object: Json, old: Json) => readonly FieldError[];
  /** What should be said of a valid and odd object that `old` did not deserve already. */
  readonly warningsOnUpdate?: (object: Json, old: Json) => readonly string[];
}

/** A resource by name. */
export interface ResourceName {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** What is written in the commit of another object. */
export type CommitPart =
  /** Made unless its name is taken; named, in its storage form. `manager` owns its fields. */
  | {
      readonly type: 'create';
      readonly of: ResourceName;
      readonly object: UnstructuredObject;
      readonly manager: string;
    }
  /** Deleted, or marked where finalizers hold it; `isMeant` looks at it first. */
  | {
      readonly type: 'delete';
      readonly of: ResourceName;
      readonly namespace: string;
      readonly name: string;
      readonly isMeant?: (object: Stored) => boolean;
    };

/** One write as it is being decided. */
export interface CommitChange {
  readonly namespace: string;
  readonly name: string;
  /** Undefined when the object is new. */
  readonly before: Stored | undefined;
  /** Undefined when it goes. */
  readonly after: Stored | undefined;
  /** Whether there is such an object, in the newest decided state. */
  exists(of: ResourceName, namespace: string, name: string): boolean;
}

export interface ResourceStrategy extends UpdateStrategy {
  /** True for kinds of definitions: lists keep apiVersion/kind on items, strategic merge patch is refused, pruning rules of CRDs apply. */
  readonly custom: boolean;
  /** Which of upstream's servers has the kind: its own, or one of the two beside it, which word some things otherwise. */
  readonly server: 'main' | 'extension';
  /** What a refused write calls the place of an object, where that is not the resource. */
  readonly keyName?: string;
  /** Whole numbers beyond ±2^53 are kept (as bigints): no code of ours counts with what is in these objects. */
  readonly wideIntegers?: true;

  /** Name rule of the kind. */
  readonly names: 'subdomain' | 'label' | 'path-segment';
  /** A new object that says no name is given a uuid for one. */
  readonly namesItself?: true;
  /** What a create does with the status in the body: drops it, as nearly all kinds do, or takes it. */
  readonly statusOnCreate: 'drop' | 'take';
  /** Kind-specific defaulting after schema defaults; changes the object. Safe to repeat. */
  readonly setDefaults?: (object: Record<string, unknown>) => void;
  /** What the server makes of a new object, once, after admission and defaults. Sets members of it, and none below. */
  readonly prepareForCreate?: (object: UnstructuredObject, about: { readonly now: number }) => void;
  /** In place of plain schema validation, for kinds that validate a change by what was there before. */
  readonly validateSchema?: (object: Json, old?: Json, about?: ValidationAbout) => readonly FieldError[];
  readonly validate?: (object: Json) => readonly FieldError[];
  /** What should be said of a new object that is valid and odd. */
  readonly warningsOnCreate?: (object: Json) => readonly string[];

  /** True when `/status` is served: the main endpoint then ignores status and `/status` ignores the rest. */
  readonly statusSubresource: boolean;
  /** What `/status` writes may change in metadata: nothing ('reset') or labels and annotations ('accept'). */
  readonly statusMetadata: 'reset' | 'accept';
  /** Where it is accepted: what of it stays all the same. */
  readonly statusKeeps: readonly (keyof ObjectMeta & string)[];
  /** Endpoints that update otherwise than that of the object; `/status` always does. */
  readonly subresources: Readonly<Record<string, UpdateStrategy>>;
  /** A PUT without resourceVersion is allowed. */
  readonly allowUnconditionalUpdate: boolean;
  /** A PUT of an absent object creates it. */
  readonly allowCreateOnUpdate: boolean;

  /** DELETE answers with the object rather than a Status. */
  readonly deleteReturnsObject: boolean;
  /** What a delete that names no policy does with the dependents; 'unsupported' = the kind takes no part in garbage collection. */
  readonly garbageCollection: 'delete-dependents' | 'orphan-dependents' | 'unsupported';
  /** Seconds that a first delete, which asked for so many or none, gives the object to end (CheckGracefulDelete). */
  readonly gracePeriod?: (object: Stored, asked: number | undefined) => number;
  /** In place of the first delete's own step, whatever its options say. Sets members of the object and of its metadata. */
  readonly beginDeletion?: (object: Record<string, unknown>, now: number) => void;
  /** True while finalizers outside of the metadata hold the object. Such a kind is given no grace period, not even 0. */
  readonly isHeld?: (object: Stored) => boolean;
  /** What a delete that has to wait puts on the object beside its time. Sets members of it. */
  readonly markDeleted?: (object: UnstructuredObject) => void;

  /** What else is written in the commit that writes an object of the kind. Throws ApiError 422. */
  readonly commitWith?: (change: CommitChange) => readonly CommitPart[];
}

/** What a kind says of itself. */
export interface KindStrategy extends Partial<Omit<ResourceStrategy, 'subresources'>> {
  readonly subresources?: Readonly<Record<string, Partial<UpdateStrategy>>>;
}

/** What most built-in kinds do. */
const BUILT_IN = {
  custom: false,
  server: 'main',
  generation: 'none',
  names: 'subdomain',
  statusOnCreate: 'drop',
  statusSubresource: false,
  statusMetadata: 'accept',
  statusKeeps: [],
  allowUnconditionalUpdate: true,
  allowCreateOnUpdate: false,
  deleteReturnsObject: false,
  garbageCollection: 'delete-dependents',
} satisfies KindStrategy;
type Facts = Pick<ResourceStrategy, keyof typeof BUILT_IN>;

/** How apiextensions-apiserver keeps custom resources, KubeVirt's own among them. */
const CUSTOM: Facts = {
  ...BUILT_IN,
  custom: true,
  server: 'extension',
  generation: 'except-status',
  statusMetadata: 'reset',
  allowUnconditionalUpdate: false,
};

/** The strategy of a built-in kind. */
export const defineStrategy = (kind: KindStrategy): ResourceStrategy => complete({ ...BUILT_IN, ...kind });

/** The strategy of a kind that a definition describes. */
export const customStrategy = (kind: KindStrategy): ResourceStrategy => complete({ ...CUSTOM, ...kind });

function complete(kind: KindStrategy & Facts): ResourceStrategy {
  const { statusSubresource, statusMetadata, statusKeeps } = kind;
  const main = {
    ...kind,
    resetFields: kind.resetFields ?? (statusSubresource ? STATUS : []),
    keepUnwritten: kind.keepUnwritten ?? (statusSubresource ? keepStatus : keepNothing),
  };
  const { generation, generationFollows, resetFields, keepUnwritten, validateUpdate } = main;
  // What an object's own endpoint prepares and warns of, others do when they say so.
  const shared: UpdateStrategy = {
    generation,
    resetFields,
    keepUnwritten,
    ...(generationFollows && { generationFollows }),
    ...(validateUpdate && { validateUpdate }),
  };
  const ofStatus: Partial<UpdateStrategy> =
    statusMetadata === 'reset'
      ? { resetFields: ALL_BUT_STATUS, keepUnwritten: keepAllButStatus }
      : {
          resetFields: [['spec'], ...statusKeeps.map((field) => ['metadata', field])],
          keepUnwritten: (object, old) => withMetadata(keepAllButStatus(object, old), object, { old, statusKeeps }),
        };
  const subresources: Record<string, UpdateStrategy> = {
    ...(statusSubresource && { status: { ...shared, ...ofStatus } }),
  };
  for (const [name, own] of Object.entries(kind.subresources ?? {})) {
    subresources[name] = { ...(subresources[name] ?? shared), ...own };
  }
  return { ...main, subresources };
}

const STATUS = [['status']];
const ALL_BUT_STATUS = [['metadata'], ['spec']];

/** How objects are updated through an endpoint; '' is their own. */
export const updateStrategyOf = (strategy: ResourceStrategy, subresource: string): UpdateStrategy =>
  subresource === '' ? strategy : (strategy.subresources[subresource] ?? strategy);

const keepNothing: UpdateStrategy['keepUnwritten'] = (object) => object;

/** What the endpoint of an object with `/status` does: the status is not its own. */
export function keepStatus(object: UnstructuredObject, old: Stored): UnstructuredObject {
  if (old['status'] === undefined) delete object['status'];
  else object['status'] = cloneJson(old['status']);
  return object;
}

function keepAllButStatus(object: UnstructuredObject, old: Stored): UnstructuredObject {
  const next = cloneJson(old) as UnstructuredObject;
  if (object['status'] === undefined) delete next['status'];
  else next['status'] = object['status'];
  const { managedFields } = object.metadata;
  if (managedFields !== undefined) next.metadata.managedFields = managedFields;
  return next;
}

/** With the metadata that was sent, but for what stays; the namespace was compared with the URL, and a body may leave it out. */
function withMetadata(
  next: UnstructuredObject,
  { metadata }: UnstructuredObject,
  { old, statusKeeps }: { readonly old: Stored } & Pick<ResourceStrategy, 'statusKeeps'>,
): UnstructuredObject {
  const sent = { ...metadata } as Record<string, unknown>;
  const before = old.metadata as Json;
  for (const field of statusKeeps) {
    delete sent[field];
    if (before[field] !== undefined) sent[field] = cloneJson(before[field]);
  }
  if (before['namespace'] === undefined) delete sent['namespace'];
  else sent['namespace'] = before['namespace'];
  next.metadata = sent as UnstructuredObject['metadata'];
  return next;
}
