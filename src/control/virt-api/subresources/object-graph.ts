/**
 * `objectgraph` of a virtual machine or an instance: what it depends on. The options come in the body of the GET, as
 * JSON or YAML.
 */
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../../api/kinds/builtin/resource-types.ts';
import type { Pod } from '../../../api/kinds/builtin/types.ts';
import { badRequest, internalError } from '../../../api/meta/status.ts';
import { parseYaml } from '../../../api/schema/read-yaml.ts';
import { STATE_LABEL } from '../../../domain/backend-storage/backend-storage.ts';
import { LAUNCHER_LABEL, LAUNCHER_VALUE } from '../../../domain/launcher/launcher-labels.ts';
import { buildInstanceGraph, buildMachineGraph, hasStateClaim } from '../../../domain/object-graph/build-graph.ts';
import { filterGraph, type ObjectGraphOptions, readGraphOptions } from '../../../domain/object-graph/filter-graph.ts';
import { json, messageOf } from './responses.ts';
import { type Call, fetchVm, fetchVmi, type Handler } from './subresource-context.ts';

/** GET virtualmachines/NAME/objectgraph. */
export const objectGraphOfVm: Handler = async (call) => {
  requireGate(call);
  const vm = await fetchVm(call);
  const options = optionsOf(call);
  const { client } = call.options;
  const [launchers, stateClaims] = await reading([
    vm.status?.created ? launchersIn(call) : [],
    hasStateClaim(vm) ? client.list(PERSISTENT_VOLUME_CLAIMS, claimsOf(call)).then(({ items }) => items) : [],
  ]);
  return json(200, filterGraph(buildMachineGraph(vm, { launchers, stateClaims }), options));
};

/** GET virtualmachineinstances/NAME/objectgraph. */
export const objectGraphOfVmi: Handler = async (call) => {
  requireGate(call);
  const vmi = await fetchVmi(call);
  const options = optionsOf(call);
  const [launchers] = await reading([launchersIn(call)]);
  return json(200, filterGraph(buildInstanceGraph(vmi, launchers), options));
};

function requireGate({ options }: Call): void {
  if (!options.config().isEnabled('ObjectGraph'))
    throw badRequest('ObjectGraph feature gate not enabled: Unable to return object graph.');
}

/** Options are small; what is larger is no set of options. */
const MAX_OPTIONS = 64 * 1024;
const decoder = new TextDecoder();

function optionsOf({ request: { body } }: Call): ObjectGraphOptions {
  if (body.length > MAX_OPTIONS) throw badRequest(`the body exceeds ${MAX_OPTIONS} bytes`);
  const text = decoder.decode(body);
  if (text.trim() === '') return {};
  try {
    return readGraphOptions(parseYaml(text).value);
  } catch (error) {
    throw badRequest(`Can not unmarshal Request body to struct, error: ${messageOf(error)}`);
  }
}

const launchersIn = async ({ key, request, options }: Call): Promise<readonly Pod[]> => {
  const labelSelector = `${LAUNCHER_LABEL}=${LAUNCHER_VALUE}`;
  const query = { namespace: key.namespace, labelSelector, signal: request.signal };
  return (await options.client.list(PODS, query)).items;
};

const claimsOf = ({ key, request }: Call) => ({
  namespace: key.namespace,
  labelSelector: `${STATE_LABEL}=${key.name}`,
  signal: request.signal,
});

/** All of what is looked up; a failure of any of it is an internal error, as upstream has it. */
async function reading<const T extends readonly unknown[]>(
  reads: T,
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  try {
    return await Promise.all(reads);
  } catch (error) {
    throw internalError(messageOf(error), error);
  }
}
