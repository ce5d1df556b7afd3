/** spec.instancetype and spec.preference: whom they mean, and whether they are well-formed. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  type InstancetypeMatcher,
  type ReadonlyVm,
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINE_INSTANCETYPES,
  VIRTUAL_MACHINE_PREFERENCES,
  type VirtualMachineInstancetype,
  type VirtualMachinePreference,
} from '../../kinds/kubevirt.ts';
import type { AnnotatedMeta } from './apply-instancetype.ts';
import { labelValue } from './short-name.ts';

/** The two members of a virtual machine's spec that are matchers. */
export const MATCHER_FIELDS = ['instancetype', 'preference'] as const;
export type MatcherField = (typeof MATCHER_FIELDS)[number];
export type Matcher = InstancetypeMatcher;
export type SourceKind = VirtualMachineInstancetype | VirtualMachinePreference;

/** One object to look up. `namespace` is '' for a cluster-wide kind. */
export interface SourceRef {
  readonly type: ResourceType<SourceKind>;
  readonly namespace: string;
  readonly name: string;
}

/** The kinds that a matcher may mean. */
export const SOURCE_TYPES: Record<MatcherField, Record<'namespaced' | 'cluster', ResourceType<SourceKind>>> = {
  instancetype: {
    namespaced: VIRTUAL_MACHINE_INSTANCETYPES as ResourceType<SourceKind>,
    cluster: VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES as ResourceType<SourceKind>,
  },
  preference: {
    namespaced: VIRTUAL_MACHINE_PREFERENCES as ResourceType<SourceKind>,
    cluster: VIRTUAL_MACHINE_CLUSTER_PREFERENCES as ResourceType<SourceKind>,
  },
};

/**
 * The resource that a matcher's `kind` means: singular or plural name in any case, the cluster-wide kind when it is
 * empty; undefined for anything else (`unexpectedKindMessage` is the error).
 */
export function sourceType(field: MatcherField, kind: string | undefined): ResourceType<SourceKind> | undefined {
  const { namespaced, cluster } = SOURCE_TYPES[field];
  if (!kind) return cluster;
  const lower = kind.toLowerCase();
  return [namespaced, cluster].find((type) => lower === type.resource || lower === type.kind.toLowerCase());
}

const unexpectedKindMessage = (field: MatcherField, kind: string | undefined): string =>
  `got unexpected kind in ${field === 'instancetype' ? 'InstancetypeMatcher' : 'PreferenceMatcher'}: ${kind ?? ''}`;

/**
 * Where the spec behind a matcher comes from.
 * - `none`: there is no matcher.
 * - `revision`: a ControllerRevision of the machine's namespace; its absence is an error. With `onlyFor` it counts only
 *   if its object-name label is that value, and otherwise `otherwise` does.
 * - `object`: the object itself.
 * - `error`: the kind is none of ours.
 */
type SpecLookup =
  | { readonly from: 'none' }
  | LiveLookup
  | { readonly from: 'revision'; readonly name: string; readonly onlyFor?: string; readonly otherwise: LiveLookup };

type LiveLookup =
  | { readonly from: 'object'; readonly ref: SourceRef }
  | { readonly from: 'error'; readonly message: string };

/** The order of upstream's finders: spec.*.revisionName, then the status reference, then the live object. */
export function planSpecLookup(vm: ReadonlyVm, field: MatcherField): SpecLookup {
  const matcher = vm.spec[field];
  if (matcher == null) return { from: 'none' };
  const live = liveLookup(field, matcher, vm.metadata.namespace ?? '');
  if (matcher.revisionName) return { from: 'revision', name: matcher.revisionName, otherwise: live };
  const ref = vm.status?.[`${field}Ref`];
  const captured = ref?.controllerRevisionRef?.name;
  if (!captured) return live;
  // A reference that is about what the matcher names decides, whatever is written on the copy: upgrade tools set it.
  if (isAbout(ref, matcher, field)) return { from: 'revision', name: captured, otherwise: live };
  return { from: 'revision', name: captured, onlyFor: labelValue(matcher.name ?? ''), otherwise: live };
}

/** Whether a status reference was written for the object that the matcher names now. */
function isAbout(
  ref: { readonly name?: string | undefined; readonly kind?: string | undefined },
  matcher: DeepReadonly<Matcher>,
  field: MatcherField,
): boolean {
  if (!ref.name || ref.name !== matcher.name) return false;
  return sourceType(field, ref.kind)?.kind === sourceType(field, matcher.kind)?.kind;
}

/** The object that a matcher names, leaving revisions aside. */
function liveLookup(field: MatcherField, matcher: DeepReadonly<Matcher>, namespace: string): LiveLookup {
  const type = sourceType(field, matcher.kind);
  if (type === undefined) return { from: 'error', message: unexpectedKindMessage(field, matcher.kind) };
  // Nobody has inferred it from its volume yet: the words of the client that upstream asks with.
  if (!matcher.name) return { from: 'error', message: 'resource name may not be empty' };
  return { from: 'object', ref: { type, namespace: type.namespaced ? namespace : '', name: matcher.name } };
}

/** Upstream's text for an object that is not there. */
export const notFoundMessage = ({ type, name }: Pick<SourceRef, 'name'> & { type: ResourceType<unknown> }): string =>
  `${type.resource}${type.group === '' ? '' : `.${type.group}`} "${name}" not found`;

/** Which instance type and preference an instance comes from, by where they are. */
export const SOURCE_ANNOTATIONS: Record<MatcherField, { namespaced: string; cluster: string }> = {
  instancetype: { namespaced: 'kubevirt.io/instancetype-name', cluster: 'kubevirt.io/cluster-instancetype-name' },
  preference: { namespaced: 'kubevirt.io/preference-name', cluster: 'kubevirt.io/cluster-preference-name' },
};

/** Writes into a new instance's annotations which instance type and preference it comes from. Changes `metadata`. */
export function setSourceAnnotations(vm: ReadonlyVm, metadata: AnnotatedMeta): void {
  for (const field of MATCHER_FIELDS) {
    const matcher = vm.spec[field];
    const type = matcher == null ? undefined : sourceType(field, matcher.kind);
    if (matcher == null || type === undefined) continue;
    const key = SOURCE_ANNOTATIONS[field][type.namespaced ? 'namespaced' : 'cluster'];
    metadata.annotations = { ...metadata.annotations, [key]: matcher.name ?? '' };
  }
}

/** What the mutating webhook finds wrong with the matchers of `vm`; `old` is there on update. */
export function validateMatchers(vm: ReadonlyVm, old?: ReadonlyVm): FieldError[] {
  const updates = MATCHER_FIELDS.map((field) => validateUpdate(field, vm.spec[field], old?.spec[field]));
  const matchers = MATCHER_FIELDS.map((field) => validateMatcher(field, vm.spec[field]));
  return [...updates, ...matchers].find((causes) => causes.length > 0) ?? [];
}

function validateUpdate(
  field: MatcherField,
  matcher: DeepReadonly<Matcher> | undefined,
  old: DeepReadonly<Matcher> | undefined,
): FieldError[] {
  if (matcher == null || old == null || !old.revisionName || deepEqual(matcher, old)) return [];
  if ((matcher.name ?? '') === (old.name ?? '') || matcher.revisionName !== old.revisionName) return [];
  const detail = 'the Matcher Name has been updated without updating the RevisionName';
  return [{ type: 'FieldValueInvalid', field: `spec.${field}.revisionName`, detail }];
}

function validateMatcher(field: MatcherField, matcher: DeepReadonly<Matcher> | undefined): FieldError[] {
  if (matcher == null) return [];
  const path = `spec.${field}`;
  const causes: FieldError[] = [];
  const add = (type: FieldError['type'], at: string, detail: string): void => {
    causes.push({ type, field: at, detail });
  };
  if (!matcher.name && !matcher.inferFromVolume)
    add('FieldValueNotFound', path, `Either Name or InferFromVolume should be provided within the ${field} matcher`);
  if (matcher.inferFromVolume) {
    const refuse = (member: 'name' | 'kind', label: string): void => {
      if (!matcher[member]) return;
      const text = `${label} should not be provided when InferFromVolume is used within the ${field} matcher`;
      add('FieldValueNotSupported', `${path}.${member}`, text);
    };
    refuse('name', 'Name');
    refuse('kind', 'Kind');
  }
  const policy = matcher.inferFromVolumeFailurePolicy;
  if (policy != null && policy !== 'Ignore' && policy !== 'Reject') {
    const text = `Invalid value '${policy}' for InferFromVolumeFailurePolicy`;
    add('FieldValueInvalid', `${path}.inferFromVolumeFailurePolicy`, text);
  }
  return causes;
}
