/** Lets instances go that have ended: they wait for the finalizer of the VM controller. */
import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { isApiError, orAbsent, orExpected } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  type ReadonlyVm,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import { VM_FINALIZER } from '../../rules/machine-defaults/hold-machine.ts';
import { effectiveRunStrategy } from '../../rules/run-strategy/run-strategy.ts';
import { RETRIED, type StartFailure } from '../../rules/run-strategy/start-failure.ts';
import { everRan } from './vm-view.ts';

/** Once its end has been counted in the status of its machine: start failures are keyed by its uid. */
export async function releaseCounted(client: Client, vm: ReadonlyVm, instance: ReadonlyVmi): Promise<void> {
  if (isHeldAtItsEnd(instance) && endIsCounted(vm, instance)) await release(client, instance);
}

/** One whose machine went before it, by force: nobody else would let it go, and it would stay for ever. */
export async function releaseLeft(client: Client, instance: ReadonlyVmi): Promise<void> {
  const owner = controllerOf(instance, 'VirtualMachine');
  if (!owner || !isHeldAtItsEnd(instance)) return;
  // The cache may not know the machine yet.
  const { namespace = '' } = instance.metadata;
  const vm = await orAbsent(client.get(VIRTUAL_MACHINES, { namespace, name: owner.name }));
  if (vm?.metadata.uid !== owner.uid) await release(client, instance);
}

/** The guest has ended, the instance is to go, and waits for us. */
const isHeldAtItsEnd = (instance: ReadonlyVmi): boolean =>
  hasEnded(instance) && isDeleting(instance) && (instance.metadata.finalizers ?? []).includes(VM_FINALIZER);

/** The end of a final instance must stand in status.startFailure (if it counts at all) before the instance may go. */
function endIsCounted(vm: ReadonlyVm, instance: ReadonlyVmi): boolean {
  const failure = vm.status?.startFailure as StartFailure | undefined;
  if (everRan(instance)) return failure === undefined;
  const isCounted = RETRIED.has(effectiveRunStrategy(vm.spec));
  return !isCounted || isDeleting(vm) || failure?.lastFailedVMIUID === instance.metadata.uid;
}

async function release(client: Client, instance: ReadonlyVmi): Promise<void> {
  const at = (instance.metadata.finalizers ?? []).indexOf(VM_FINALIZER);
  const path = `/metadata/finalizers/${at}`;
  const body = [{ op: 'test', path, value: VM_FINALIZER } as const, { op: 'remove', path } as const];
  const patched = client.patch(VIRTUAL_MACHINE_INSTANCES, keyOf(instance), { type: 'json', body });
  await orExpected(patched, (error) => isApiError(error, 404, 409, 422));
}
