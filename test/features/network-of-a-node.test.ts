/** What a node does for the network of Pods while it serves nobody, and when a Service wants a port of it: with its real switch. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERVICES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Service } from '../../packages/apimachinery/src/types/types.ts';
import type { AgentEnvironment } from '../../packages/node-agent/src/agent/environment.ts';
import { createClusterNetwork } from '../../packages/node-agent/src/agent/network/cluster-network.ts';
import { endSwitch } from '../../packages/node-agent/src/agent/network/keep-switch.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { partly } from '../testkit/partly.ts';

const HOST = '127.0.0.3';

/** True when something listens there. */
const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection({ host: HOST, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

// S-1332: A node without guests, of whose ports no Service wants one, has no switch; with the first
//   Service of type NodePort it opens that port, and closes it with the last.
test('a node has a switch when it serves somebody', async (t) => {
  const { plane, stop } = await startPlane();
  const dataDir = await mkdtemp(join(tmpdir(), 'coracle-network-'));
  const life = new AbortController();
  t.after(async () => {
    life.abort();
    await endSwitch(dataDir, { clock: systemClock, signal: AbortSignal.timeout(5000) });
    await stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const client = await plane.adminClient();
  const environment = partly<AgentEnvironment>({
    nodeName: 'n',
    hostIP: HOST,
    client,
    clock: systemClock,
    log: silentLogger,
    signal: life.signal,
  });
  const network = createClusterNetwork(environment, { dataDir, records: () => [], forward: async () => {} });
  const service = (name: string, spec: Service['spec']): Promise<Service> =>
    client.create(SERVICES, partly<Service>({ metadata: { name, namespace: 'default' }, spec }));
  await service('inner', { ports: [{ port: 80 }] });
  network.guestsChanged();
  await systemClock.sleep(300, life.signal);
  assert.equal(existsSync(join(dataDir, 'network')), false, 'nobody is served');

  const created = await service('web', { type: 'NodePort', selector: { app: 'web' }, ports: [{ port: 80 }] });
  const port = created.spec?.ports?.[0]?.nodePort ?? 0;
  await eventually('the port', () => listens(port));
  await client.delete(SERVICES, { namespace: 'default', name: 'web' });
  await eventually('the port is closed', async () => !(await listens(port)));
  await service('again', { type: 'NodePort', ports: [{ port: 80, nodePort: port }] });
  await eventually('the port of another Service', () => listens(port));
});
