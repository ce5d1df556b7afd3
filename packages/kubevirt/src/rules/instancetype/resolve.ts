/**
 * The spec behind a matcher, found step by step: the rules are pure, say which object they must see next, and are asked
 * again with it (the order is upstream's, kubevirt pkg/instancetype/find). Upstream stops for good where a captured
 * copy is missing; here it comes back from the live object as long as that is still what was captured, and a copy taken
 * when the machine was admitted stands in for an object that is gone.
 */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { InstancetypeSpec, PreferenceSpec, ReadonlyVm } from '../../kinds/kubevirt.ts';
import { decodeRevision, RevisionError } from './decode-revision.ts';
import type { Layers } from './expand.ts';
import {
  type MatcherField,
  notFoundMessage,
  planSpecLookup,
  type SourceKind,
  type SourceRef,
  type SpecLookup,
} from './matcher.ts';
import { REVISION_LABELS, revisionName } from './revision.ts';
import { labelValue } from './short-name.ts';

type Revision = DeepReadonly<ControllerRevision>;
type Source = DeepReadonly<SourceKind>;

/** What the resolution must see: a revision of the machine's namespace, the object itself, or the machine's own copies. */
export type SourceNeed =
  | { readonly type: 'revision'; readonly name: string }
  | { readonly type: 'object'; readonly ref: SourceRef }
  | { readonly type: 'own revisions' };

/** What has been seen: null = it does not exist, undefined = nobody has looked. */
export interface KnownSources {
  revision(name: string): Revision | null | undefined;
  object(ref: SourceRef): Source | null | undefined;
  /** All revisions that the machine owns. */
  own(): readonly Revision[] | undefined;
}

/** The spec behind one matcher, and where it was found. */
export type Resolution =
  | { readonly type: 'none' }
  | { readonly type: 'need'; readonly need: SourceNeed }
  /** `message` is upstream's text. */
  | { readonly type: 'missing'; readonly message: string }
  | { readonly type: 'revision'; readonly revision: Revision; readonly spec: SourceKind['spec'] }
  /** `rebuild` is the name of the copy that is missing and that this object can give back. */
  | { readonly type: 'object'; readonly object: Source; readonly rebuild?: string };

/** One step for the matcher `field` of `vm`. */
export const resolveSource = (vm: ReadonlyVm, field: MatcherField, known: KnownSources): Resolution =>
  follow(vm, field, known, planSpecLookup(vm, field));

function follow(vm: ReadonlyVm, field: MatcherField, known: KnownSources, lookup: SpecLookup): Resolution {
  switch (lookup.from) {
    case 'none':
      return { type: 'none' };
    case 'error':
      return { type: 'missing', message: lookup.message };
    case 'object':
      return fromObject(vm, field, known, lookup.ref);
    case 'revision': {
      const revision = known.revision(lookup.name);
      if (revision === undefined) return { type: 'need', need: { type: 'revision', name: lookup.name } };
      if (revision === null) return fromMissingRevision(vm, known, lookup);
      if (lookup.onlyFor !== undefined && revision.metadata.labels?.[REVISION_LABELS.name] !== lookup.onlyFor)
        return follow(vm, field, known, lookup.otherwise);
      return fromRevision(field, revision);
    }
  }
}

function fromRevision(field: MatcherField, revision: Revision): Resolution {
  try {
    const captured = decodeRevision(revision);
    if (captured.field === field) return { type: 'revision', revision, spec: captured.spec };
    return { type: 'missing', message: `unexpected type in ControllerRevision: ${captured.kind}` };
  } catch (error) {
    if (error instanceof RevisionError) return { type: 'missing', message: error.message };
    throw error;
  }
}

function fromMissingRevision(
  vm: ReadonlyVm,
  known: KnownSources,
  lookup: Extract<SpecLookup, { from: 'revision' }>,
): Resolution {
  const missing: Resolution = { type: 'missing', message: `controllerrevisions.apps "${lookup.name}" not found` };
  if (lookup.otherwise.from !== 'object') return missing;
  const { ref } = lookup.otherwise;
  const object = known.object(ref);
  if (object === undefined) return { type: 'need', need: { type: 'object', ref } };
  // Same uid, same generation: the object still is what the revision held, which can be built anew.
  const isSame = object !== null && revisionName(vm.metadata.name ?? '', object) === lookup.name;
  return isSame ? { type: 'object', object, rebuild: lookup.name } : missing;
}

function fromObject(vm: ReadonlyVm, field: MatcherField, known: KnownSources, ref: SourceRef): Resolution {
  // What admission captured is what was validated: until the controller has been there it goes before the object, which may
  // have changed since.
  const object = known.object(ref);
  if (object === undefined) return { type: 'need', need: { type: 'object', ref } };
  const captured = isNew(vm) ? fromCaptured(vm, field, known, { ref, object }) : undefined;
  if (captured !== undefined) return captured;
  if (object !== null) return { type: 'object', object };
  const last = vm.metadata.uid === undefined ? undefined : fromOwnCopy(field, known, ref);
  return last ?? { type: 'missing', message: notFoundMessage(ref) };
}

/**
 * The copy of a new machine; undefined when it has none. Mostly the object is still what was captured, and the copy bears
 * the name that says so: to look through all copies of a namespace takes longer the more machines there are.
 */
function fromCaptured(
  vm: ReadonlyVm,
  field: MatcherField,
  known: KnownSources,
  { ref, object }: { readonly ref: SourceRef; readonly object: Source | null },
): Resolution | undefined {
  if (object !== null && known.own()?.length !== 0) {
    const name = revisionName(vm.metadata.name ?? '', object);
    const copy = known.revision(name);
    if (copy === undefined) return { type: 'need', need: { type: 'revision', name } };
    if (copy !== null && isControlledBy(copy, vm.metadata.uid ?? '')) return fromRevision(field, copy);
  }
  return fromOwnCopy(field, known, ref);
}

/** Stored, and no controller has written its status yet. */
const isNew = ({ metadata, status }: ReadonlyVm): boolean =>
  metadata.uid !== undefined && status?.printableStatus === undefined;

/** The machine's newest copy of what `ref` names; undefined when it has none. */
function fromOwnCopy(field: MatcherField, known: KnownSources, ref: SourceRef): Resolution | undefined {
  const own = known.own();
  if (own === undefined) return { type: 'need', need: { type: 'own revisions' } };
  const copy = own
    .filter((revision) => isCopyOf(ref, revision))
    .sort(byAge)
    .at(-1);
  return copy === undefined ? undefined : fromRevision(field, copy);
}

/** Whether a revision was made from the object that `ref` names, whichever one bore the name then. */
const isCopyOf = ({ type, name }: SourceRef, { metadata }: Revision): boolean =>
  metadata.labels?.[REVISION_LABELS.kind] === type.kind && metadata.labels[REVISION_LABELS.name] === labelValue(name);

const generationOf = ({ metadata }: Revision): number => Number(metadata.labels?.[REVISION_LABELS.generation] ?? 0);

const byAge = (a: Revision, b: Revision): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '') ||
  generationOf(a) - generationOf(b);

/** How a caller sees what is needed; rejects only when it cannot be asked for at all. */
export interface SourceReader {
  /** Undefined when there is none of that name. */
  revision(namespace: string, name: string): Promise<Revision | undefined>;
  object(ref: SourceRef): Promise<Source | undefined>;
  /** The ControllerRevisions that the machine controls. Absent: it has none yet. */
  own?(vm: ReadonlyVm): Promise<readonly Revision[]>;
}

/** A resolution that needs nothing more. */
export type Resolved = Exclude<Resolution, { readonly type: 'need' }>;

/** Follows a matcher to its end. */
export async function readSource(vm: ReadonlyVm, field: MatcherField, reader: SourceReader): Promise<Resolved> {
  const revisions = new Map<string, Revision | null>();
  const objects = new Map<string, Source | null>();
  let own: readonly Revision[] | undefined = reader.own ? undefined : [];
  const keyOf = ({ type, namespace, name }: SourceRef): string => `${type.kind}/${namespace}/${name}`;
  const known: KnownSources = {
    revision: (name) => revisions.get(name),
    object: (ref) => objects.get(keyOf(ref)),
    own: () => own,
  };
  for (;;) {
    const resolution = resolveSource(vm, field, known);
    if (resolution.type !== 'need') return resolution;
    const { need } = resolution;
    switch (need.type) {
      case 'revision':
        revisions.set(need.name, (await reader.revision(vm.metadata.namespace ?? '', need.name)) ?? null);
        break;
      case 'object':
        objects.set(keyOf(need.ref), (await reader.object(need.ref)) ?? null);
        break;
      case 'own revisions':
        own = (await reader.own?.(vm)) ?? [];
    }
  }
}

/** Both matchers followed to their end. */
export interface ResolvedSources {
  readonly instancetype: Resolved;
  readonly preference: Resolved;
}

/** Follows both matchers of a machine. Without matchers nothing is read. */
export async function readSources(vm: ReadonlyVm, reader: SourceReader): Promise<ResolvedSources> {
  const instancetype = await readSource(vm, 'instancetype', reader);
  return { instancetype, preference: await readSource(vm, 'preference', reader) };
}

/** Whether a machine names an instance type or a preference: only then there is anything to read. */
export const hasMatcher = ({ spec }: ReadonlyVm): boolean => spec?.instancetype != null || spec?.preference != null;

/** The specs among what was found; what is missing is left out. */
export function layersOf({ instancetype, preference }: ResolvedSources): Layers {
  const first = specOf(instancetype) as InstancetypeSpec | undefined;
  const second = specOf(preference) as PreferenceSpec | undefined;
  return { ...(first && { instancetype: first }), ...(second && { preference: second }) };
}

function specOf(resolved: Resolved): SourceKind['spec'] | undefined {
  if (resolved.type === 'revision') return resolved.spec;
  return resolved.type === 'object' ? (resolved.object.spec as SourceKind['spec']) : undefined;
}
