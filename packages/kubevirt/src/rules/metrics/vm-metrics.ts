/** Machines as upstream's metrics have them (pkg/monitoring/metrics/virt-controller/vmstats_collector.go). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { milliValue, quantityToBytes, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { InstancetypeSpec, PreferenceSpec, ReadonlyVm, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { applyInstancetype } from '../instancetype/expand.ts';
import { bindingOf, gauge, MAX_OBJECTS, NONE, networkLabel, objectLabels, sourceName, systemLabels } from './sample.ts';

/** An instance type or a preference. */
export interface MetricSource {
  readonly metadata: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: unknown;
}

/** What machines name. */
export interface VmLookups {
  /** The object behind `spec.instancetype` or `spec.preference`; undefined when it is not there. */
  source(vm: ReadonlyVm, field: 'instancetype' | 'preference'): DeepReadonly<MetricSource> | undefined;
  claim(namespace: string, name: string): ReadonlyClaim | undefined;
}

const GROUPS = {
  starting: ['Provisioning', 'Starting', 'WaitingForVolumeBinding'],
  running: ['Running'],
  migrating: ['Migrating'],
  non_running: ['Stopped', 'Paused', 'Stopping', 'Terminating'],
  error: [
    'CrashLoopBackOff',
    'Unknown',
    'ErrorUnschedulable',
    'ErrImagePull',
    'ImagePullBackOff',
    'ErrorPvcNotFound',
    'DataVolumeError',
  ],
} as const;
type Group = keyof typeof GROUPS;
const STATUSES: Readonly<Record<Group, string>> = {
  starting: 'starting',
  running: 'running',
  migrating: 'migrating',
  non_running: 'paused/stopped',
  error: 'error',
};

const groupOf = (status: string): Group | undefined =>
  (Object.keys(GROUPS) as Group[]).find((group) => (GROUPS[group] as readonly string[]).includes(status));

const of = ({ metadata }: ReadonlyVm) => ({ name: metadata.name ?? '', namespace: metadata.namespace ?? '' });

/** The families of machines; of the first 10,000. */
export function vmMetrics(all: readonly ReadonlyVm[], lookups: VmLookups): ValueFamily[] {
  const vms = all.slice(0, MAX_OBJECTS);
  return [
    gauge(
      'kubevirt_vm_info',
      'Information about Virtual Machines.',
      vms.map((vm) => ({ labels: infoOf(vm, lookups), value: 1 })),
    ),
    ...transitions(vms),
    gauge(
      'kubevirt_vm_create_date_timestamp_seconds',
      'Virtual Machine creation timestamp.',
      vms.map((vm) => ({ labels: of(vm), value: Date.parse(vm.metadata.creationTimestamp ?? '') / 1000 })),
    ),
    gauge(
      'kubevirt_vm_labels',
      'The metric exposes the VM labels as Prometheus labels.',
      vms
        .filter(({ metadata }) => Object.keys(metadata.labels ?? {}).length > 0)
        .map((vm) => ({ labels: { ...of(vm), ...objectLabels('label_', vm.metadata.labels) }, value: 1 })),
    ),
    ...resources(vms, lookups),
    disks(vms, lookups),
    gauge(
      'kubevirt_vm_vnic_info',
      "Details of Virtual Machine (VM) vNIC interfaces, such as vNIC name, binding type, network name, and binding name for each vNIC defined in the VM's configuration.",
      vms.flatMap((vm) =>
        vnicsOf(vm.spec.template.spec).map(({ model: _, ...vnic }) => ({ labels: { ...of(vm), ...vnic }, value: 1 })),
      ),
    ),
  ];
}

function infoOf(vm: ReadonlyVm, { source }: VmLookups) {
  const { instancetype, preference, template } = vm.spec;
  const status = vm.status?.printableStatus ?? '';
  return {
    ...of(vm),
    ...systemLabels(template.metadata?.annotations),
    machine_type: template.spec?.domain?.machine?.type ?? NONE,
    instance_type: instancetype ? sourceName(source(vm, 'instancetype')) : NONE,
    preference: preference ? sourceName(source(vm, 'preference')) : NONE,
    status: status.toLowerCase(),
    status_group: groupOf(status) ?? '<unknown>',
  };
}

/** Conditions whose last change is the change of the status. */
const TURNS: ReadonlySet<string> = new Set(['Ready', 'Failure', 'Paused']);

function transitions(vms: readonly ReadonlyVm[]): ValueFamily[] {
  const found = vms.map((vm) => {
    const times = (vm.status?.conditions ?? [])
      .filter(({ type }) => TURNS.has(type))
      .map(({ lastTransitionTime }) => Date.parse(lastTransitionTime ?? '') / 1000)
      .filter((time) => !Number.isNaN(time));
    return { labels: of(vm), group: groupOf(vm.status?.printableStatus ?? '') ?? 'error', time: Math.max(0, ...times) };
  });
  return (Object.keys(GROUPS) as Group[]).map((group) => ({
    name: `kubevirt_vm_${group}_status_last_transition_timestamp_seconds`,
    help: `Virtual Machine last transition timestamp to ${STATUSES[group]} status.`,
    type: 'counter',
    samples: found.map(({ labels, time, ...one }) => ({ labels, value: one.group === group ? time : 0 })),
  }));
}

interface Amount {
  readonly resource: 'cpu' | 'memory';
  readonly unit: string;
  readonly source: string;
  readonly value: number;
}

function resources(vms: readonly ReadonlyVm[], lookups: VmLookups): ValueFamily[] {
  const expanded = vms.map((vm) => ({ vm, spec: expandedSpec(vm, lookups) }));
  return [
    gauge(
      'kubevirt_vm_resource_requests',
      'Resources requested by Virtual Machine. Reports memory and CPU requests.',
      expanded.flatMap(({ vm, spec }) =>
        requestsOf(spec).map(({ value, ...labels }) => ({ labels: { ...of(vm), ...labels }, value })),
      ),
    ),
    gauge(
      'kubevirt_vm_resource_limits',
      'Resource limits set for a Virtual Machine. Reports CPU and memory limits only when they are defined.',
      expanded.flatMap(({ vm, spec }) =>
        limitsOf(spec).map(({ value, source: _, ...labels }) => ({ labels: { ...of(vm), ...labels }, value })),
      ),
    ),
  ];
}

type Spec = DeepReadonly<Partial<VirtualMachineInstanceSpec>> | undefined;

/** As the machine would start; where its layers are missing or contradict it, as it is written. */
function expandedSpec(vm: ReadonlyVm, { source }: VmLookups): Spec {
  const { instancetype, preference, template } = vm.spec;
  if (!template.spec || (!instancetype && !preference)) return template.spec;
  const layers = {
    instancetype: instancetype && (source(vm, 'instancetype')?.spec as DeepReadonly<InstancetypeSpec> | undefined),
    preference: preference && (source(vm, 'preference')?.spec as DeepReadonly<PreferenceSpec> | undefined),
  };
  const applied = applyInstancetype({ ...layers, spec: template.spec });
  return applied.ok ? applied.spec : template.spec;
}

const bytesOf = (value: unknown): number => {
  const quantity = readQuantity(value);
  return quantity ? quantityToBytes(quantity) : 0;
};
const coresOf = (value: unknown): number => {
  const quantity = readQuantity(value);
  return quantity ? milliValue(quantity) / 1000 : 0;
};
const given = (amounts: readonly Amount[]): Amount[] => amounts.filter(({ value }) => value > 0);

function requestsOf(spec: Spec): Amount[] {
  if (!spec?.domain) return [];
  const { cpu, memory, resources: asked } = spec.domain;
  const bytes = (source: string, value: unknown): Amount => ({
    ...{ resource: 'memory', unit: 'bytes', source },
    value: bytesOf(value),
  });
  const topology = (source: string, counts: { cores?: number; threads?: number; sockets?: number }): Amount[] =>
    (['cores', 'threads', 'sockets'] as const).map((unit) => ({
      ...{ resource: 'cpu', unit, source },
      value: counts[unit] ?? 0,
    }));
  const cores = coresOf(asked?.requests?.['cpu']);
  return given([
    bytes('domain', asked?.requests?.['memory']),
    bytes('guest', memory?.guest),
    bytes('hugepages', memory?.hugepages?.pageSize),
    ...(cpu ? topology('domain', cpu) : cores === 0 ? topology('default', { cores: 1, threads: 1, sockets: 1 }) : []),
    { resource: 'cpu', unit: 'cores', source: 'requests', value: cores },
  ]);
}

function limitsOf(spec: Spec): Amount[] {
  const limits = spec?.domain?.resources?.limits;
  return given([
    { resource: 'memory', unit: 'bytes', source: '', value: bytesOf(limits?.['memory']) },
    { resource: 'cpu', unit: 'cores', source: '', value: coresOf(limits?.['cpu']) },
  ]);
}

/** Of claims, and of DataVolumes, whose claims have their names: what is asked for, or of the template where it is not there yet. */
function disks(vms: readonly ReadonlyVm[], { claim }: VmLookups): ValueFamily {
  const samples = vms.flatMap((vm) =>
    (vm.spec.template.spec?.volumes ?? []).flatMap((volume) => {
      const name = volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name;
      if (!name) return [];
      const template = vm.spec.dataVolumeTemplates?.find(({ metadata }) => metadata?.name === name)?.spec;
      const found = claim(vm.metadata.namespace ?? '', name)?.spec ?? template?.pvc ?? template?.storage;
      const size = bytesOf(found?.resources?.requests?.['storage']);
      if (!found || size === 0) return [];
      const labels = {
        persistentvolumeclaim: name,
        volume_mode: found.volumeMode ?? 'Filesystem',
        device: volume.name,
      };
      return [{ labels: { ...of(vm), ...labels }, value: size }];
    }),
  );
  return gauge(
    'kubevirt_vm_disk_allocated_size_bytes',
    'Allocated disk size of a Virtual Machine in bytes, based on its PersistentVolumeClaim. Includes persistentvolumeclaim (PVC name), volume_mode (disk presentation mode: Filesystem or Block), and device (disk name).',
    samples,
  );
}

/** The cards of a spec that are on a network it names. */
export function vnicsOf(spec: Spec) {
  return (spec?.domain?.devices?.interfaces ?? []).flatMap((card) => {
    const network = spec?.networks?.find(({ name }) => name === card.name);
    if (!network) return [];
    const { type, name } = bindingOf(card);
    return [
      {
        vnic_name: card.name,
        binding_type: type,
        network: networkLabel(network),
        binding_name: name,
        model: card.model || NONE,
      },
    ];
  });
}
