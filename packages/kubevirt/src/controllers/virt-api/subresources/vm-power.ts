/** start, stop and restart of a virtual machine, and migrate: each decides, and leaves the doing to the controllers. */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { badRequest, internalError } from '@coracle/apimachinery/meta/status';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import { isApiError, orAbsent } from '@coracle/client/api-failure';
import type { JsonPatchOperation } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../../kinds/kubevirt.ts';
import { effectiveRunStrategy } from '../../../rules/run-strategy/run-strategy.ts';
import { changeRequestPatch, gracePeriodPatch, runningPatch } from './change-requests.ts';
import { empty, isDryRun, messageOf, notDecoded, readOptions, VM_NOT_RUNNING, vmConflict } from './responses.ts';
import {
  type Call,
  fetchVm,
  fetchVmi,
  findVmi,
  type Handler,
  hasCondition,
  isRunning,
  orInternal,
  patchWith,
} from './subresource-context.ts';

const RECOVERY_REQUIRED =
  'VM recovery required: Volume migration failed, leaving some volumes pointing to non-consistent targets; manual intervention is needed to reassign them to their original volumes.';

/** Shortest grace period that still lets the launcher tidy up. */
const SWIFT_GRACE_SECONDS = 1;

export const startVm: Handler = async (call) => {
  const { name } = call.key;
  const vm = await fetchVm(call);
  const vmi = await findVmi(call);
  const phase = vmi?.status?.phase;
  if (vmi !== undefined && !hasEnded(vmi) && phase !== undefined && phase !== 'Unknown')
    throw vmConflict(name, 'VM is already running');
  if (isConditionTrue(vm, 'ManualRecoveryRequired')) throw vmConflict(name, RECOVERY_REQUIRED);
  const options = readOptions(call.request.body);
  const paused = options['paused'] === true;
  const start = { action: 'Start' as const, ...(paused && { data: { paused: 'true' } }) };
  const dryRun = isDryRun(options);

  const strategy = effectiveRunStrategy(vm.spec);
  switch (strategy) {
    case 'Halted':
      // A paused start goes through a request: the controller switches the spec on when it has seen it.
      if (paused) await patchVm(call, { status: true, dryRun, patch: changeRequestPatch(vm, [start]) });
      else await patchVm(call, { status: false, dryRun, patch: runningPatch(vm, true) });
      break;
    case 'RerunOnFailure':
    case 'Manual': {
      if (strategy === 'RerunOnFailure' && phase === 'Failed')
        throw vmConflict(name, `${strategy} does not support starting VM from failed state`);
      const requests = vmi && hasEnded(vmi) ? [stopRequest(vmi), start] : [start];
      await patchVm(call, { status: true, dryRun, patch: changeRequestPatch(vm, requests) });
      break;
    }
    default:
      throw vmConflict(name, `${strategy} does not support manual start requests`);
  }
  return empty(202);
};

export const stopVm: Handler = async (call) => {
  const { name } = call.key;
  const options = readOptions(call.request.body);
  const gracePeriod = optionalNumber(options, 'gracePeriod');
  const dryRun = isDryRun(options);
  const vm = await fetchVm(call);
  const vmi = await findVmi(call);
  const running = vmi !== undefined && !hasEnded(vmi);
  const strategy = effectiveRunStrategy(vm.spec);
  const oldGrace = vmi?.spec.terminationGracePeriodSeconds;

  if (strategy !== 'Always' && strategy !== 'Once' && !running) throw vmConflict(name, VM_NOT_RUNNING);
  if (strategy === 'Halted' && (gracePeriod === undefined || (oldGrace !== undefined && gracePeriod >= oldGrace)))
    throw vmConflict(name, `${strategy} only supports manual stop requests with a shorter graceperiod`);
  if (running && gracePeriod !== undefined && !dryRun)
    await orInternal(patchWith(call, VIRTUAL_MACHINE_INSTANCES, gracePeriodPatch(oldGrace, gracePeriod)));
  if (strategy === 'Always' || strategy === 'Once')
    await patchVm(call, { status: false, dryRun, patch: runningPatch(vm, false) });
  else await patchVm(call, { status: true, dryRun, patch: changeRequestPatch(vm, [stopRequest(vmi!)]) });
  return empty(202);
};

export const restartVm: Handler = async (call) => {
  const { name } = call.key;
  const options = readOptions(call.request.body);
  const gracePeriod = optionalNumber(options, 'gracePeriodSeconds');
  const dryRun = isDryRun(options);
  if (gracePeriod !== undefined && gracePeriod > 0)
    throw badRequest('For force restart, only gracePeriod=0 is supported for now');
  if (gracePeriod !== undefined && gracePeriod < 0) throw badRequest('gracePeriod has to be greater or equal to 0');
  const vm = await fetchVm(call);
  // A restart in the midst of a move would lose what was not moved yet.
  if (isConditionTrue(vm, 'VolumesChange')) throw vmConflict(name, RECOVERY_REQUIRED);
  const strategy = effectiveRunStrategy(vm.spec);
  if (strategy === 'Halted' || strategy === 'Once')
    throw vmConflict(name, `RunStategy ${strategy} does not support manual restart requests`);
  const vmi = await findVmi(call);
  if (vmi === undefined) throw vmConflict(name, `${VM_NOT_RUNNING}: Halted`);
  if (hasCondition(vmi, 'VolumesChange', 'True'))
    throw vmConflict(name, 'VM cannot be restarted while its volumes are being moved');
  await patchVm(call, { status: true, dryRun, patch: changeRequestPatch(vm, [stopRequest(vmi), { action: 'Start' }]) });
  if (gracePeriod === 0 && !dryRun) await deleteLauncher(call, vmi);
  return empty(202);
};

export const migrateVm: Handler = async (call) => {
  const { key, request, options: context } = call;
  const options = readOptions(request.body);
  const dryRun = isDryRun(options);
  const selector = options['addedNodeSelector'];
  const addedNodeSelector = typeof selector === 'object' ? (selector as Record<string, string> | null) : null;
  await fetchVm(call);
  const vmi = await fetchVmi(call);
  if (!isRunning(vmi)) throw vmConflict(key.name, VM_NOT_RUNNING);
  const migration: VirtualMachineInstanceMigration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { generateName: 'kubevirt-migrate-vm-', namespace: key.namespace },
    spec: { vmiName: key.name, ...(addedNodeSelector && { addedNodeSelector }) },
  };
  // Also in a dry run: whether a migration may be made is for the admission to say.
  const asked = { dryRun, signal: request.signal };
  await orInternal(context.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, migration, asked));
  return empty(202);
};

const stopRequest = (vmi: VirtualMachineInstance) => ({
  action: 'Stop' as const,
  ...(vmi.metadata.uid !== undefined && { uid: vmi.metadata.uid }),
});

function optionalNumber(options: Readonly<Record<string, unknown>>, member: string): number | undefined {
  const value = options[member];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) throw notDecoded(`${member} is not an integer`);
  return value;
}

/** A dry run has checked everything by now and writes nothing. */
async function patchVm(
  call: Call,
  { patch, status, dryRun }: { patch: JsonPatchOperation[]; status: boolean; dryRun: boolean },
): Promise<void> {
  if (dryRun) return;
  try {
    await patchWith(call, VIRTUAL_MACHINES, patch, { ...(status && { subresource: 'status' }) });
  } catch (error) {
    throw isLostRace(error) ? vmConflict(call.key.name, messageOf(error)) : internalError(messageOf(error), error);
  }
}

/** A `test` that did not hold: somebody else was faster. A refused object has the same code but another message. */
const isLostRace = (error: unknown): boolean =>
  isApiError(error, 409) || (isApiError(error, 422) && error.message.startsWith('the server rejected our request'));

/** Makes a restart swift: the launcher goes at once instead of waiting for the guest. */
async function deleteLauncher({ key, request, options }: Call, vmi: VirtualMachineInstance): Promise<void> {
  const { signal } = request;
  const listed = options.client.list(PODS, {
    namespace: key.namespace,
    labelSelector: `kubevirt.io=virt-launcher,kubevirt.io/created-by=${vmi.metadata.uid}`,
    fieldSelector: 'status.phase=Running',
    signal,
  });
  const { items = [] } = (await orInternal(orAbsent(listed))) ?? {};
  const migration = vmi.status?.migrationState;
  const pod =
    items.length > 1 && migration?.completed
      ? items.find(({ metadata }) => metadata.name === migration.targetPod)
      : items[0];
  if (pod === undefined) return;
  const swiftly = { gracePeriodSeconds: SWIFT_GRACE_SECONDS, signal };
  await orInternal(orAbsent(options.client.delete(PODS, keyOf(pod), swiftly)));
}
