/** evacuate/cancel: takes back the mark by which an eviction asked for a migration. */
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../../api/kinds/kubevirt/kubevirt.ts';
import { ApiError, badRequest, internalError } from '../../../api/meta/status.ts';
import { empty, isDryRun, messageOf, readOptions, vmConflict, vmiConflict } from './responses.ts';
import { type Call, fetchVm, fetchVmi, type Handler } from './subresource-context.ts';

export const evacuateCancelVmi: Handler = async (call) => cancel(call, await fetchVmi(call));

export const evacuateCancelVm: Handler = async (call) => {
  const vm = await fetchVm(call);
  if (vm.status?.created !== true) throw vmConflict(call.key.name, 'VMI is not started');
  return cancel(call, await fetchVmi(call));
};

async function cancel({ key, request, options }: Call, vmi: VirtualMachineInstance) {
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
