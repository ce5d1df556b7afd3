/** Rules about processors and memory. */

import {
  compareQuantity,
  parseQuantity,
  type Quantity,
  quantityValue,
  readQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import type { QuantityValue, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import {
  addAll,
  type Cause,
  invalidValue,
  requiredValue,
  unsupportedValue,
  type ValidatedSpec,
  validateEach,
} from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const ZERO: Quantity = { nano: 0n, format: 'DecimalSI' };
const SMALLEST_MEMORY = parseQuantity('1M');
const CPU_POLICIES = ['', 'force', 'require', 'optional', 'disable', 'forbid'];
const MAX_SERIAL = 256;

const orZero = (value: QuantityValue | undefined): Quantity => readQuantity(value) ?? ZERO;

export function validateResources(causes: Cause[], { path, spec, config }: ValidatedSpec): void {
  addAll(causes, validateMemory(path, spec, config));
  addAll(causes, validateCpuAmounts(path, spec));
  validateCpuFeatures(causes, path, spec);
  addAll(causes, validateCpu(path, spec));
  addAll(causes, validateDedicatedCpu(path, spec));
}

const validateCpuFeatures = (causes: Cause[], path: string, { domain: { cpu } }: Spec): void =>
  validateEach(causes, cpu?.features ?? [], ({ name, policy }, i) => {
    if (CPU_POLICIES.includes(policy ?? '')) return [];
    const field = `${path}.domain.cpu.features[${i}].policy`;
    return [unsupportedValue(field, `CPU feature ${name} uses policy ${policy} that is not supported.`)];
  });

function validateMemory(path: string, spec: Spec, config: ClusterConfig): Cause[] {
  const causes: Cause[] = [];
  const { memory, resources } = spec.domain;
  const requestPath = `${path}.domain.resources.requests.memory`;
  const limitPath = `${path}.domain.resources.limits.memory`;
  const requestText = resources?.requests?.['memory'];
  const limitText = resources?.limits?.['memory'];
  const request = orZero(requestText);
  const limit = orZero(limitText);

  if (request.nano < 0n) causes.push(invalidValue(requestPath, notNegative(requestPath, requestText)));
  else if (request.nano > 0n && compareQuantity(request, SMALLEST_MEMORY) < 0) {
    causes.push(invalidValue(requestPath, `${requestPath} '${requestText}': must be greater than or equal to 1M.`));
  }
  if (limit.nano < 0n) causes.push(invalidValue(limitPath, notNegative(limitPath, limitText)));
  if (limit.nano > 0n && compareQuantity(request, limit) > 0) {
    causes.push(
      invalidValue(requestPath, `${requestPath} '${requestText}' is greater than ${limitPath} '${limitText}'`),
    );
  }

  const guest = readQuantity(memory?.guest);
  // With live updates the limit follows the guest, so it cannot be too small.
  if (!config.liveUpdate && guest !== undefined && limit.nano > 0n && compareQuantity(limit, guest) < 0) {
    const guestPath = `${path}.domain.memory.guest`;
    causes.push(
      invalidValue(
        guestPath,
        `${guestPath} '${memory?.guest}' must be equal to or less than the memory limit ${limitPath} '${limitText}'`,
      ),
    );
  }
  causes.push(...validateHugepages(path, spec));
  if (memory?.reservedOverhead !== undefined && !config.isEnabled('ReservedOverheadMemlock')) {
    const field = `${path}.domain.memory.reservedOverhead`;
    causes.push(invalidValue(field, gateMissing('ReservedOverheadMemlock')));
  }
  return causes;
}

function validateHugepages(path: string, spec: Spec): Cause[] {
  const pageSize = spec.domain.memory?.hugepages?.pageSize;
  if (spec.domain.memory?.hugepages === undefined) return [];
  const sizePath = `${path}.domain.memory.hugepages.pageSize`;
  const size = readQuantity(pageSize ?? '');
  if (size === undefined || size.nano <= 0n) {
    return [invalidValue(sizePath, `${sizePath} '${pageSize ?? ''}': must be an amount such as 2Mi or 1Gi`)];
  }
  // The request may be left to follow the guest's memory.
  const text = spec.domain.resources?.requests?.['memory'] ?? spec.domain.memory.guest;
  if (text === undefined) return [];
  const field = `${path}.domain.resources.requests.memory`;
  const wanted = quantityValue(orZero(text));
  if (wanted < quantityValue(size)) {
    return [
      invalidValue(field, `${field} '${text}' must be equal to or larger than page size ${sizePath} '${pageSize}'`),
    ];
  }
  return wanted % quantityValue(size) === 0
    ? []
    : [invalidValue(field, `${field} '${text}' is not a multiple of the page size ${sizePath} '${pageSize}'`)];
}

function validateCpuAmounts(path: string, spec: Spec): Cause[] {
  const causes: Cause[] = [];
  const { resources } = spec.domain;
  const requestPath = `${path}.domain.resources.requests.cpu`;
  const limitPath = `${path}.domain.resources.limits.cpu`;
  const requestText = resources?.requests?.['cpu'];
  const limitText = resources?.limits?.['cpu'];
  const request = orZero(requestText);
  const limit = orZero(limitText);
  if (request.nano < 0n) causes.push(invalidValue(requestPath, notNegative(requestPath, requestText)));
  if (limit.nano < 0n) causes.push(invalidValue(limitPath, notNegative(limitPath, limitText)));
  if (limit.nano > 0n && compareQuantity(request, limit) > 0) {
    causes.push(
      invalidValue(requestPath, `${requestPath} '${requestText}' is greater than ${limitPath} '${limitText}'`),
    );
  }
  return causes;
}

function validateCpu(path: string, spec: Spec): Cause[] {
  const { cpu, memory } = spec.domain;
  if (cpu === undefined) return [];
  const causes: Cause[] = [];
  const cpuPath = `${path}.domain.cpu`;
  if (cpu.maxSockets && (cpu.sockets ?? 0) > cpu.maxSockets) {
    causes.push(
      invalidValue(
        `${cpuPath}.sockets`,
        'Number of sockets in CPU topology is greater than the maximum sockets allowed',
      ),
    );
  }
  if (cpu.isolateEmulatorThread && !cpu.dedicatedCpuPlacement) {
    causes.push(invalidValue(`${cpuPath}.isolateEmulatorThread`, 'isolateEmulatorThread needs dedicatedCpuPlacement'));
  }
  const numaPath = `${cpuPath}.numa.guestMappingPassthrough`;
  if (cpu.numa?.guestMappingPassthrough !== undefined) {
    if (!cpu.dedicatedCpuPlacement) {
      causes.push(invalidValue(numaPath, `${cpuPath}.dedicatedCpuPlacement must be true when ${numaPath} is set`));
    }
    if (memory?.hugepages === undefined) {
      causes.push(invalidValue(numaPath, `${path}.domain.memory.hugepages must be set when ${numaPath} is set`));
    }
  }
  if (cpu.realtime !== undefined) {
    if (!cpu.dedicatedCpuPlacement) {
      const field = `${cpuPath}.dedicatedCpuPlacement`;
      causes.push(requiredValue(field, `${field} must be true when ${cpuPath}.realtime is used`));
    }
    if (cpu.numa?.guestMappingPassthrough === undefined) {
      causes.push(requiredValue(numaPath, `${numaPath} must be set when ${cpuPath}.realtime is used`));
    }
  }
  return causes;
}

function validateDedicatedCpu(path: string, spec: Spec): Cause[] {
  const { cpu, resources } = spec.domain;
  if (!cpu?.dedicatedCpuPlacement) return [];
  const causes: Cause[] = [];
  const field = `${path}.domain.cpu.dedicatedCpuPlacement`;
  const at = (list: 'requests' | 'limits', name: string): string => `${path}.domain.resources.${list}.${name}`;
  const memoryRequest = orZero(resources?.requests?.['memory']);
  const memoryLimit = orZero(resources?.limits?.['memory']);
  // Guaranteed pods need a limit; the guest's own memory serves as one when neither is written.
  if (memoryRequest.nano === 0n && memoryLimit.nano === 0n && readQuantity(spec.domain.memory?.guest) === undefined) {
    const limit = at('limits', 'memory');
    causes.push(invalidValue(limit, `${at('requests', 'memory')} or ${limit} should be provided`));
  }
  if (memoryRequest.nano > 0n && memoryLimit.nano > 0n && compareQuantity(memoryRequest, memoryLimit) !== 0) {
    const request = at('requests', 'memory');
    causes.push(invalidValue(request, `${request} must be equal to ${at('limits', 'memory')}`));
  }

  const cpuRequest = orZero(resources?.requests?.['cpu']);
  const cpuLimit = orZero(resources?.limits?.['cpu']);
  for (const [list, amount] of [
    ['requests', cpuRequest],
    ['limits', cpuLimit],
  ] as const) {
    if (amount.nano > 0n && amount.nano % 1_000_000_000n !== 0n) {
      causes.push(invalidValue(at(list, 'cpu'), `${at(list, 'cpu')} must be a whole number with dedicated processors`));
    }
  }
  const vcpus = topologySize(cpu);
  const request = quantityValue(cpuRequest);
  const limit = quantityValue(cpuLimit);
  if (request === 0 && limit === 0 && vcpus === 0) {
    causes.push(
      invalidValue(
        field,
        `${at('requests', 'cpu')}, ${at('limits', 'cpu')} or a topology must be given when ${field} is true`,
      ),
    );
  }
  if (request > 0 && limit > 0 && request !== limit) {
    causes.push(
      invalidValue(field, `${at('requests', 'cpu')} and ${at('limits', 'cpu')} must be equal when ${field} is true`),
    );
  }
  if ((request > 0 || limit > 0) && vcpus > 0 && request !== vcpus && limit !== vcpus) {
    causes.push(
      invalidValue(
        field,
        `${at('requests', 'cpu')} or ${at('limits', 'cpu')} contradicts the topology of ${vcpus} processors while ${field} is true`,
      ),
    );
  }
  if (spec.architecture === 'arm64' && (cpu.threads ?? 0) > 1) {
    causes.push(
      invalidValue(
        `${path}.architecture`,
        `threads must not be greater than 1 at ${path}.domain.cpu.threads (got ${cpu.threads}) when ${path}.architecture is arm64`,
      ),
    );
  }
  if ((cpu.threads ?? 0) > 2) {
    causes.push(invalidValue(field, `at most two threads (got ${cpu.threads}) are possible when ${field} is true`));
  }
  return causes;
}

/** Virtual processors of a written topology, 0 when none is written. */
function topologySize(cpu: NonNullable<Spec['domain']['cpu']>): number {
  if (!cpu.cores && !cpu.sockets && !cpu.threads) return 0;
  return (cpu.cores || 1) * (cpu.sockets || 1) * (cpu.threads || 1);
}

/** A guest must get its memory from somewhere. Only instances are held to this: a template may leave it to an instance type. */
export function validateMemoryGiven(path: string, spec: Spec): Cause[] {
  const { memory, resources } = spec.domain;
  const given =
    orZero(resources?.requests?.['memory']).nano !== 0n ||
    memory?.guest !== undefined ||
    memory?.hugepages !== undefined;
  if (given) return [];
  const ways = ['memory.guest', 'memory.hugepages.size', 'resources.requests.memory'].map(
    (way) => `'${path}.domain.${way}'`,
  );
  return [requiredValue('', `no memory requested, at least one of ${ways.join(', ')} must be set`)];
}

export function validateSerial(field: string, serial: string | undefined): Cause[] {
  if (!serial) return [];
  const causes: Cause[] = [];
  if (serial.length > MAX_SERIAL) {
    causes.push(invalidValue(field, `${field} must be less than or equal to ${MAX_SERIAL} in length, if specified`));
  }
  if (!/^[A-Za-z0-9_.+-]+$/.test(serial)) {
    causes.push(
      invalidValue(field, `${field} must be made up of the following characters [A-Za-z0-9_.+-], if specified`),
    );
  }
  return causes;
}

const notNegative = (field: string, value: QuantityValue | undefined): string =>
  `${field} '${value}': must be greater than or equal to 0.`;

export const gateMissing = (gate: string): string =>
  `${gate} feature gate is not enabled: add it to configuration.developerConfiguration.featureGates of the KubeVirt object`;
