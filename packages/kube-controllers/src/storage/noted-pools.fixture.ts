/** Pools for tables of steps: what one is asked for is noted as the other writes are, as `POST NODE/CALL`. */

import { NODES } from '../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../client/src/controller/environment.ts';
import { stored } from '../../../client/src/run-step.fixture.ts';
import { POOL_LABEL } from '../../../cluster-rules/src/storage/pool-names.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';

/** The node of the pool `pool-NAME`, unless its labels say that it serves none. */
export const poolNode = (name: string, labels: Record<string, string> = { [POOL_LABEL]: `pool-${name}` }) =>
  stored(NODES, name, { metadata: { labels }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });

/** `replyOf` is what the pool of a node replies to a call. */
export const notedPools = (
  environment: ControllerEnvironment,
  replyOf: (call: string, node: string) => object,
): PoolControllerOptions => ({
  ...environment,
  isHeld: async () => false,
  connect: async (node) => async (request) => {
    const call = request.path.split('/').at(-1) ?? '';
    const body = JSON.parse(new TextDecoder().decode(request.body)) as object;
    await environment.client.raw('POST', `/apis/subresources.pools/v1/${node}/${call}`, { body });
    return { status: 200, headers: {}, body: new TextEncoder().encode(JSON.stringify(replyOf(call, node))) };
  },
});
