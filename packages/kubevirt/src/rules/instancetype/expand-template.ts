/** What the validating webhook of VirtualMachines asks of instance type and preference (kubevirt vms-admitter). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../machine-defaults/cluster-config.ts';
import { setInstanceSpecDefaults } from '../machine-defaults/instance-defaults.ts';
import type { AnnotatedMeta } from './apply-instancetype.ts';
import { conflictCauses } from './conflicts.ts';
import { spreadConflict } from './cpu-topology.ts';
import { applyInstancetype, type Layers } from './expand.ts';
import { checkRequirements, shortfallCauses } from './requirements.ts';

export interface TemplateInput extends Layers {
  readonly spec: DeepReadonly<Partial<VirtualMachineInstanceSpec>>;
  readonly metadata?: DeepReadonly<AnnotatedMeta> | undefined;
  readonly config: ClusterConfig;
  /**
   * The machine names an instance type that was not found. Its amounts are then unknown, and what the preference needs
   * is not asked: a missing object must not keep anybody from changing the machine.
   */
  readonly instancetypeMissing?: boolean;
}

export type ExpandedTemplate =
  | { readonly ok: true; readonly spec: VirtualMachineInstanceSpec; readonly metadata: AnnotatedMeta }
  | { readonly ok: false; readonly causes: readonly FieldError[] };

/**
 * The template as it would start, with the general defaults, for the rest of the validation; or the causes of the first
 * stage that finds any: divisible processors, conflicts, requirements. Leaves its arguments alone.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function expandTemplate(input: TemplateInput): ExpandedTemplate {
  const indivisible = spreadConflict(input.instancetype, input.preference);
  if (indivisible !== undefined) return { ok: false, causes: conflictCauses([indivisible]) };
  const applied = applyInstancetype(input);
  if (!applied.ok) return { ok: false, causes: conflictCauses(applied.conflicts) };
  setInstanceSpecDefaults(applied.spec, input.config);
  if (input.instancetypeMissing) return applied;
  const shortfall = checkRequirements(input, applied.spec);
  return shortfall === undefined ? applied : { ok: false, causes: shortfallCauses(shortfall) };
}
