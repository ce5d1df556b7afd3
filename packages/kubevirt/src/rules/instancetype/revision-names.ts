/** The copies of instance type and preference that are in force, named in the spec. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { MATCHER_FIELDS } from './matcher.ts';

/** A copy of the spec whose matchers name their copies. */
export function withRevisionNames(vm: ReadonlyVm): VirtualMachine['spec'] {
  const spec = cloneJson<VirtualMachine['spec']>(vm.spec);
  for (const field of MATCHER_FIELDS) {
    const name = vm.status?.[`${field}Ref`]?.controllerRevisionRef?.name;
    const matcher = spec[field];
    if (matcher != null && name) spec[field] = { ...matcher, revisionName: matcher.revisionName || name };
  }
  return spec;
}
