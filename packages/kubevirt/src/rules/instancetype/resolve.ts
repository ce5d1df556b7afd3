/**
 * The spec behind a matcher, looked up in upstream's order (kubevirt pkg/instancetype/find). Upstream stops for good where
 * a captured copy is missing; here it comes back from the live object as long as that is still what was captured, and a
 * copy taken when the machine was admitted stands in for an object that is gone.
 */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { InstancetypeSpec, PreferenceSpec, ReadonlyVm } from '../../kinds/kubevirt.ts';
import { decodeRevision, RevisionError } from './decode-revision.ts';
import type { Layers } from './expand.ts';
import { type MatcherField, notFoundMessage, planSpecLookup, type SourceKind, type SourceRef } from './matcher.ts';
import { REVISION_LABELS, revisionName } from './revision.ts';
import { labelValue } from './short-name.ts';

type Revision = DeepReadonly<ControllerRevision>;
type Source = DeepReadonly<SourceKind>;

/** Where sources are read; rejects only when it cannot be asked for at all. */
export interface SourceReader {
  /** Undefined when there is none of that name. */
  revision(namespace: string, name: string): Promise<Revision | undefined>;
  object(ref: SourceRef): Promise<Source | undefined>;
  /** The ControllerRevisions that the machine controls. Absent: it has none yet. */
  own?(vm: ReadonlyVm): Promise<readonly Revision[]>;
}

/** The spec behind one matcher, and where it was found. */
export type Resolved =
  | { readonly type: 'none' }
  /** `message` is upstream's text. */
  | { readonly type: 'missing'; readonly message: string }
  | { readonly type: 'revision'; readonly revision: Revision; readonly spec: SourceKind['spec'] }
  | { readonly type: 'object'; readonly object: Source };

/** Follows the matcher `field` of `vm` to its end. */
export async function readSource(vm: ReadonlyVm, field: MatcherField, reader: SourceReader): Promise<Resolved> {
  let lookup = planSpecLookup(vm, field);
  if (lookup.from === 'revision') {
    const { name, onlyFor, otherwise } = lookup;
    const revision = await reader.revision(vm.metadata.namespace ?? '', name);
    if (revision === undefined) {
      const object = otherwise.from === 'object' ? await reader.object(otherwise.ref) : undefined;
      // Same uid, same generation: the object still is what the revision held, which can be built anew.
      if (object !== undefined && revisionName(vm.metadata.name ?? '', object) === name)
        return { type: 'object', object };
      return { type: 'missing', message: `controllerrevisions.apps "${name}" not found` };
    }
    if (onlyFor === undefined || revision.metadata.labels?.[REVISION_LABELS.name] === onlyFor)
      return resolveRevision(field, revision);
    lookup = otherwise;
  }
  if (lookup.from === 'none') return { type: 'none' };
  if (lookup.from === 'error') return { type: 'missing', message: lookup.message };
  return readObject(vm, field, reader, lookup.ref);
}

/** The spec that a copy holds, or why it holds none for this matcher. */
export function resolveRevision(field: MatcherField, revision: Revision): Resolved {
  try {
    const captured = decodeRevision(revision);
    if (captured.field === field) return { type: 'revision', revision, spec: captured.spec };
    return { type: 'missing', message: `unexpected type in ControllerRevision: ${captured.kind}` };
  } catch (error) {
    if (error instanceof RevisionError) return { type: 'missing', message: error.message };
    throw error;
  }
}

async function readObject(
  vm: ReadonlyVm,
  field: MatcherField,
  reader: SourceReader,
  ref: SourceRef,
): Promise<Resolved> {
  const { uid, name = '', namespace = '' } = vm.metadata;
  const object = await reader.object(ref);
  // What admission captured is what was validated: until the controller has been there (it writes the status) it goes before
  // the object, which may have changed since.
  const isSettled = vm.status?.printableStatus !== undefined && object !== undefined;
  if (uid !== undefined && reader.own && !isSettled) {
    // Mostly the object is still what was captured, and the copy bears the name that says so: to look through all copies of
    // a namespace takes longer the more machines there are.
    const same = object && (await reader.revision(namespace, revisionName(name, object)));
    if (same && isControlledBy(same, uid)) return resolveRevision(field, same);
    const copies = (await reader.own(vm)).filter((revision) => isCopyOf(ref, revision));
    const newest = copies.sort(byAge).at(-1);
    if (newest) return resolveRevision(field, newest);
  }
  return object ? { type: 'object', object } : { type: 'missing', message: notFoundMessage(ref) };
}

/** Whether a revision was made from the object that `ref` names, whichever one bore the name then. */
const isCopyOf = ({ type, name }: SourceRef, { metadata }: Revision): boolean =>
  metadata.labels?.[REVISION_LABELS.kind] === type.kind && metadata.labels[REVISION_LABELS.name] === labelValue(name);

const generationOf = ({ metadata }: Revision): number => Number(metadata.labels?.[REVISION_LABELS.generation] ?? 0);

const byAge = (a: Revision, b: Revision): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '') ||
  generationOf(a) - generationOf(b);

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
