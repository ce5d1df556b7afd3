/** Clones of virtual machines: the target that is filled in, and the rules (kubevirt vmclone-admitter). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CloneSpec, ReadonlyClone, VirtualMachineClone } from '../../../kinds/kubevirt.ts';
import { filterProblems } from '../../../rules/clone/key-filters.ts';
import { generatedTargetName } from '../../../rules/clone/target-name.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, WebhookRefusal } from './causes.ts';
import { MAC_OCTETS, octetsOf } from './formats.ts';

type Spec = DeepReadonly<CloneSpec>;

const MACHINE = 'VirtualMachine';
const SOURCES = [MACHINE, 'VirtualMachineSnapshot'];

/** Names the target when the user did not. */
export function mutateClone(clone: ReadonlyClone): VirtualMachineClone {
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
export function validateNewClone({ spec }: ReadonlyClone, { config }: AdmissionContext): readonly Cause[] {
  if (!config.isEnabled('Snapshot')) throw new WebhookRefusal(400, 'snapshot feature gate is not enabled');
  const found = new Findings('spec');
  for (const kind of ['annotation', 'label'] as const) validateFilters(found, spec, kind);
  for (const kind of ['annotation', 'label'] as const) validateFilters(found.at('.template'), spec.template, kind);
  validateReferences(found, spec);
  for (const [name, mac] of Object.entries(spec.newMacAddresses ?? {}))
    if (mac !== '' && octetsOf(mac) !== MAC_OCTETS)
      found.invalid(`.newMacAddresses.${name}`, `interface ${name} has malformed MAC address (${mac}).`);
  return found.causes;
}

/** The messages name the fields in upstream's way; the paths are those of the object. */
function validateFilters(found: Findings, of: Spec['template'], kind: 'annotation' | 'label'): void {
  for (const filter of of?.[`${kind}Filters`] ?? [])
    for (const problem of filterProblems([filter], `${found.path}.${kind}s`)) found.invalid(`.${kind}Filters`, problem);
}

function validateReferences(found: Findings, { source, target }: Spec): void {
  if (!SOURCES.includes(source.kind)) found.invalid('.source.kind', 'Source kind is not supported');
  if (target && target.kind !== MACHINE) found.invalid('.target.kind', 'Target kind is not supported');
  if (!source.apiGroup) found.invalid('.source.apiGroup', "Source's APIGroup cannot be empty");
  if (source.kind === '') found.invalid('.source.kind', "Source's Kind cannot be empty");
  if (source.name === '') found.invalid('.source.name', "Source's name cannot be empty");
  if (source.kind === MACHINE && target?.kind === MACHINE && target.name === source.name)
    found.invalid('.target.name', 'Target name cannot be equal to source name when both are VirtualMachines');
}
