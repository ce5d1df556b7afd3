import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../../apimachinery/src/meta/status.ts';
import type { Node } from '../../../../apimachinery/src/types/types.ts';
import type { Client } from '../../../../client/src/client.ts';
import type { Clock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { NodeDescription } from './node-object.ts';
import { AGENT_ID_ANNOTATION } from './node-object.ts';
import { HANDLER_HEARTBEAT_ANNOTATION, registerNode } from './node-registration.ts';

// S-295
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

// S-520
// S-1545: A node whose label kubevirt.io/schedulable somebody else set to false is schedulable again with its next
//   heartbeat, within a minute; a cordon stays.
test('registerNode() renews the heartbeat annotation once a minute, and with it what says that guests may come', async () => {
  let now = Date.UTC(2026, 0, 1);
  const start = now;
  const beats: [atSeconds: number, text: string][] = [];
  const schedulable: (string | undefined)[] = [];
  const stop = new AbortController();
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += ms;
      if (now - start === 30_000) node!.metadata.labels!['kubevirt.io/schedulable'] = 'false';
      schedulable.push(node?.metadata.labels?.['kubevirt.io/schedulable']);
      if (now - start > 150_000) stop.abort(new Error('stopped'));
    },
  } as unknown as Clock;
  let node: Node | undefined;
  const client = {
    get: async () => {
      if (!node) throw new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
      return node;
    },
    create: async (_type: unknown, object: Node) => {
      if (object.kind !== 'Node') return object;
      beats.push([0, object.metadata.annotations![HANDLER_HEARTBEAT_ANNOTATION]!]);
      node = { ...object, metadata: { ...object.metadata, uid: 'u' } };
      return object;
    },
    patch: async (_type: unknown, _key: unknown, { body }: { body: Partial<Node> }) => {
      const { annotations, labels } = body.metadata ?? {};
      const beat = annotations?.[HANDLER_HEARTBEAT_ANNOTATION];
      if (beat) beats.push([(now - start) / 1000, beat]);
      const metadata = {
        ...node?.metadata,
        labels: { ...node?.metadata.labels, ...labels },
        annotations: { ...node?.metadata.annotations, ...annotations },
      };
      node = { ...node, ...(body.status && { status: body.status }), metadata } as Node;
      return node;
    },
  } as unknown as Client;
  const describe = async (): Promise<NodeDescription> =>
    ({
      name: 'n',
      facts: { accelerator: 'tcg', architecture: 'amd64', machineTypes: [], machineAliases: {}, cpuModels: [] },
      cpus: 1,
      memoryBytes: 2 ** 30,
      storageBytes: 2 ** 30,
      address: '127.0.0.1',
      labels: {},
    }) as unknown as NodeDescription;
  const { done } = await registerNode({ client, clock, log: silentLogger, signal: stop.signal, describe });
  await done;
  assert.deepEqual(beats, [
    [0, '2026-01-01T00:00:00Z'],
    [60, '2026-01-01T00:01:00Z'],
    [120, '2026-01-01T00:02:00Z'],
  ]);
  assert.deepEqual(schedulable.slice(0, 8), ['true', 'true', 'false', 'false', 'false', 'false', 'true', 'true']);
});
