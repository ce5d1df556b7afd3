import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LEASES, NODES } from '../../../../apimachinery/src/types/resource-types.ts';
import type { Node } from '../../../../apimachinery/src/types/types.ts';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { leaveNode } from './leave-node.ts';
import { type NodeDescription, UNSERVED_ANNOTATION } from './node-object.ts';
import { registerNode } from './node-registration.ts';

const description = {
  name: 'n',
  facts: { accelerator: 'tcg', architecture: 'amd64', machineTypes: [], machineAliases: {}, cpuModels: [] },
  agentId: 'ours',
  cpus: 1,
  memoryBytes: 2 ** 30,
  storageBytes: 2 ** 30,
  address: '127.0.0.1',
  labels: {},
} as unknown as NodeDescription;

function setUp() {
  const clock = createFakeClock();
  const client = createClient(createFakeApi([NODES, LEASES]).handler);
  const log = silentLogger;
  return {
    client,
    node: (): Promise<Node> => client.get(NODES, { namespace: '', name: 'n' }),
    register: async (): Promise<void> => {
      const stop = new AbortController();
      const { done } = await registerNode({
        client,
        clock,
        log,
        signal: stop.signal,
        describe: async () => description,
      });
      stop.abort();
      await done;
    },
    leave: (change: { guestsStay?: boolean; agentId?: string } = {}) =>
      leaveNode({ client, nodeName: 'n', agentId: 'ours', guestsStay: false, clock, log, signal: NEVER, ...change }),
  };
}

const readyOf = (node: Node): string | undefined =>
  node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;

// S-363: An agent that stops leaves its node unschedulable, and NotReady where no guest stays; the next agent takes
//   that back, and never a cordon of somebody else.
test('a node that its agent left takes no machine until one serves it again', async () => {
  for (const guestsStay of [false, true]) {
    const { node, register, leave } = setUp();
    await register();
    assert.equal((await node()).spec?.unschedulable, undefined);
    await leave({ guestsStay });
    const left = await node();
    assert.equal(left.spec?.unschedulable, true);
    assert.equal(readyOf(left), guestsStay ? 'True' : 'False');
    await register();
    const back = await node();
    assert.equal(back.spec?.unschedulable, undefined);
    assert.equal(back.metadata.annotations?.[UNSERVED_ANNOTATION], undefined);
    assert.equal(readyOf(back), 'True');
  }
});

// S-363
test("somebody's own cordon outlives the agent, and another agent's node is left alone", async () => {
  const { client, node, register, leave } = setUp();
  await register();
  await leave({ agentId: 'not-ours' });
  assert.equal((await node()).spec?.unschedulable, undefined);
  await client.patch(NODES, { namespace: '', name: 'n' }, { type: 'merge', body: { spec: { unschedulable: true } } });
  await leave();
  await register();
  assert.equal((await node()).spec?.unschedulable, true);
  assert.equal(readyOf(await node()), 'True');
});
