/**
 * Instance type and preference named by the source of a volume (kubevirt pkg/instancetype/infer). The rules are pure:
 * they say which object they must see next, and are asked again with it.
 */

import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import type { MatcherField } from './matcher.ts';

/** The kinds of object that inference reads, by their plural and group. */
export const INFERENCE_RESOURCES = {
  persistentvolumeclaims: { group: '', version: 'v1', kind: 'PersistentVolumeClaim' },
  datavolumes: { group: 'cdi.kubevirt.io', version: 'v1beta1', kind: 'DataVolume' },
  datasources: { group: 'cdi.kubevirt.io', version: 'v1beta1', kind: 'DataSource' },
  volumesnapshots: { group: 'snapshot.storage.k8s.io', version: 'v1', kind: 'VolumeSnapshot' },
} as const;

export interface InferenceRef {
  readonly resource: keyof typeof INFERENCE_RESOURCES;
  readonly namespace: string;
  readonly name: string;
}

/** An object as inference reads it. */
export interface InferenceObject {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined };
  readonly spec?: unknown;
}

/** What is known of an object: itself, null when it does not exist, undefined when nobody has looked yet. */
export type Known = (ref: InferenceRef) => InferenceObject | null | undefined;

export type Inference =
  | { readonly need: InferenceRef }
  | { readonly name: string; readonly kind: string }
  | { readonly error: string; readonly ignorable: boolean };

interface Labels {
  readonly name: string;
  readonly kind: string;
}

const labelsOf = (field: MatcherField): Labels => ({
  name: `instancetype.kubevirt.io/default-${field}`,
  kind: `instancetype.kubevirt.io/default-${field}-kind`,
});

interface SourceRef {
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
}
interface DataVolumeSource {
  readonly source?: { readonly pvc?: SourceRef; readonly snapshot?: SourceRef } | undefined;
  readonly sourceRef?: SourceRef | undefined;
}

const ignorable = (error: string): Inference => ({ error, ignorable: true });
const fatal = (error: string): Inference => ({ error, ignorable: false });

const notFound = ({ resource, name }: InferenceRef): string => {
  const { group } = INFERENCE_RESOURCES[resource];
  return `${resource}${group === '' ? '' : `.${group}`} "${name}" not found`;
};

/** Name and kind that the volume `volumeName` of `vm` stands for, the next object to look up, or why there is none. */
export function inferFromVolume(vm: ReadonlyVm, field: MatcherField, volumeName: string, known: Known): Inference {
  const labels = labelsOf(field);
  const namespace = vm.metadata.namespace ?? '';
  const volume = (vm.spec.template?.spec?.volumes ?? []).find(({ name }) => name === volumeName);
  if (volume === undefined) return fatal(`unable to find volume ${volumeName} to infer defaults`);
  if (volume.persistentVolumeClaim != null)
    return fromClaim({ name: volume.persistentVolumeClaim.claimName, namespace }, labels, known);
  if (volume.dataVolume != null) return fromDataVolume(vm, volume.dataVolume.name, labels, known);
  return ignorable(`unable to infer defaults from volume ${volumeName} as type is not supported`);
}

function fromLabels({ metadata }: InferenceObject, labels: Labels): Inference {
  const name = metadata.labels?.[labels.name];
  if (name === undefined) return ignorable(`unable to find required ${labels.name} label on the volume`);
  return { name, kind: metadata.labels?.[labels.kind] ?? '' };
}

function fromObject(ref: InferenceRef, labels: Labels, known: Known): Inference {
  const object = known(ref);
  if (object === undefined) return { need: ref };
  return object === null ? fatal(notFound(ref)) : fromLabels(object, labels);
}

const fromClaim = ({ name = '', namespace = '' }: SourceRef, labels: Labels, known: Known): Inference =>
  fromObject({ resource: 'persistentvolumeclaims', namespace, name }, labels, known);

/** By the claim or the snapshot that is copied; undefined where it is neither. */
function fromCopied({ source }: DataVolumeSource, labels: Labels, known: Known): Inference | undefined {
  if (source?.pvc != null) return fromClaim(source.pvc, labels, known);
  if (source?.snapshot == null) return undefined;
  const { name = '', namespace = '' } = source.snapshot;
  return fromObject({ resource: 'volumesnapshots', namespace, name }, labels, known);
}

function fromDataVolume(vm: ReadonlyVm, name: string, labels: Labels, known: Known): Inference {
  const namespace = vm.metadata.namespace ?? '';
  const template = (vm.spec.dataVolumeTemplates ?? []).find(({ metadata }) => metadata?.name === name);
  if (template !== undefined) return fromDataVolumeSpec(template.spec as DataVolumeSource, namespace, labels, known);
  const ref: InferenceRef = { resource: 'datavolumes', namespace, name };
  const object = known(ref);
  if (object === undefined) return { need: ref };
  // Collected as garbage: its claim has the same name.
  if (object === null) return fromClaim({ name, namespace }, labels, known);
  const own = fromLabels(object, labels);
  return 'name' in own ? own : fromDataVolumeSpec((object.spec ?? {}) as DataVolumeSource, namespace, labels, known);
}

function fromDataVolumeSpec(spec: DataVolumeSource, namespace: string, labels: Labels, known: Known): Inference {
  const copied = fromCopied(spec, labels, known);
  if (copied !== undefined) return copied;
  const { sourceRef } = spec;
  if (sourceRef == null)
    return ignorable('unable to infer defaults from DataVolumeSpec as DataVolumeSource is not supported');
  if (sourceRef.kind !== 'DataSource') {
    const kind = sourceRef.kind ?? '';
    return ignorable(`unable to infer defaults from DataVolumeSourceRef as Kind ${kind} is not supported`);
  }
  return fromDataSource({ name: sourceRef.name ?? '', namespace: sourceRef.namespace ?? namespace }, labels, known);
}

function fromDataSource(at: { name: string; namespace: string }, labels: Labels, known: Known): Inference {
  const ref: InferenceRef = { resource: 'datasources', ...at };
  const object = known(ref);
  if (object === undefined) return { need: ref };
  if (object === null) return fatal(notFound(ref));
  const own = fromLabels(object, labels);
  if ('name' in own) return own;
  return (
    fromCopied((object.spec ?? {}) as DataVolumeSource, labels, known) ??
    ignorable("unable to infer defaults from DataSource that doesn't provide DataVolumeSourcePVC")
  );
}

/**
 * One step of the mutating webhook for one matcher. Changes `vm` when the matter is settled: the matcher becomes name
 * and kind, or goes away when its policy is Ignore and the failure may be ignored.
 * @returns the object to look up before asking again, the error to refuse the request with (400), or undefined
 */
export function inferMatcher(
  vm: VirtualMachine,
  field: MatcherField,
  known: Known,
): { readonly need: InferenceRef } | { readonly error: string } | undefined {
  const matcher = vm.spec[field];
  if (matcher == null || !matcher.inferFromVolume) return undefined;
  const ignore = matcher.inferFromVolumeFailurePolicy === 'Ignore';
  const inference = inferFromVolume(vm, field, matcher.inferFromVolume, known);
  if ('need' in inference) return inference;
  if ('error' in inference) {
    if (!inference.ignorable || !ignore) return { error: inference.error };
    delete vm.spec[field];
    return undefined;
  }
  // The user left it open whether there is an instance type: an amount given for the other case must not conflict.
  if (ignore && field === 'instancetype') delete vm.spec.template.spec?.domain?.memory;
  vm.spec[field] = { name: inference.name, ...(inference.kind !== '' && { kind: inference.kind }) };
  return undefined;
}
