/** evacuate/cancel: takes back the mark by which an eviction asked for a migration. */

import { badRequest, internalError } from '@coracle/apimachinery/meta/status';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { empty, isDryRun, messageOf, readOptions, vmiConflict } from './responses.ts';
import {
  type Call,
  fetchVmi,
  fetchVmiOfVm,
  type Handler,
  isRefused,
  orInternal,
  patchWith,
} from './subresource-context.ts';

export const evacuateCancelVmi: Handler = async (call) => cancel(call, await fetchVmi(call));

export const evacuateCancelVm: Handler = async (call) => cancel(call, await fetchVmiOfVm(call));

/**
 * A drained node asks again and again as long as its taint is there: taking a mark back would be in vain.
 * A node that is gone has no taint.
 */
async function refuseOnDrainedNode({ request, options }: Call, { status }: VirtualMachineInstance): Promise<void> {
  const name = status?.evacuationNodeName || status?.nodeName;
  if (!name) return;
  const found = options.client.get(NODES, { namespace: '', name }, { signal: request.signal });
  const node = await orInternal(orAbsent(found));
  const key = options.config().nodeDrainTaintKey;
  const drained = node?.spec?.taints?.some((taint) => taint.key === key && taint.effect === 'NoSchedule');
  if (drained)
    throw badRequest(`Node ${JSON.stringify(name)} has NodeDrainTaintKey ${JSON.stringify(`${key}:NoSchedule`)}`);
}

async function cancel(call: Call, vmi: VirtualMachineInstance) {
  const { key, request } = call;
  await refuseOnDrainedNode(call, vmi);
  const body = readOptions(request.body);
  const wanted = body['evacuationNodeName'];
  if (wanted !== undefined && typeof wanted !== 'string') throw badRequest('evacuationNodeName must be a string');
  const marked = vmi.status?.evacuationNodeName;
  if (!marked) return empty(200);
  if (wanted && wanted !== marked)
    throw vmiConflict(key.name, `the instance is evacuated from node ${marked}, not ${wanted}`);
  if (isDryRun(body)) return empty(200);
  const path = '/status/evacuationNodeName';
  const patch = [{ op: 'test', path, value: marked } as const, { op: 'remove', path } as const];
  try {
    await patchWith(call, VIRTUAL_MACHINE_INSTANCES, patch, { subresource: 'status' });
  } catch (error) {
    throw isRefused(error) ? vmiConflict(key.name, messageOf(error)) : internalError(messageOf(error), error);
  }
  return empty(200);
}
