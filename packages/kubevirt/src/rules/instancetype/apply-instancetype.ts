/**
 * An instance type laid over the spec of an instance (kubevirt pkg/instancetype/apply). Amounts belong to the instance
 * type: a virtual machine that says one of them too is in conflict. All steps run, so that every conflict is found; a
 * result with conflicts is thrown away by the caller.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { InstancetypeSpec, PreferenceSpec, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { canonicalQuantity, overcommittedMemory } from './amounts.ts';
import type { Conflict } from './conflicts.ts';
import { guestTopology } from './cpu-topology.ts';

/** The part of an object's metadata that instance types and preferences write. */
export interface AnnotatedMeta {
  annotations?: Record<string, string>;
}

interface Step {
  readonly base: string;
  readonly type: DeepReadonly<InstancetypeSpec>;
  readonly preference: DeepReadonly<PreferenceSpec> | undefined;
  readonly spec: VirtualMachineInstanceSpec;
  readonly conflicts: Conflict[];
}

/**
 * Applies `type` to `spec` and `metadata` and returns the conflicts in upstream's order. `base` is the path of `spec` in
 * the object that the user wrote (`spec.template.spec`, or `spec` at the start of an instance). Changes what it is
 * given; `spec.domain.devices` must be there.
 */
export function applyInstancetypeSpec(
  base: string,
  layers: { type: DeepReadonly<InstancetypeSpec>; preference?: DeepReadonly<PreferenceSpec> | undefined },
  spec: VirtualMachineInstanceSpec,
  metadata: AnnotatedMeta,
): Conflict[] {
  const conflicts: Conflict[] = [];
  const { type } = layers;
  const { domain } = spec;
  const { devices } = domain;
  const step: Step = { base, type, preference: layers.preference, spec, conflicts };
  applyNodeSelector(step);
  if (type.schedulerName && spec.schedulerName) conflictAt(step, 'schedulerName');
  else if (type.schedulerName) spec.schedulerName = type.schedulerName;
  applyCpu(step);
  applyMemory(step);
  applyIoThreads(step);
  layOver(step, 'domain.', domain, 'ioThreadsPolicy', type.ioThreadsPolicy);
  layOver(step, 'domain.', domain, 'launchSecurity', type.launchSecurity);
  layOver(step, 'domain.devices.', devices, 'gpus', type.gpus);
  layOver(step, 'domain.devices.', devices, 'hostDevices', type.hostDevices);
  applyAnnotations(step, metadata);
  return conflicts;
}

const conflictAt = ({ base, conflicts }: Step, path: string): void => {
  conflicts.push({ path: `${base}.${path}` });
};

/** Sets a member that the instance type has to itself: an empty list says nothing on either side. */
function layOver<T extends object, K extends keyof T & string>(
  step: Step,
  path: string,
  target: T,
  member: K,
  value: unknown,
): void {
  if (isEmpty(value)) return;
  if (isEmpty(target[member])) target[member] = cloneJson(value) as T[K];
  else conflictAt(step, path + member);
}

const isEmpty = (value: unknown): boolean => value == null || (Array.isArray(value) && value.length === 0);

function applyNodeSelector(step: Step): void {
  const { type, spec } = step;
  if (type.nodeSelector === undefined || Object.keys(type.nodeSelector).length === 0) return;
  if (spec.nodeSelector != null) conflictAt(step, 'nodeSelector');
  else spec.nodeSelector = { ...type.nodeSelector };
}

function applyCpu(step: Step): void {
  const { type, spec, conflicts } = step;
  const found = conflicts.length;
  spec.domain.cpu ??= {};
  checkCpu(step);
  if (conflicts.length > found) return;

  const { cpu } = spec.domain;
  const from = type.cpu;
  if (from.model != null) cpu.model = from.model;
  if (from.dedicatedCPUPlacement != null) setOrDelete(cpu, 'dedicatedCpuPlacement', from.dedicatedCPUPlacement);
  if (from.isolateEmulatorThread != null) setOrDelete(cpu, 'isolateEmulatorThread', from.isolateEmulatorThread);
  if (from.numa != null) cpu.numa = cloneJson(from.numa);
  if (from.realtime != null) cpu.realtime = cloneJson(from.realtime);
  if (from.maxSockets != null) cpu.maxSockets = from.maxSockets;
  const { sockets, cores, threads } = guestTopology(from.guest, step.preference);
  setOrDelete(cpu, 'cores', cores);
  setOrDelete(cpu, 'sockets', sockets);
  setOrDelete(cpu, 'threads', threads);
}

/** A false or a zero is the same as nothing there: upstream's fields are plain bools and numbers. */
function setOrDelete<T extends object, K extends keyof T>(target: T, member: K, value: T[K] | undefined): void {
  if (value) target[member] = value;
  else delete target[member];
}

function checkCpu(step: Step): void {
  const { type, spec } = step;
  const { resources } = spec.domain;
  const cpu = spec.domain.cpu!;
  if (hasAmount(resources?.requests, 'cpu')) conflictAt(step, 'domain.resources.requests.cpu');
  if (hasAmount(resources?.limits, 'cpu')) conflictAt(step, 'domain.resources.limits.cpu');
  if (cpu.sockets) conflictAt(step, 'domain.cpu.sockets');
  if (cpu.cores) conflictAt(step, 'domain.cpu.cores');
  if (cpu.threads) conflictAt(step, 'domain.cpu.threads');
  if (cpu.model && type.cpu.model != null) conflictAt(step, 'domain.cpu.model');
  if (cpu.dedicatedCpuPlacement && type.cpu.dedicatedCPUPlacement != null)
    conflictAt(step, 'domain.cpu.dedicatedCPUPlacement');
  if (cpu.isolateEmulatorThread && type.cpu.isolateEmulatorThread != null)
    conflictAt(step, 'domain.cpu.isolateEmulatorThread');
  if (cpu.numa != null && type.cpu.numa != null) conflictAt(step, 'domain.cpu.numa');
  if (cpu.realtime != null && type.cpu.realtime != null) conflictAt(step, 'domain.cpu.realtime');
}

const hasAmount = (list: Readonly<Record<string, unknown>> | undefined, resource: string): boolean =>
  list != null && Object.hasOwn(list, resource);

function applyMemory(step: Step): void {
  const { type, spec } = step;
  const { domain } = spec;
  domain.memory ??= {};
  const { memory } = domain;
  const from = type.memory;
  const conflict = memoryConflict(domain, from);
  if (conflict !== undefined) {
    conflictAt(step, conflict);
    return;
  }
  memory.guest = canonicalQuantity(from.guest);
  if ((from.overcommitPercent ?? 0) > 0) {
    const requests = {
      ...domain.resources?.requests,
      memory: overcommittedMemory(from.guest, from.overcommitPercent!),
    };
    domain.resources = { ...domain.resources, requests };
  }
  if (from.hugepages != null) memory.hugepages = cloneJson(from.hugepages);
  if (from.maxGuest != null) memory.maxGuest = canonicalQuantity(from.maxGuest);
}

/** Only the first conflict of memory is reported. */
function memoryConflict(
  { memory, resources }: VirtualMachineInstanceSpec['domain'],
  from: DeepReadonly<InstancetypeSpec['memory']>,
): string | undefined {
  if (memory?.guest != null) return 'domain.memory.guest';
  if (memory?.hugepages != null && from.hugepages != null) return 'domain.memory.hugepages';
  if (memory?.maxGuest != null && from.maxGuest != null) return 'domain.memory.maxGuest';
  if (hasAmount(resources?.requests, 'memory')) return 'domain.resources.requests.memory';
  if (hasAmount(resources?.limits, 'memory')) return 'domain.resources.limits.memory';
  return undefined;
}

function applyIoThreads(step: Step): void {
  const { type, spec } = step;
  const count = type.ioThreads?.supplementalPoolThreadCount;
  if (count == null) return;
  if (spec.domain.ioThreads?.supplementalPoolThreadCount != null)
    conflictAt(step, 'domain.ioThreads.supplementalPoolThreadCount');
  else spec.domain.ioThreads = { ...spec.domain.ioThreads, supplementalPoolThreadCount: count };
}

/** The paths of these conflicts have no base. Upstream lists them in no order; here it is by key. */
function applyAnnotations({ type, conflicts }: Step, metadata: AnnotatedMeta): void {
  if (type.annotations === undefined) return;
  const annotations = metadata.annotations ?? {};
  let added: Record<string, string> | undefined;
  for (const key of Object.keys(type.annotations).sort()) {
    const value = type.annotations[key]!;
    if (!Object.hasOwn(annotations, key)) {
      added ??= {};
      added[key] = value;
    } else if (annotations[key] !== value) {
      conflicts.push({ path: `annotations.${key}` });
    }
  }
  if (added !== undefined) metadata.annotations = { ...annotations, ...added };
}
