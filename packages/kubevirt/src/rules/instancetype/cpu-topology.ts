/** How the processors of an instance type are laid out as sockets, cores and threads (kubevirt instancetype/apply/cpu). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CpuTopologyName, InstancetypeSpec, PreferenceSpec } from '../../kinds/kubevirt.ts';
import type { Conflict } from './conflicts.ts';

export type Topology = 'cores' | 'sockets' | 'threads' | 'spread' | 'any';

/** The deprecated names and what replaces them. */
export const REPLACED_TOPOLOGIES: Readonly<Record<string, Topology>> = {
  preferCores: 'cores',
  preferSockets: 'sockets',
  preferThreads: 'threads',
  preferSpread: 'spread',
  preferAny: 'any',
};

const DEFAULT_RATIO = 2;
const THREADS_PER_CORE = 2;

/** The topology a preference asks for, by its current name; sockets when it asks for none. */
export function preferredTopology(preference: DeepReadonly<PreferenceSpec> | undefined): Topology {
  const name: CpuTopologyName = preference?.cpu?.preferredCPUTopology ?? 'sockets';
  return REPLACED_TOPOLOGIES[name] ?? (name as Topology);
}

/** What processors are spread over and in which ratio. */
export function spreadOptions(preference: DeepReadonly<PreferenceSpec> | undefined) {
  const { ratio, across = 'SocketsCores' } = preference?.cpu?.spreadOptions ?? {};
  return { ratio: ratio || preference?.preferSpreadSocketToCoreRatio || DEFAULT_RATIO, across };
}

export interface GuestTopology {
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
}

const quotient = (a: number, b: number): number => Math.floor(a / b);

/** The layout of `processors` processors. An axis may come out as 0 when the ratio does not fit. */
export function guestTopology(processors: number, preference: DeepReadonly<PreferenceSpec> | undefined): GuestTopology {
  const one: GuestTopology = { sockets: 1, cores: 1, threads: 1 };
  if (processors === 1) return one;
  const topology = preferredTopology(preference);
  switch (topology) {
    case 'cores':
    case 'threads':
    case 'sockets':
      return { ...one, [topology]: processors };
    case 'any':
      return { ...one, sockets: processors };
    case 'spread':
      return spread(processors, preference) ?? one;
    default:
      return one;
  }
}

function spread(processors: number, preference: DeepReadonly<PreferenceSpec> | undefined): GuestTopology | undefined {
  const { ratio, across } = spreadOptions(preference);
  switch (across) {
    case 'SocketsCores':
      return { sockets: quotient(processors, ratio), cores: ratio, threads: 1 };
    case 'CoresThreads':
      return { sockets: 1, cores: quotient(processors, ratio), threads: ratio };
    case 'SocketsCoresThreads':
      return { sockets: quotient(processors, THREADS_PER_CORE * ratio), cores: ratio, threads: THREADS_PER_CORE };
    default:
      return undefined;
  }
}

const RATIO_NAMES = 'Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio';

/**
 * Whether the processors can be spread as the preference wants: the validating webhook asks this before anything is
 * applied. It refuses one processor too, although the layout of one is always fine.
 */
export function spreadConflict(
  instancetype: DeepReadonly<InstancetypeSpec> | undefined,
  preference: DeepReadonly<PreferenceSpec> | undefined,
): Conflict | undefined {
  if (instancetype === undefined || preferredTopology(preference) !== 'spread') return undefined;
  const { guest } = instancetype.cpu;
  const { ratio, across } = spreadOptions(preference);
  const refuse = (why: string): Conflict => ({
    path: 'instancetype.spec.cpu.guest',
    message: `${guest} vCPUs provided by the instance type are not divisible by the ${why}`,
  });
  const isDivisible = guest % (across === 'SocketsCoresThreads' ? THREADS_PER_CORE * ratio : ratio) === 0;
  if (isDivisible) return undefined;
  switch (across) {
    case 'SocketsCores':
      return refuse(`${RATIO_NAMES} of ${ratio} provided by the preference`);
    case 'CoresThreads':
      return refuse(`number of threads per core ${ratio}`);
    case 'SocketsCoresThreads':
      return refuse(`number of threads per core ${THREADS_PER_CORE} and ${RATIO_NAMES} of ${ratio}`);
    default:
      return undefined;
  }
}
