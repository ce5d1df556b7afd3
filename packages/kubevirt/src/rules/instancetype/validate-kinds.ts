/** What the webhooks of the four kinds refuse and warn of, after the schema (kubevirt instancetype/webhooks). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { InstancetypeSpec, PreferenceSpec } from '../../kinds/kinds.ts';
import { valuesOf } from '../../kinds/structural-schema.ts';
import { preferredTopology, REPLACED_TOPOLOGIES, spreadOptions } from './cpu-topology.ts';

const invalid = (field: string, detail: string): FieldError => ({ type: 'FieldValueInvalid', field, detail });

/** Findings about the spec of an instance type. */
export function validateInstancetypeSpec(spec: DeepReadonly<InstancetypeSpec>): FieldError[] {
  const field = 'spec.memory.overcommitPercent';
  const percent = spec.memory.overcommitPercent ?? 0;
  const causes: FieldError[] = [];
  if (percent < 0 || percent > 100)
    causes.push(invalid(field, `${field} '${percent}': must be in range between 0 and 100.`));
  if (percent !== 0 && spec.memory.hugepages != null)
    causes.push(invalid(field, `${field} and spec.memory.hugepages should not be requested together.`));
  return causes;
}

/** Warnings about the spec of an instance type. */
export const instancetypeWarnings = ({ launchSecurity }: DeepReadonly<InstancetypeSpec>): string[] =>
  launchSecurity == null
    ? []
    : ['launchSecurity is deprecated and will be removed in a future release. Use preference instead.'];

/** Findings about the spec of a preference. */
export function validatePreferenceSpec(spec: DeepReadonly<PreferenceSpec>): FieldError[] {
  const causes: FieldError[] = [];
  const topology = spec.cpu?.preferredCPUTopology;
  if (topology != null && !valuesOf('PreferenceSpec', 'cpu', 'preferredCPUTopology').includes(topology))
    causes.push(invalid('spec.cpu.preferredCPUTopology', `unknown preferredCPUTopology ${topology}`));
  if (topology == null || preferredTopology(spec) !== 'spread') return causes;
  const { ratio, across } = spreadOptions(spec);
  if (!valuesOf('PreferenceSpec', 'cpu', 'spreadOptions', 'across').includes(across)) {
    causes.push(invalid('spec.cpu.spreadOptions.across', `across ${across} is not supported`));
  } else if (across === 'CoresThreads' && ratio !== 2) {
    const text = 'only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over cores and threads';
    causes.push(invalid('spec.cpu.spreadOptions.ratio', text));
  }
  return causes;
}

/** Warnings about the spec of a preference. */
export function preferenceWarnings(spec: DeepReadonly<PreferenceSpec>): string[] {
  const topology = spec.cpu?.preferredCPUTopology ?? '';
  const replacement = REPLACED_TOPOLOGIES[topology];
  if (replacement === undefined) return [];
  return [
    `PreferredCPUTopology ${topology} is deprecated for removal in a future release, please use ${replacement} instead`,
  ];
}
