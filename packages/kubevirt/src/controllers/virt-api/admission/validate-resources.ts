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
import { Findings } from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const ZERO: Quantity = { nano: 0n, format: 'DecimalSI' };
const SMALLEST_MEMORY = '1M';
const CPU_POLICIES = ['', 'force', 'require', 'optional', 'disable', 'forbid'];
const MAX_SERIAL = 256;

const orZero = (value: QuantityValue | undefined): Quantity => readQuantity(value) ?? ZERO;

export function validateResources(found: Findings, spec: Spec, config: ClusterConfig): void {
  validateMemory(found, spec, config);
  const domain = found.at('.domain');
  validateAmounts(amountsOf(domain, spec, 'cpu'), '0');
  domain.each('.cpu.features', spec.domain.cpu?.features, (at, { name, policy }) => {
    if (CPU_POLICIES.includes(policy ?? '')) return;
    at.unsupported('.policy', `CPU feature ${name} uses policy ${policy} that is not supported.`);
  });
  validateCpu(found, spec);
  if (!spec.domain.cpu?.dedicatedCpuPlacement) return;
  validateDedicatedAmounts(found, spec);
  validateDedicatedTopology(found, spec);
}

/** An amount of a resource, where it stands, and how messages name it. */
interface Amount {
  readonly found: Findings;
  readonly text: string;
  readonly amount: Quantity;
}

type Amounts = Readonly<Record<'request' | 'limit', Amount>>;

function amountsOf(domain: Findings, { domain: { resources } }: Spec, resource: 'cpu' | 'memory'): Amounts {
  const amountOf = (list: 'requests' | 'limits'): Amount => {
    const value = resources?.[list]?.[resource];
    const found = domain.at(`.resources.${list}.${resource}`);
    return { found, text: `${found.path} '${value}'`, amount: orZero(value) };
  };
  return { request: amountOf('requests'), limit: amountOf('limits') };
}

function validateAmounts({ request, limit }: Amounts, smallest: string): void {
  const atLeast = ({ found, text }: Amount, least: string): void =>
    found.invalid('', `${text}: must be greater than or equal to ${least}.`);
  if (request.amount.nano < 0n) atLeast(request, '0');
  else if (request.amount.nano > 0n && compareQuantity(request.amount, parseQuantity(smallest)) < 0)
    atLeast(request, smallest);
  if (limit.amount.nano < 0n) atLeast(limit, '0');
  if (limit.amount.nano > 0n && compareQuantity(request.amount, limit.amount) > 0)
    request.found.invalid('', `${request.text} is greater than ${limit.text}`);
}

function validateMemory(found: Findings, spec: Spec, config: ClusterConfig): void {
  const domain = found.at('.domain');
  const { memory } = spec.domain;
  const amounts = amountsOf(domain, spec, 'memory');
  const { limit } = amounts;
  validateAmounts(amounts, SMALLEST_MEMORY);
  const guest = readQuantity(memory?.guest);
  // With live updates the limit follows the guest, so it cannot be too small.
  if (!config.liveUpdate && guest !== undefined && limit.amount.nano > 0n && compareQuantity(limit.amount, guest) < 0) {
    const at = domain.at('.memory.guest');
    at.invalid('', `${at.path} '${memory?.guest}' must be equal to or less than the memory limit ${limit.text}`);
  }
  validateHugepages(domain, spec);
  if (memory?.reservedOverhead !== undefined)
    domain.gated('.memory.reservedOverhead', 'ReservedOverheadMemlock', config);
}

function validateHugepages(domain: Findings, { domain: { memory, resources } }: Spec): void {
  if (memory?.hugepages === undefined) return;
  const { pageSize = '' } = memory.hugepages;
  const at = domain.at('.memory.hugepages.pageSize');
  const size = readQuantity(pageSize);
  if (size === undefined || size.nano <= 0n) {
    at.invalid('', `${at.path} '${pageSize}': must be an amount such as 2Mi or 1Gi`);
    return;
  }
  // The request may be left to follow the guest's memory.
  const request = resources?.requests?.['memory'] ?? memory.guest;
  if (request === undefined) return;
  const wanted = quantityValue(orZero(request));
  const refuse = (why: string): void => {
    const memoryAt = domain.at('.resources.requests.memory');
    memoryAt.invalid('', `${memoryAt.path} '${request}' ${why} page size ${at.path} '${pageSize}'`);
  };
  if (wanted < quantityValue(size)) refuse('must be equal to or larger than');
  else if (wanted % quantityValue(size) !== 0) refuse('is not a multiple of the');
}

function validateCpu(found: Findings, { domain: { cpu, memory } }: Spec): void {
  if (cpu === undefined) return;
  const domain = `${found.path}.domain`;
  const at = found.at('.domain.cpu');
  if (cpu.maxSockets && (cpu.sockets ?? 0) > cpu.maxSockets)
    at.invalid('.sockets', 'Number of sockets in CPU topology is greater than the maximum sockets allowed');
  if (cpu.isolateEmulatorThread && !cpu.dedicatedCpuPlacement)
    at.invalid('.isolateEmulatorThread', 'isolateEmulatorThread needs dedicatedCpuPlacement');
  const numa = '.numa.guestMappingPassthrough';
  const mapped = cpu.numa?.guestMappingPassthrough !== undefined;
  if (mapped && !cpu.dedicatedCpuPlacement)
    at.invalid(numa, `${at.path}.dedicatedCpuPlacement must be true when ${at.path}${numa} is set`);
  if (mapped && memory?.hugepages === undefined)
    at.invalid(numa, `${domain}.memory.hugepages must be set when ${at.path}${numa} is set`);
  if (cpu.realtime === undefined) return;
  const used = `when ${at.path}.realtime is used`;
  if (!cpu.dedicatedCpuPlacement)
    at.required('.dedicatedCpuPlacement', `${at.path}.dedicatedCpuPlacement must be true ${used}`);
  if (!mapped) at.required(numa, `${at.path}${numa} must be set ${used}`);
}

const isWhole = ({ nano }: Quantity): boolean => nano % 1_000_000_000n === 0n;

/** A Pod with processors of its own is a guaranteed one: it has whole processors, and requests are its limits. */
function validateDedicatedAmounts(found: Findings, spec: Spec): void {
  const domain = found.at('.domain');
  const memory = amountsOf(domain, spec, 'memory');
  const memoryRequest = memory.request.amount.nano;
  const memoryLimit = memory.limit.amount.nano;
  const paths = [memory.request.found.path, memory.limit.found.path] as const;
  // The guest's own memory serves as a limit when neither is written.
  if (memoryRequest === 0n && memoryLimit === 0n && readQuantity(spec.domain.memory?.guest) === undefined)
    memory.limit.found.invalid('', `${paths[0]} or ${paths[1]} should be provided`);
  if (memoryRequest > 0n && memoryLimit > 0n && memoryRequest !== memoryLimit)
    memory.request.found.invalid('', `${paths[0]} must be equal to ${paths[1]}`);
  for (const { found: at, amount } of Object.values(amountsOf(domain, spec, 'cpu')))
    if (amount.nano > 0n && !isWhole(amount))
      at.invalid('', `${at.path} must be a whole number with dedicated processors`);
}

/** As many processors are requested as the topology has. */
function validateDedicatedTopology(found: Findings, spec: Spec): void {
  const cpu = spec.domain.cpu ?? {};
  const at = found.at('.domain.cpu.dedicatedCpuPlacement');
  const amounts = amountsOf(found.at('.domain'), spec, 'cpu');
  const request = quantityValue(amounts.request.amount);
  const limit = quantityValue(amounts.limit.amount);
  const [requestAt, limitAt] = [amounts.request.found.path, amounts.limit.found.path];
  const vcpus = topologySize(cpu);
  const refuse = (text: string): void => at.invalid('', `${text} ${at.path} is true`);
  if (request === 0 && limit === 0 && vcpus === 0) refuse(`${requestAt}, ${limitAt} or a topology must be given when`);
  if (request > 0 && limit > 0 && request !== limit) refuse(`${requestAt} and ${limitAt} must be equal when`);
  if ((request > 0 || limit > 0) && vcpus > 0 && request !== vcpus && limit !== vcpus)
    refuse(`${requestAt} or ${limitAt} contradicts the topology of ${vcpus} processors while`);
  const { threads = 0 } = cpu;
  if (spec.architecture === 'arm64' && threads > 1) {
    const { path } = found;
    const text = `threads must not be greater than 1 at ${path}.domain.cpu.threads (got ${threads})`;
    found.invalid('.architecture', `${text} when ${path}.architecture is arm64`);
  }
  if (threads > 2) refuse(`at most two threads (got ${threads}) are possible when`);
}

/** Virtual processors of a written topology, 0 when none is written. */
function topologySize({ cores, sockets, threads }: NonNullable<Spec['domain']['cpu']>): number {
  if (!cores && !sockets && !threads) return 0;
  return (cores || 1) * (sockets || 1) * (threads || 1);
}

/** A guest must get its memory from somewhere. Only instances are held to this: a template may leave it to an instance type. */
export function validateMemoryGiven(found: Findings, { domain: { memory, resources } }: Spec): void {
  const requested = orZero(resources?.requests?.['memory']).nano !== 0n;
  if (requested || memory?.guest !== undefined || memory?.hugepages !== undefined) return;
  const ways = ['memory.guest', 'memory.hugepages.size', 'resources.requests.memory'];
  const fields = ways.map((way) => `'${found.path}.domain.${way}'`).join(', ');
  new Findings('', found.causes).required('', `no memory requested, at least one of ${fields} must be set`);
}

export function validateSerial(found: Findings, serial: string | undefined): void {
  if (!serial) return;
  const refuse = (text: string): void => found.invalid('', `${found.path} must be ${text}, if specified`);
  if (serial.length > MAX_SERIAL) refuse(`less than or equal to ${MAX_SERIAL} in length`);
  if (!/^[A-Za-z0-9_.+-]+$/.test(serial)) refuse('made up of the following characters [A-Za-z0-9_.+-]');
}
