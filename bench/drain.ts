/**
 * Draining a node with guests that only pretend: how much the controllers add to the time the transfers take. And how
 * long the answer to an eviction takes. Run: `node bench/drain.ts`. JSON to standard output.
 */
import { NODES, PODS } from '../packages/apimachinery/src/types/resource-types.ts';
import { KUBEVIRTS } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../test/testkit/eventually.ts';
import { startFakeCluster } from '../test/testkit/fake-cluster.ts';

const GUESTS = 20;
const AT_A_TIME = 5;
const TRANSFER_MS = 1000;
const EVICTIONS = 600;
const EVICTIONS_PER_SECOND = 200;

const cluster = await startFakeCluster();
const cordon = (name: string, unschedulable: boolean) =>
  cluster.client.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } });
try {
  const migrations = { parallelMigrationsPerCluster: AT_A_TIME, parallelOutboundMigrationsPerNode: AT_A_TIME };
  await cluster.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { configuration: { migrations } } } },
  );
  for (const node of cluster.nodes.values()) node.transferMs = TRANSFER_MS;
  for (const name of ['node-2', 'node-3']) await cordon(name, true);
  const names = Array.from({ length: GUESTS }, (_, i) => `guest-${i}`);
  await Promise.all(names.map((name) => cluster.run(name, { evictionStrategy: 'LiveMigrate' })));
  for (const name of ['node-2', 'node-3']) await cordon(name, false);
  const { items } = await cluster.client.list(PODS, { namespace: 'default' });
  const evict = (name: string, query = '') =>
    cluster.board.send('POST', `/api/v1/namespaces/default/pods/${name}/eviction${query}`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name },
    });

  // A rehearsal asks the same questions and marks nothing.
  const took: number[] = [];
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: EVICTIONS }, async (_, i) => {
      await new Promise((resolve) => setTimeout(resolve, (i * 1000) / EVICTIONS_PER_SECOND));
      const asked = performance.now();
      await evict(items[i % items.length]?.metadata.name ?? '', '?dryRun=All');
      took.push(performance.now() - asked);
    }),
  );
  const evictionSeconds = (performance.now() - begin) / 1000;
  took.sort((a, b) => a - b);

  await cordon('node-1', true);
  const started = performance.now();
  await Promise.all(items.map(({ metadata }) => evict(metadata.name ?? '')));
  await eventually(
    'the node is empty',
    async () => (await Promise.all(names.map(cluster.vmi))).every(({ status }) => status?.nodeName !== 'node-1'),
    120_000,
  );
  const drainMs = performance.now() - started;
  const idealMs = (GUESTS / AT_A_TIME) * TRANSFER_MS;
  const round = (value: number) => Math.round(value * 100) / 100;
  process.stdout.write(
    `${JSON.stringify(
      {
        drain: {
          guests: GUESTS,
          atATime: AT_A_TIME,
          ms: Math.round(drainMs),
          idealMs,
          toIdeal: round(drainMs / idealMs),
        },
        eviction: {
          perSecond: Math.round(EVICTIONS / evictionSeconds),
          p50Ms: round(took[Math.floor(took.length * 0.5)] ?? 0),
          p99Ms: round(took[Math.floor(took.length * 0.99)] ?? 0),
        },
      },
      null,
      2,
    )}\n`,
  );
} finally {
  await cluster.stop();
}
