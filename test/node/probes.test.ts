// test:full: waits for guests to become ready and to be ended by their probes
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ENDPOINT_SLICES, EVENTS, SERVICES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { byAgent } from './in-guest.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const isReady = (vmi: VirtualMachineInstance): boolean =>
  vmi.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

const eventsOf = async (pod: string, reason: string): Promise<string[]> =>
  (await board.client.list(EVENTS, { namespace: NAMESPACE })).items
    .filter((event) => event.involvedObject.name?.startsWith(`virt-launcher-${pod}-`) && event.reason === reason)
    .map(({ message = '' }) => message);

/** Addresses of the Service that are ready. */
const readyAddresses = async (): Promise<string[]> =>
  (await board.client.list(ENDPOINT_SLICES, { namespace: NAMESPACE })).items
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready)
    .flatMap(({ addresses }) => addresses);

// S-1270: The readiness probe of a guest decides the condition Ready of its instance and Pod, and with it the endpoints of Services; it goes on after a restart of the node agent.
test('readiness by a command in the guest decides Ready and the endpoints of Services', async () => {
  await board.client.create(SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: NAMESPACE },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  });
  await board.client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'asked', namespace: NAMESPACE, labels: { app: 'web' } },
    spec: kernelSpec({
      terminationGracePeriodSeconds: 0,
      readinessProbe: { exec: { command: ['cat', '/tmp/ready'] }, periodSeconds: 1, failureThreshold: 1 },
    }),
  });
  await board.until('asked', 'its agent', (vmi) =>
    Boolean(vmi.status?.conditions?.some(({ type }) => type === 'AgentConnected')),
  );
  await eventually('a failure with what the command wrote', async () =>
    (await eventsOf('asked', 'Unhealthy')).some((text) =>
      /^Readiness probe failed: cat: can't open '\/tmp\/ready'/.test(text),
    ),
  );
  assert.equal(isReady(await board.vmi('asked')), false);
  assert.deepEqual(await readyAddresses(), []);
  await byAgent(board, 'asked', 'touch /tmp/ready');
  const ready = await board.until('asked', 'ready', isReady);
  await eventually('an endpoint', async () => (await readyAddresses()).length === 1);
  assert.deepEqual(await readyAddresses(), [ready.status?.interfaces?.[0]?.ipAddress]);
  await board.restartAgent();
  assert.equal(isReady(await board.vmi('asked')), true, 'a new agent begins with what was known');
  await byAgent(board, 'asked', 'rm /tmp/ready');
  await board.until('asked', 'not ready', (vmi) => !isReady(vmi));
  await eventually('no endpoint', async () => (await readyAddresses()).length === 0);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'asked' });
});

// S-1271: A guest whose liveness probe fails is shut down within its grace period, with kubelet's events on its Pod, and the run strategy of its machine decides what follows.
test('liveness by TCP: a guest that no longer listens is ended, and its machine starts it again', async () => {
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'alive', namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: kernelSpec({
          readinessProbe: { httpGet: { port: 8080, path: '/index.txt' }, periodSeconds: 1 },
          // Long enough for a guest to come up on a machine that is busy.
          livenessProbe: { tcpSocket: { port: 80 }, initialDelaySeconds: 20, periodSeconds: 1, failureThreshold: 2 },
        }),
      },
    },
  });
  const first = await board.until('alive', 'ready', isReady);
  const { startedAt } = await board.record(first);
  await eventually('asked by TCP', () => Date.now() > startedAt + 23_000);
  assert.equal((await board.vmi('alive')).metadata.uid, first.metadata.uid, 'a guest that listens lives');
  assert.deepEqual(await eventsOf('alive', 'Killing'), []);
  await byAgent(board, 'alive', 'killall httpd');
  await board.until('alive', 'another one', (vmi) => vmi.metadata.uid !== first.metadata.uid);
  assert.deepEqual(await eventsOf('alive', 'Killing'), ['Container compute failed liveness probe']);
  const failures = await eventsOf('alive', 'Unhealthy');
  assert.ok(
    failures.some((text) => /^Liveness probe failed: dial tcp 100\.\S+:80: connect: connection refused$/.test(text)),
    failures.join('\n'),
  );
  await board.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'alive' });
});
