/** memorydump and removememorydump: a request in the status of the machine, once it can be met (virt-api `rest/memorydump.go`). */

import { type ApiError, badRequest, conflict, notFound } from '@coracle/apimachinery/meta/status';
import {
  compareQuantity,
  formatQuantity,
  parseQuantity,
  quantityFromBytes,
} from '@coracle/apimachinery/quantity/quantity';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { JsonPatchOperation } from '@coracle/client/client';
import { VIRTUAL_MACHINES, type VirtualMachine, type VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { guestMemoryBytes } from '../../../rules/launcher/launcher-resources.ts';
import type { DumpRequest } from '../../../rules/memory-dump/memory-dump.ts';
import { empty, readOptions, VMI_NOT_RUNNING, vmConflict, vmiConflict } from './responses.ts';
import { type Call, fetchVm, fetchVmi, type Handler, isRunning, orRefused, patchWith } from './subresource-context.ts';

const CLAIM = { group: '', resource: 'persistentvolumeclaim' };
/** Registers, devices and the file's own headers, as upstream reckons them. */
const SPARE_BYTES = 100n * 1024n * 1024n;

export const memoryDump: Handler = async (call) => {
  const config = call.options.config();
  if (!config.isEnabled('HotplugVolumes') && !config.isEnabled('DeclarativeHotplugVolumes'))
    throw badRequest('Unable to memory dump because HotplugVolumes feature gate is not enabled.');
  const asked = readOptions(call.request.body)['claimName'];
  if (asked !== undefined && typeof asked !== 'string') throw badRequest('claimName is not a string');
  const vm = await fetchVm(call);
  const known = vm.status?.memoryDumpRequest ?? undefined;
  const claimName = asked || known?.claimName;
  if (!claimName) throw badRequest('Memory dump requires claim name to be set');
  const refuse = (why: string): ApiError => vmConflict(call.key.name, why);
  if (known && known.claimName !== claimName)
    throw refuse(
      `can't request memory dump for pvc [${claimName}] while pvc [${known.claimName}] is still associated as the memory dump pvc`,
    );
  if (known?.phase === 'Dissociating')
    throw refuse(`can't dump memory for pvc [${claimName}] a remove memory dump request is in progress`);
  if (known && known.phase !== 'Completed' && known.phase !== 'Failed')
    throw refuse(`memory dump request for pvc [${claimName}] already in progress`);
  const vmi = await fetchVmi(call);
  if (!isRunning(vmi)) throw vmiConflict(call.key.name, VMI_NOT_RUNNING);
  await checkClaim(call, vmi, claimName);
  return request(call, vm, { claimName, phase: 'Associating' });
};

export const removeMemoryDump: Handler = async (call) => {
  const vm = await fetchVm(call);
  const known = vm.status?.memoryDumpRequest;
  const { name } = call.key;
  if (!known) throw vmConflict(name, `can't remove memory dump association for vm ${name}, no association found`);
  if (known.remove) throw vmConflict(name, `memory dump remove request for pvc [${known.claimName}] already exists`);
  return request(call, vm, { claimName: known.claimName, phase: 'Dissociating', remove: true });
};

async function checkClaim({ key, options, request: { signal } }: Call, vmi: VirtualMachineInstance, name: string) {
  const claimKey = { namespace: key.namespace, name };
  const claim = await orAbsent(options.client.get(PERSISTENT_VOLUME_CLAIMS, claimKey, { signal }));
  if (!claim) throw notFound(CLAIM, name);
  const { volumeMode, accessModes = [], resources } = claim.spec ?? {};
  if (volumeMode === 'Block') throw conflict(CLAIM, name, 'pvc should be filesystem pvc');
  if (accessModes.length > 0 && accessModes.every((mode) => mode === 'ReadOnlyMany'))
    throw conflict(CLAIM, name, "pvc access mode can't be read only");
  const size = parseQuantity(String(resources?.requests?.['storage'] ?? '0'));
  const least = quantityFromBytes(Number(guestMemoryBytes(vmi.spec) + SPARE_BYTES));
  if (compareQuantity(size, least) < 0)
    throw conflict(CLAIM, name, `pvc size [${formatQuantity(size)}] should be bigger then [${formatQuantity(least)}]`);
}

async function request(call: Call, { status }: VirtualMachine, value: DumpRequest) {
  const path = '/status/memoryDumpRequest';
  const patch: JsonPatchOperation[] = [
    ...(status === undefined ? [{ op: 'add' as const, path: '/status', value: {} }] : []),
    { op: 'test', path, value: status?.memoryDumpRequest ?? null },
    { op: 'add', path, value },
  ];
  await orRefused(patchWith(call, VIRTUAL_MACHINES, patch, { subresource: 'status' }), 'unable to patch vm status: ');
  return empty(202);
}
