/**
 * Captured copies: the ControllerRevision that keeps a virtual machine's instance type or preference as it was
 * (kubevirt pkg/instancetype/revision). Only building, comparing and renewing; who writes is a controller or admission.
 */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import {
  INSTANCETYPE_GROUP,
  INSTANCETYPE_VERSION,
  type ReadonlyVm,
  type VirtualMachineStatus,
} from '../../kinds/kubevirt.ts';
import { decodeRevision } from './decode-revision.ts';
import { type Matcher, type MatcherField, type SourceKind, sourceType } from './matcher.ts';
import { labelValue, objectName } from './short-name.ts';

/** The labels of a captured copy. */
export const REVISION_LABELS = {
  generation: `${INSTANCETYPE_GROUP}/object-generation`,
  kind: `${INSTANCETYPE_GROUP}/object-kind`,
  name: `${INSTANCETYPE_GROUP}/object-name`,
  uid: `${INSTANCETYPE_GROUP}/object-uid`,
  version: `${INSTANCETYPE_GROUP}/object-version`,
};

type Source = DeepReadonly<SourceKind>;

const versionOf = (source: Source): string => source.apiVersion.slice(source.apiVersion.indexOf('/') + 1);

/** `<vm>-<object>-<version>-<uid>-<generation>`; cut with a digest where an object name ends. */
export function revisionName(vmName: string, source: Source): string {
  const { name = '', uid = '', generation = 0 } = source.metadata;
  return objectName([vmName, name, versionOf(source), uid, generation].join('-'));
}

/** The copy of `source` that `vm` owns: the whole object without what others hang on its metadata. */
export function buildRevision(vm: ReadonlyVm, source: Source): ControllerRevision {
  const data = cloneJson<SourceKind>(source);
  const { labels, annotations, finalizers, ownerReferences, managedFields, ...metadata } = data.metadata;
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: revisionName(vm.metadata.name ?? '', source),
      namespace: vm.metadata.namespace ?? '',
      labels: {
        [REVISION_LABELS.generation]: String(metadata.generation ?? 0),
        [REVISION_LABELS.kind]: data.kind,
        [REVISION_LABELS.name]: labelValue(metadata.name ?? ''),
        [REVISION_LABELS.uid]: metadata.uid ?? '',
        [REVISION_LABELS.version]: versionOf(source),
      },
      // Whatever version it was asked for in.
      ownerReferences: [controllerReference({ ...vm, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' })],
    },
    data: { apiVersion: data.apiVersion, kind: data.kind, metadata, spec: data.spec },
    revision: 0,
  };
}

/** Whether two copies hold the same spec, whatever version they were written in. @throws RevisionError */
export function isSameCapture(a: DeepReadonly<ControllerRevision>, b: DeepReadonly<ControllerRevision>): boolean {
  return deepEqual(decodeRevision(a).spec, decodeRevision(b).spec);
}

/** Upstream's text for a revision of the right name that holds something else. */
export const unexpectedDataMessage = (name: string): string =>
  `found existing ControllerRevision with unexpected data: ${name}`;

/** Whether a revision is written in the version that is current. */
export const isLatestVersion = (revision: { readonly metadata: DeepReadonly<ObjectMeta> }): boolean =>
  revision.metadata.labels?.[REVISION_LABELS.version] === INSTANCETYPE_VERSION;

/**
 * The revision that takes the place of an old one, or undefined when it is current. The oldest form knows neither name
 * nor uid of its object: they come from the matcher and from the old revision, so that the copy goes on being used.
 * @throws RevisionError when the old one cannot be read
 */
export function renewRevision(
  vm: ReadonlyVm,
  field: MatcherField,
  old: DeepReadonly<ControllerRevision>,
): ControllerRevision | undefined {
  if (isLatestVersion(old)) return undefined;
  const captured = decodeRevision(old);
  if (captured.named) return buildRevision(vm, captured);
  const matcher = vm.spec[field];
  const kind = sourceType(field, matcher?.kind)?.kind ?? captured.kind;
  const { uid = '', generation = 0 } = old.metadata;
  return buildRevision(vm, {
    ...captured,
    kind,
    metadata: { name: matcher?.name ?? captured.metadata.name ?? '', uid, generation },
  });
}

export type StatusRef = NonNullable<VirtualMachineStatus['instancetypeRef']>;

/** The status reference that follows from a matcher (kubevirt revision/store syncStatusWithMatcher). */
export function nextStatusRef(matcher: DeepReadonly<Matcher>, old: DeepReadonly<StatusRef> | undefined): StatusRef {
  const ref = cloneJson<StatusRef>(old ?? {});
  let moved = false;
  for (const member of ['name', 'kind', 'inferFromVolume'] as const) {
    const value = matcher[member];
    if (!value || value === ref[member]) continue;
    ref[member] = value;
    moved = true;
  }
  if (moved) delete ref.controllerRevisionRef;
  const policy = matcher.inferFromVolumeFailurePolicy;
  if (policy != null) ref.inferFromVolumeFailurePolicy = policy;
  if (matcher.revisionName) ref.controllerRevisionRef = { name: matcher.revisionName };
  return ref;
}
