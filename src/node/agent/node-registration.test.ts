import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../api/kinds/builtin/types.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { silentLogger } from '../../base/log/log.ts';
import type { Client } from '../../client/client.ts';
import { AGENT_ID_ANNOTATION } from './agent-id.ts';
import type { NodeDescription } from './node-object.ts';
import { registerNode } from './node-registration.ts';

test('registerNode() writes nothing while another agent serves the node, and takes it over when that has gone silent', async () => {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', uid: 'u', annotations: { [AGENT_ID_ANNOTATION]: 'theirs' } },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  } as unknown as Node;
  const written: string[] = [];
  let waits = 0;
  const stop = new AbortController();
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: async () => {
      if (++waits === 3) node.status!.conditions![0]!.status = 'Unknown';
      if (waits > 3) await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }));
      else assert.deepEqual(written, []);
    },
  } as unknown as Clock;
  const client = {
    get: async () => node,
    patch: async (type: { resource: string }, _key: unknown, { body }: { body: Partial<Node> }) => {
      written.push(type.resource);
      Object.assign(node.metadata.annotations!, body.metadata?.annotations);
      return node;
    },
  } as unknown as Client;
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
  const { done } = await registerNode({
    client,
    clock,
    log: silentLogger,
    signal: stop.signal,
    describe: async () => description,
  });
  assert.ok(waits >= 3);
  assert.ok(written.includes('nodes'));
  assert.equal(node.metadata.annotations?.[AGENT_ID_ANNOTATION], 'ours');
  stop.abort();
  await done;
});
