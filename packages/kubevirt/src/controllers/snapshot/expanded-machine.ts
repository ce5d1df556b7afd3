/** A machine with its instance type and preference applied. */

import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';

/** Asked of virt-api; the machine itself where that is not known, as upstream does. Rejects when nobody answers. */
export async function expandedMachine(vm: ReadonlyVm, client: Client): Promise<ReadonlyVm> {
  if (vm.spec.instancetype == null && vm.spec.preference == null) return vm;
  const { namespace, name } = vm.metadata;
  try {
    const path = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${name}/expand-spec`;
    return (await client.raw('GET', path)) as VirtualMachine;
  } catch (error) {
    if (error instanceof ApiError) return vm;
    throw error;
  }
}
