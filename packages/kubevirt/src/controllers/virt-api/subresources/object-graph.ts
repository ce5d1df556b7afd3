/**
 * `objectgraph` of a virtual machine or an instance: what it depends on. The options come in the body of the GET, as
 * JSON or YAML. Ours beside upstream's: the query `extended=true` asks for the extended graph.
 */

import { badRequest, internalError } from '@coracle/apimachinery/meta/status';
import { parseYaml } from '@coracle/apimachinery/schema/read-yaml';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import { STATE_LABEL } from '../../../rules/backend-storage/backend-storage.ts';
import { LAUNCHER_LABEL, LAUNCHER_VALUE } from '../../../rules/launcher/launcher-labels.ts';
import { buildInstanceGraph, buildMachineGraph, hasStateClaim } from '../../../rules/object-graph/build-graph.ts';
import { filterGraph, type ObjectGraphOptions, readGraphOptions } from '../../../rules/object-graph/filter-graph.ts';
import { extendedInstanceGraph, extendedMachineGraph, type GraphReader } from './read-extended-graph.ts';
import { json, messageOf } from './responses.ts';
import { type Call, fetchVm, fetchVmi, type Handler } from './subresource-context.ts';

/** GET virtualmachines/NAME/objectgraph. */
export const objectGraphOfVm: Handler = async (call) => {
  requireGate(call);
  const isExtended = wantsExtended(call);
  const vm = await fetchVm(call);
  const options = optionsOf(call);
  const { client } = call.options;
  const [launchers, stateClaims] = await reading([
    vm.status?.created ? launchersIn(call) : [],
    hasStateClaim(vm) ? client.list(PERSISTENT_VOLUME_CLAIMS, claimsOf(call)).then(({ items }) => items) : [],
  ]);
  const graph = buildMachineGraph(vm, { launchers, stateClaims });
  if (!isExtended) return json(200, filterGraph(graph, options));
  return json(200, filterGraph(await extendedMachineGraph(readerOf(call), vm, graph), options, { below: 'stay' }));
};

/** GET virtualmachineinstances/NAME/objectgraph. */
export const objectGraphOfVmi: Handler = async (call) => {
  requireGate(call);
  const isExtended = wantsExtended(call);
  const vmi = await fetchVmi(call);
  const options = optionsOf(call);
  const [launchers] = await reading([launchersIn(call)]);
  const graph = buildInstanceGraph(vmi, launchers);
  if (!isExtended) return json(200, filterGraph(graph, options));
  return json(200, filterGraph(await extendedInstanceGraph(readerOf(call), vmi, graph), options, { below: 'stay' }));
};

/** The query option. Throws ApiError 400 for a value that is neither true nor false. */
function wantsExtended({ request }: Call): boolean {
  const value = new URLSearchParams(request.query).get('extended') ?? 'false';
  if (value !== 'true' && value !== 'false') throw badRequest(`extended takes true or false, not "${value}"`);
  return value === 'true';
}

const readerOf = ({ options, user }: Call): GraphReader => options.readAs(user);

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
