/** What a preference needs at least, checked against an applied and defaulted spec (kubevirt preference/requirements). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { compareQuantity, formatQuantity, parseQuantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { type Conflict, conflictPaths } from './conflicts.ts';
import { preferredTopology, spreadOptions } from './cpu-topology.ts';
import type { Layers } from './expand.ts';

/** A requirement that is not met: one text, and every field that could be raised. */
export interface Shortfall {
  readonly message: string;
  readonly fields: readonly Conflict[];
}

type Spec = DeepReadonly<VirtualMachineInstanceSpec>;

const CPU = 'spec.template.spec.domain.cpu';

/** The first requirement that `spec` does not meet: processors, then memory, then architecture. */
export function checkRequirements(layers: Layers, spec: Spec): Shortfall | undefined {
  const requirements = layers.preference?.requirements;
  if (requirements === undefined) return undefined;
  return (
    (requirements.cpu && checkCpu(requirements.cpu.guest, layers, spec)) ??
    (requirements.memory && checkMemory(String(requirements.memory.guest), layers, spec)) ??
    checkArchitecture(requirements.architecture, spec)
  );
}

/** As the validating webhook reports it: one cause, whose field is all the paths joined. */
export function shortfallCauses({ message, fields }: Shortfall): FieldError[] {
  const detail = `failure checking preference requirements: ${message}`;
  return [{ type: 'FieldValueNotFound', field: conflictPaths(fields), detail }];
}

const shortfall = (message: string, ...fields: string[]): Shortfall => ({
  message,
  fields: fields.map((path) => ({ path })),
});

function checkCpu(required: number, layers: Layers, spec: Spec): Shortfall | undefined {
  const provided = layers.instancetype?.cpu.guest;
  if (provided !== undefined) {
    if (provided >= required) return undefined;
    const text = `insufficient CPU resources of ${provided} vCPU provided by instance type, preference requires ${required} vCPU`;
    return shortfall(text, 'spec.instancetype');
  }
  const { cpu } = spec.domain;
  if (cpu == null)
    return shortfall(`no CPU resources provided by VirtualMachine, preference requires ${required} vCPU`, CPU);
  type Axis = 'sockets' | 'cores' | 'threads';
  const check = (as: string, ...axes: Axis[]): Shortfall | undefined => {
    const amount = axes.reduce((product, axis) => product * (cpu[axis] ?? 0), 1);
    if (amount >= required) return undefined;
    const text = `insufficient CPU resources of ${amount} vCPU provided by VirtualMachine, preference requires ${required} vCPU provided as ${as}`;
    return shortfall(text, ...axes.map((axis) => `${CPU}.${axis}`));
  };
  const topology = preferredTopology(layers.preference);
  switch (topology) {
    case 'threads':
    case 'cores':
    case 'sockets':
      return check(topology, topology);
    case 'any':
      return check('cores, sockets and threads', 'cores', 'sockets', 'threads');
    case 'spread': {
      const { across } = spreadOptions(layers.preference);
      if (across === 'SocketsCores') return check(across, 'sockets', 'cores');
      if (across === 'CoresThreads') return check(across, 'cores', 'threads');
      return check(across, 'sockets', 'cores', 'threads');
    }
    default:
      return undefined;
  }
}

const NOTHING = parseQuantity('0');

function checkMemory(required: string, { instancetype }: Layers, spec: Spec): Shortfall | undefined {
  const needs = readQuantity(required);
  if (needs === undefined) return undefined;
  const provided = readQuantity(spec.domain.memory?.guest ?? instancetype?.memory.guest ?? '0') ?? NOTHING;
  if (compareQuantity(provided, needs) >= 0) return undefined;
  const by = instancetype === undefined ? 'VirtualMachine' : 'instance type';
  return shortfall(
    `insufficient Memory resources of ${formatQuantity(provided)} provided by ${by}, preference requires ${formatQuantity(needs)}`,
    instancetype === undefined ? 'spec.template.spec.domain.memory' : 'spec.instancetype',
  );
}

function checkArchitecture(required: string | undefined, spec: Spec): Shortfall | undefined {
  const actual = spec.architecture ?? '';
  if (required === undefined || actual === required) return undefined;
  const text = `preference requires architecture ${required} but ${actual} is being requested`;
  return shortfall(text, 'spec.template.spec.architecture');
}
