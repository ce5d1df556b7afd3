/** Clones of virtual machines: the target that is filled in, and the rules (kubevirt vmclone-admitter). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CloneSpec, VirtualMachineClone } from '../../../kinds/kubevirt.ts';
import { filterProblems } from '../../../rules/clone/key-filters.ts';
import { generatedTargetName } from '../../../rules/clone/target-name.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, invalidValue, validateEach, WebhookRefusal } from './causes.ts';
import { MAC_OCTETS, octetsOf } from './formats.ts';

type Clone = DeepReadonly<VirtualMachineClone>;
type Spec = DeepReadonly<CloneSpec>;

const MACHINE = 'VirtualMachine';
const SOURCES = [MACHINE, 'VirtualMachineSnapshot'];

/** Names the target when the user did not. */
export function mutateClone(clone: Clone): VirtualMachineClone {
  const next = cloneJson(clone) as VirtualMachineClone;
  const source = (next.spec as Partial<CloneSpec> | undefined)?.source;
  // The schema says that it is missing; this comes before it.
  if (typeof source?.name !== 'string' || next.spec.target?.name) return next;
  const name = generatedTargetName(source.name);
  next.spec.target = next.spec.target
    ? { ...next.spec.target, name }
    : { apiGroup: 'kubevirt.io', kind: MACHINE, name };
  return next;
}

/**
 * Findings about a new clone. Whether its source is there and can be cloned is no finding: the controller waits for it.
 * @throws WebhookRefusal 400 when the cluster makes no snapshots
 */
export function validateNewClone({ spec }: Clone, { config }: AdmissionContext): Cause[] {
  if (!config.isEnabled('Snapshot')) throw new WebhookRefusal(400, 'snapshot feature gate is not enabled');
  const causes: Cause[] = [];
  // The messages name the fields in upstream's way; the paths are those of the object.
  const filters: [filters: readonly string[] | undefined, path: string, name: string][] = [
    [spec.annotationFilters, 'spec.annotationFilters', 'spec.annotations'],
    [spec.labelFilters, 'spec.labelFilters', 'spec.labels'],
    [spec.template?.annotationFilters, 'spec.template.annotationFilters', 'spec.template.annotations'],
    [spec.template?.labelFilters, 'spec.template.labelFilters', 'spec.template.labels'],
  ];
  for (const [list = [], path, name] of filters)
    validateEach(causes, list, (filter) =>
      filterProblems([filter], name).map((problem) => invalidValue(path, problem)),
    );
  causes.push(...validateReferences(spec));
  validateEach(causes, Object.entries(spec.newMacAddresses ?? {}), ([name, mac]) =>
    mac === '' || octetsOf(mac) === MAC_OCTETS
      ? []
      : [invalidValue(`spec.newMacAddresses.${name}`, `interface ${name} has malformed MAC address (${mac}).`)],
  );
  return causes;
}

function validateReferences({ source, target }: Spec): Cause[] {
  const causes: Cause[] = [];
  if (!SOURCES.includes(source.kind)) causes.push(invalidValue('spec.source.kind', 'Source kind is not supported'));
  if (target && target.kind !== MACHINE) causes.push(invalidValue('spec.target.kind', 'Target kind is not supported'));
  if (!source.apiGroup) causes.push(invalidValue('spec.source.apiGroup', "Source's APIGroup cannot be empty"));
  if (source.kind === '') causes.push(invalidValue('spec.source.kind', "Source's Kind cannot be empty"));
  if (source.name === '') causes.push(invalidValue('spec.source.name', "Source's name cannot be empty"));
  if (source.kind === MACHINE && target?.kind === MACHINE && target.name === source.name)
    causes.push(
      invalidValue('spec.target.name', 'Target name cannot be equal to source name when both are VirtualMachines'),
    );
  return causes;
}
