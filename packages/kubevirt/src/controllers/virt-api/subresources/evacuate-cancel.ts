/** evacuate/cancel: takes back the mark by which an eviction asked for a migration. */

import { ApiError, badRequest, internalError } from '@coracle/apimachinery/meta/status';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { empty, isDryRun, messageOf, readOptions, vmiConflict } from './responses.ts';
import { type Call, fetchVmi, fetchVmiOfVm, type Handler } from './subresource-context.ts';

export const evacuateCancelVmi: Handler = async (call) => cancel(call, await fetchVmi(call));

export const evacuateCancelVm: Handler = async (call) => cancel(call, await fetchVmiOfVm(call));

/**
 * A drained node asks again and again as long as its taint is there: taking a mark back would be in vain.
 * A node that is gone has no taint.
 */
async function refuseOnDrainedNode({ request, options }: Call, { status }: VirtualMachineInstance): Promise<void> {
  const name = status?.evacuationNodeName || status?.nodeName;
  if (!name) return;
  const node = await options.client
    .get(NODES, { namespace: '', name }, { signal: request.signal })
    .catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw internalError(messageOf(error), error);
    });
  const key = options.config().nodeDrainTaintKey;
  const drained = node?.spec?.taints?.some((taint) => taint.key === key && taint.effect === 'NoSchedule');
  if (drained)
    throw badRequest(`Node ${JSON.stringify(name)} has NodeDrainTaintKey ${JSON.stringify(`${key}:NoSchedule`)}`);
}

async function cancel(call: Call, vmi: VirtualMachineInstance) {
  const { key, request, options } = call;
  await refuseOnDrainedNode(call, vmi);
  const body = readOptions(request.body);
  const wanted = body['evacuationNodeName'];
  if (wanted !== undefined && typeof wanted !== 'string') throw badRequest('evacuationNodeName must be a string');
  const marked = vmi.status?.evacuationNodeName;
  if (!marked) return empty(200);
  if (wanted && wanted !== marked) {
    throw vmiConflict(key.name, `the instance is evacuated from node ${marked}, not ${wanted}`);
  }
  if (isDryRun(body)) return empty(200);
  const path = '/status/evacuationNodeName';
  try {
    await options.client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      key,
      {
        type: 'json',
        body: [
          { op: 'test', path, value: marked },
          { op: 'remove', path },
        ],
      },
      { subresource: 'status', signal: request.signal },
    );
  } catch (error) {
    if (error instanceof ApiError && (error.code === 409 || error.code === 422)) {
      throw vmiConflict(key.name, messageOf(error));
    }
    throw internalError(messageOf(error), error);
  }
  return empty(200);
}
