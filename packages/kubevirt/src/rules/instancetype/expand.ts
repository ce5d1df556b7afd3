/**
 * A virtual machine as its instance type and preference make it. Three uses, which differ in what surrounds the same
 * application: validating and capturing (`applyInstancetype`), expanding (`expandVirtualMachine`), and starting
 * (`applyAtStart`).
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type {
  InstancetypeSpec,
  PreferenceSpec,
  ReadonlyVm,
  VirtualMachine,
  VirtualMachineInstanceSpec,
} from '../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../machine-defaults/cluster-config.ts';
import { addDefaultNetwork, addDisksForVolumes } from '../machine-defaults/implicit-devices.ts';
import { setInstanceSpecDefaults } from '../machine-defaults/instance-defaults.ts';
import { type AnnotatedMeta, applyInstancetypeSpec } from './apply-instancetype.ts';
import { applyArchitecture, applyMachineType, applyPreferenceSpec } from './apply-preference.ts';
import type { Conflict } from './conflicts.ts';
import { setSourceAnnotations } from './matcher.ts';
import { applyAutoattachPreferences } from './preferred-devices.ts';
import { toWireForm } from './wire-form.ts';

/** Where the spec of an instance stands in a VirtualMachine. */
export const TEMPLATE_SPEC = 'spec.template.spec';

type InstancetypeRef = NonNullable<NonNullable<VirtualMachine['status']>['instancetypeRef']>;

/** What is laid over a virtual machine. An absent member is a layer that is not there. */
export interface Layers {
  readonly instancetype?: DeepReadonly<InstancetypeSpec> | undefined;
  readonly preference?: DeepReadonly<PreferenceSpec> | undefined;
}

export interface ApplyInput extends Layers {
  /** `domain` and its `devices` may be absent. */
  readonly spec: DeepReadonly<Partial<VirtualMachineInstanceSpec>>;
  readonly metadata?: DeepReadonly<AnnotatedMeta> | undefined;
}

export type ApplyResult =
  | { readonly ok: true; readonly spec: VirtualMachineInstanceSpec; readonly metadata: AnnotatedMeta }
  | { readonly ok: false; readonly conflicts: readonly Conflict[] };

/** The expanded copy of a spec and its metadata, or every conflict. Leaves its arguments alone. */
export function applyInstancetype(input: ApplyInput): ApplyResult {
  const spec = cloneJson(input.spec) as VirtualMachineInstanceSpec;
  ensureDomain(spec);
  const metadata = cloneJson<AnnotatedMeta>(input.metadata ?? {});
  const conflicts = applyLayers(TEMPLATE_SPEC, input, spec, metadata);
  return conflicts.length > 0 ? { ok: false, conflicts } : { ok: true, spec, metadata };
}

/** Processors and memory of a guest with these layers, as `status.instancetypeRef.resources` shows them. */
export function providedResources(layers: Layers): NonNullable<InstancetypeRef['resources']> | undefined {
  const applied = applyInstancetype({ ...layers, spec: {} });
  const memory = applied.ok ? applied.spec.domain.memory?.guest : undefined;
  if (!applied.ok || memory === undefined) return undefined;
  const { cores, sockets, threads } = applied.spec.domain.cpu ?? {};
  return { cpu: { ...(cores && { cores }), ...(sockets && { sockets }), ...(threads && { threads }) }, memory };
}

/**
 * The same in place: changes `spec`, whose devices must be there, and `metadata`. With conflicts the preference is not
 * applied and `spec` is left half done: throw it away.
 */
function applyLayers(
  base: string,
  { instancetype, preference }: Layers,
  spec: VirtualMachineInstanceSpec,
  metadata: AnnotatedMeta,
): Conflict[] {
  if (instancetype !== undefined) {
    const conflicts = applyInstancetypeSpec(base, { type: instancetype, preference }, spec, metadata);
    if (conflicts.length > 0) return conflicts;
  }
  if (preference !== undefined) applyPreferenceSpec(preference, spec, metadata);
  return [];
}

/** Users may leave out the domain and its devices. Changes `spec`. */
function ensureDomain(spec: Partial<VirtualMachineInstanceSpec>): asserts spec is VirtualMachineInstanceSpec {
  spec.domain ??= { devices: {} };
  spec.domain.devices ??= {};
  spec.domain.resources ??= {};
}

/** What both layers are laid over: `template`, which changes, with its devices, a disk for each volume, and a network. */
export function openTemplate(template: VirtualMachine['spec']['template'], config: ClusterConfig) {
  template.spec ??= {} as VirtualMachineInstanceSpec;
  template.metadata ??= {};
  const { spec, metadata } = template;
  ensureDomain(spec);
  addDisksForVolumes(spec);
  addDefaultNetwork(spec, config);
  return { spec, metadata };
}

export type ExpandResult =
  | { readonly ok: true; readonly vm: VirtualMachine }
  | { readonly ok: false; readonly conflicts: readonly Conflict[] };

/**
 * A copy of `vm` that needs neither instance type nor preference any more: disks for its volumes and the default
 * network, both layers, the general defaults; no matchers and no status references. A machine without matchers comes
 * back as it is. In the form upstream's typed objects have on the wire.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function expandVirtualMachine(vm: ReadonlyVm, layers: Layers, config: ClusterConfig): ExpandResult {
  const next = cloneJson<VirtualMachine>(vm);
  if (next.spec.instancetype == null && next.spec.preference == null) return { ok: true, vm: toWireForm(next) };
  next.spec.template ??= {};
  const { spec, metadata } = openTemplate(next.spec.template, config);
  const conflicts = applyLayers(TEMPLATE_SPEC, layers, spec, metadata);
  if (conflicts.length > 0) return { ok: false, conflicts };
  setInstanceSpecDefaults(spec, config);
  delete next.spec.instancetype;
  delete next.spec.preference;
  if (next.status) {
    delete next.status.instancetypeRef;
    delete next.status.preferenceRef;
  }
  return { ok: true, vm: toWireForm(next) };
}

/** What a starting virtual machine gives its instance: `spec` and `metadata` are the instance's own, and change. */
export interface StartInput extends Layers {
  readonly vm: ReadonlyVm;
  readonly spec: VirtualMachineInstanceSpec;
  readonly metadata: AnnotatedMeta;
  readonly config: ClusterConfig;
}

/**
 * Turns the template's copy in `spec` into the spec of a new instance, in upstream's order: disks for volumes, the
 * autoattach preferences, the input device and the default network that follow from them, then both layers. The usual
 * defaults come at admission.
 * @returns the conflicts; `startConflictsMessage` has their text
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function applyAtStart({ vm, spec, metadata, config, ...layers }: StartInput): Conflict[] {
  ensureDomain(spec);
  addDisksForVolumes(spec);
  if (layers.preference !== undefined) applyAutoattachPreferences(layers.preference, spec);
  addInputDevice(spec);
  addDefaultNetwork(spec, config);
  if (layers.instancetype === undefined && layers.preference === undefined) return [];
  setSourceAnnotations(vm, metadata);
  return applyLayers('spec', layers, spec, metadata);
}

/** The input device `default-0` for a guest that asks for one and lists none. Its type and bus come later. */
function addInputDevice(spec: VirtualMachineInstanceSpec): void {
  const { devices } = spec.domain;
  if (devices.autoattachInputDevice !== true || (devices.inputs?.length ?? 0) > 0) return;
  devices.inputs = [{ name: 'default-0', type: '' }];
}

/**
 * What the mutating webhook keeps of a preference in the virtual machine itself: architecture, machine type, and the
 * storage class of DataVolume templates that name none. Changes `vm`.
 */
export function keepPreferenceInVirtualMachine(vm: VirtualMachine, preference: DeepReadonly<PreferenceSpec>): void {
  const spec = vm.spec.template?.spec;
  if (spec !== undefined) {
    applyArchitecture(preference, spec);
    if (preference.machine?.preferredMachineType) ensureDomain(spec);
    applyMachineType(preference, spec);
  }
  const storageClass = preference.volumes?.preferredStorageClassName;
  if (!storageClass) return;
  for (const template of vm.spec.dataVolumeTemplates ?? []) {
    const { pvc, storage } = template.spec;
    for (const claim of [pvc, storage]) if (claim) claim.storageClassName ??= storageClass;
  }
}
