/** Instance type and preference named by the source of a volume (kubevirt pkg/instancetype/infer). */

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

/** Reads an object; undefined when it does not exist. */
export type InferenceReader = (ref: InferenceRef) => Promise<InferenceObject | undefined>;

type Inference =
  | { readonly name: string; readonly kind: string }
  | { readonly error: string; readonly ignorable: boolean };

/** What every step of an inference has at hand; `label` names the instance type or preference, `label`-kind its kind. */
interface Task {
  readonly vm: ReadonlyVm;
  readonly label: string;
  readonly read: InferenceReader;
}

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

/** Name and kind that the volume `volumeName` stands for, or why there is none. */
async function fromVolume(task: Task, volumeName: string): Promise<Inference> {
  const { metadata, spec } = task.vm;
  const volume = (spec.template?.spec?.volumes ?? []).find(({ name }) => name === volumeName);
  if (volume === undefined) return fatal(`unable to find volume ${volumeName} to infer defaults`);
  if (volume.persistentVolumeClaim != null)
    return fromClaim(task, { name: volume.persistentVolumeClaim.claimName, namespace: metadata.namespace ?? '' });
  if (volume.dataVolume != null) return fromDataVolume(task, volume.dataVolume.name);
  return ignorable(`unable to infer defaults from volume ${volumeName} as type is not supported`);
}

function fromLabels({ label }: Task, { metadata }: InferenceObject): Inference {
  const name = metadata.labels?.[label];
  if (name === undefined) return ignorable(`unable to find required ${label} label on the volume`);
  return { name, kind: metadata.labels?.[`${label}-kind`] ?? '' };
}

async function fromObject(task: Task, ref: InferenceRef): Promise<Inference> {
  const object = await task.read(ref);
  return object === undefined ? fatal(notFound(ref)) : fromLabels(task, object);
}

const fromClaim = (task: Task, { name = '', namespace = '' }: SourceRef): Promise<Inference> =>
  fromObject(task, { resource: 'persistentvolumeclaims', namespace, name });

/** By the claim or the snapshot that is copied; undefined where it is neither. */
function fromCopied(task: Task, { source }: DataVolumeSource): Promise<Inference> | undefined {
  if (source?.pvc != null) return fromClaim(task, source.pvc);
  if (source?.snapshot == null) return undefined;
  const { name = '', namespace = '' } = source.snapshot;
  return fromObject(task, { resource: 'volumesnapshots', namespace, name });
}

async function fromDataVolume(task: Task, name: string): Promise<Inference> {
  const { metadata, spec } = task.vm;
  const namespace = metadata.namespace ?? '';
  const template = (spec.dataVolumeTemplates ?? []).find((one) => one.metadata?.name === name);
  if (template !== undefined) return fromDataVolumeSpec(task, template.spec as DataVolumeSource, namespace);
  const object = await task.read({ resource: 'datavolumes', namespace, name });
  // Collected as garbage: its claim has the same name.
  if (object === undefined) return fromClaim(task, { name, namespace });
  const own = fromLabels(task, object);
  return 'name' in own ? own : fromDataVolumeSpec(task, (object.spec ?? {}) as DataVolumeSource, namespace);
}

async function fromDataVolumeSpec(task: Task, spec: DataVolumeSource, own: string): Promise<Inference> {
  const copied = fromCopied(task, spec);
  if (copied !== undefined) return copied;
  const { sourceRef } = spec;
  if (sourceRef == null)
    return ignorable('unable to infer defaults from DataVolumeSpec as DataVolumeSource is not supported');
  const { kind, name, namespace } = sourceRef;
  if (kind === 'DataSource')
    return fromDataSource(task, { resource: 'datasources', namespace: namespace ?? own, name: name ?? '' });
  return ignorable(`unable to infer defaults from DataVolumeSourceRef as Kind ${kind ?? ''} is not supported`);
}

async function fromDataSource(task: Task, ref: InferenceRef): Promise<Inference> {
  const object = await task.read(ref);
  if (object === undefined) return fatal(notFound(ref));
  const own = fromLabels(task, object);
  if ('name' in own) return own;
  return (
    fromCopied(task, (object.spec ?? {}) as DataVolumeSource) ??
    ignorable("unable to infer defaults from DataSource that doesn't provide DataVolumeSourcePVC")
  );
}

/**
 * The part of the mutating webhook for one matcher. Changes `vm`: the matcher becomes name and kind, or goes away when its
 * policy is Ignore and the failure may be ignored. Rejects as `read` does.
 * @returns the error to refuse the request with (400), or undefined
 */
export async function inferMatcher(
  vm: VirtualMachine,
  field: MatcherField,
  read: InferenceReader,
): Promise<string | undefined> {
  const matcher = vm.spec[field];
  if (matcher == null || !matcher.inferFromVolume) return undefined;
  const ignore = matcher.inferFromVolumeFailurePolicy === 'Ignore';
  const label = `instancetype.kubevirt.io/default-${field}`;
  const inference = await fromVolume({ vm, label, read }, matcher.inferFromVolume);
  if ('error' in inference) {
    if (!inference.ignorable || !ignore) return inference.error;
    delete vm.spec[field];
    return undefined;
  }
  // The user left it open whether there is an instance type: an amount given for the other case must not conflict.
  if (ignore && field === 'instancetype') delete vm.spec.template.spec?.domain?.memory;
  vm.spec[field] = { name: inference.name, ...(inference.kind !== '' && { kind: inference.kind }) };
  return undefined;
}
