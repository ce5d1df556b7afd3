/**
 * A virtual machine as it leaves upstream's typed API: zero values of optional plain fields are gone, structs that are
 * not pointers are always there, quantities are canonical. The answers of the expand endpoints are in this form.
 */
import type { QuantityValue, VirtualMachine, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { canonicalQuantity } from './amounts.ts';

type Json = Record<string, unknown>;

/** Plain bools and counters: false and 0 are the same as nothing. */
const PLAIN = new Set([
  'cores',
  'sockets',
  'threads',
  'maxSockets',
  'dedicatedCpuPlacement',
  'isolateEmulatorThread',
  'disableHotplug',
  'hotpluggable',
  'reservation',
  'readOnly',
  'default',
  'hidden',
  'endOfInterrupt',
  'acpiIndex',
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
]);
/** Members of the status that are plain bools and numbers. */
const STATUS_PLAIN = ['created', 'ready', 'observedGeneration', 'desiredGeneration'] as const;
/** Maps whose emptiness is the same as absence. Other empty objects say something by being there. */
const MAPS = new Set(['nodeSelector', 'requests', 'limits', 'annotations', 'labels']);
/** Text that is written even when it is empty. */
const ALWAYS_WRITTEN = new Set(['name', 'type']);
/** Subtrees that upstream keeps as they were sent. */
const OPAQUE = new Set(['affinity', 'topologySpreadConstraints', 'tolerations', 'dnsConfig', 'metadata']);

/** Changes `vm` and returns it. */
export function toWireForm(vm: VirtualMachine): VirtualMachine {
  dropEmptyMaps(vm.metadata as Json);
  vm.status ??= {};
  for (const member of STATUS_PLAIN) if (!vm.status[member]) delete vm.status[member];
  dropEmpty(vm.spec as Json, ['instancetype', 'preference', 'dataVolumeTemplates', 'running', 'runStrategy']);
  for (const { metadata, spec } of vm.spec.dataVolumeTemplates ?? []) cleanDataVolume((metadata ?? {}) as Json, spec);
  const template = vm.spec.template as VirtualMachine['spec']['template'] | undefined;
  if (template == null) return vm;
  template.metadata = dropEmptyMaps((template.metadata ?? {}) as Json);
  const spec = (template.spec ?? {}) as VirtualMachineInstanceSpec;
  template.spec = spec;
  clean(spec as Json);
  spec.domain ??= { devices: {} };
  const { domain } = spec;
  domain.devices ??= {};
  domain.resources ??= {};
  if (domain.features) domain.features.acpi ??= {};
  // Of a CD-ROM drive it is a pointer, and false says something.
  for (const { disk, lun } of domain.devices.disks ?? [])
    for (const target of [disk, lun]) if (target?.readonly === false) delete target.readonly;
  canonicalise(domain.resources.requests);
  canonicalise(domain.resources.limits);
  if (domain.memory) {
    canonicaliseMember(domain.memory, 'guest');
    canonicaliseMember(domain.memory, 'maxGuest');
  }
  for (const { emptyDisk, hostDisk } of spec.volumes ?? []) {
    canonicaliseMember(emptyDisk, 'capacity');
    canonicaliseMember(hostDisk, 'capacity');
  }
  return vm;
}

function dropEmpty(object: Json, members: readonly string[]): void {
  for (const member of members) {
    const value = object[member];
    if (value === null || (Array.isArray(value) && value.length === 0)) delete object[member];
  }
}

interface Claim {
  resources?: { requests?: Record<string, QuantityValue>; limits?: Record<string, QuantityValue> };
}

/** A claim's resources are a struct, too. */
function cleanDataVolume(metadata: Json, spec: unknown): void {
  dropEmptyMaps(metadata);
  const { pvc, storage } = (spec ?? {}) as { pvc?: Claim; storage?: Claim };
  for (const claim of [pvc, storage]) {
    if (claim == null) continue;
    claim.resources ??= {};
    canonicalise(claim.resources.requests);
    canonicalise(claim.resources.limits);
  }
}

function dropEmptyMaps(metadata: Json): Json {
  for (const key of Object.keys(metadata)) {
    const value = metadata[key];
    if (value === null || value === '' || (MAPS.has(key) && isEmptyObject(value))) delete metadata[key];
  }
  return metadata;
}

const isEmptyObject = (value: unknown): boolean => Object.keys(value as object).length === 0;

function clean(object: Json): void {
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (typeof value === 'string') {
      if (value === '' && !ALWAYS_WRITTEN.has(key)) delete object[key];
    } else if (typeof value !== 'object') {
      if (!value && PLAIN.has(key)) delete object[key];
    } else if (value === null) {
      delete object[key];
    } else if (Array.isArray(value)) {
      if (value.length === 0) delete object[key];
      else if (!OPAQUE.has(key)) for (const item of value) if (typeof item === 'object' && item !== null) clean(item);
    } else if (MAPS.has(key)) {
      if (isEmptyObject(value)) delete object[key];
    } else if (!OPAQUE.has(key)) {
      clean(value as Json);
    }
  }
}

function canonicalise(amounts: Record<string, QuantityValue> | undefined): void {
  if (amounts === undefined) return;
  for (const resource of Object.keys(amounts)) amounts[resource] = canonicalQuantity(amounts[resource]!);
}

function canonicaliseMember<K extends string>(owner: { [key in K]?: QuantityValue } | undefined, key: K): void {
  const value = owner?.[key];
  if (value != null) owner![key] = canonicalQuantity(value);
}
