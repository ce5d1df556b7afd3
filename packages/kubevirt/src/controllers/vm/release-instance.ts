/** Lets instances go that have ended: they wait for the finalizer of the VM controller. */
import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  type ReadonlyVm,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import { VM_FINALIZER } from '../../rules/machine-defaults/hold-machine.ts';
import { effectiveRunStrategy } from '../../rules/run-strategy/run-strategy.ts';
import type { StartFailure } from '../../rules/run-strategy/start-failure.ts';

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
  const ran = (instance.status?.phaseTransitionTimestamps ?? []).some((entry) => entry.phase === 'Running');
  if (ran) return failure === undefined;
  const strategy = effectiveRunStrategy(vm.spec);
  const counted = strategy === 'Always' || strategy === 'RerunOnFailure' || strategy === 'Once';
  return !counted || isDeleting(vm) || failure?.lastFailedVMIUID === instance.metadata.uid;
}

async function release(client: Client, instance: ReadonlyVmi): Promise<void> {
  const at = (instance.metadata.finalizers ?? []).indexOf(VM_FINALIZER);
  try {
    await client.patch(VIRTUAL_MACHINE_INSTANCES, keyOf(instance), {
      type: 'json',
      body: [
        { op: 'test', path: `/metadata/finalizers/${at}`, value: VM_FINALIZER },
        { op: 'remove', path: `/metadata/finalizers/${at}` },
      ],
    });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 422 && error.code !== 409)) throw error;
  }
}
