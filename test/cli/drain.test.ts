/** `coracle drain`: the rehearsal names what would hold a node, and the drain itself empties it while guests run on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NODES, POD_DISRUPTION_BUDGETS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { bootNothing, byKernel, importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';
import { openWorkspace } from './workspace.ts';

type Admin = Pick<ReturnType<typeof adminOf>, 'client' | 'reporter'>;

const namespace = 'default';
const why = whyNoGuests();

async function fakeGuest(
  { client, reporter }: Admin,
  name: string,
  strategy: string,
  labels: Record<string, string> = {},
) {
  const key = { namespace, name };
  await client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace },
    spec: { evictionStrategy: strategy, domain: { devices: {}, memory: { guest: '64Mi' } } },
  } as unknown as VirtualMachineInstance);
  const conditions = [
    { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable', message: 'a local disk' },
  ];
  const status = { phase: 'Running', nodeName: 'a', conditions };
  await reporter.patch(VIRTUAL_MACHINE_INSTANCES, key, { type: 'merge', body: { status } }, { subresource: 'status' });
  const pod = { namespace, name: `virt-launcher-${name}` };
  await client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...pod,
      labels: { 'kubevirt.io': 'virt-launcher', ...labels },
      annotations: { 'kubevirt.io/domain': name },
    },
    spec: { nodeName: 'a', containers: [{ name: 'compute', image: 'i' }] },
  } as Pod);
  const body = { status: { phase: 'Running' } };
  await client.patch(PODS, pod, { type: 'merge', body }, { subresource: 'status' });
}

// S-199
test('coracle drain --what-if changes nothing and names each blocker; a drain that cannot end says who holds it', {
  timeout: 600_000,
}, async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up('--controllers', 'serviceaccount-controller')).code, 0);
  const admin = adminOf(at.data);
  const { client, close } = admin;
  t.after(close);
  for (const name of ['a', 'b'])
    await client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    });
  await eventually('the service account', async () =>
    client
      .raw('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/default`)
      .then(() => true)
      .catch(() => undefined),
  );
  await client.create(POD_DISRUPTION_BUDGETS, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'mine', namespace },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'held' } } },
  });
  await fakeGuest(admin, 'ext', 'External');
  await fakeGuest(admin, 'held', 'None', { app: 'held' });
  await fakeGuest(admin, 'local', 'LiveMigrate');
  await fakeGuest(admin, 'plain', 'None');

  const drain = (...more: string[]) => at.run(['drain', ...more, '--data-dir', at.data]);
  const rehearsal = await drain('a', '--what-if', '--json');
  assert.equal(rehearsal.code, 1, rehearsal.stderr);
  const { pods, wouldEmpty } = JSON.parse(rehearsal.stdout);
  assert.equal(wouldEmpty, false);
  const reported = Object.fromEntries(
    pods.map((row: { instance: string; verdict: string; blocker?: string }) => [
      row.instance,
      [row.verdict, row.blocker],
    ]),
  );
  assert.deepEqual(reported['plain'], ['stops', undefined]);
  assert.equal(reported['ext'][0], 'waits');
  assert.match(reported['held'][1], /disruption budget mine needs/);
  assert.match(reported['local'][1], /not live-migratable: a local disk/);
  assert.match(
    (await drain('a', '--what-if')).stdout,
    /^MACHINE +STRATEGY +VERDICT .*\n.*\n[\s\S]*3 of 4 would stay\n$/,
  );
  const untouched = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'ext' });
  assert.equal(untouched.status?.evacuationNodeName, undefined);
  assert.equal((await client.get(NODES, { namespace: '', name: 'a' })).spec?.unschedulable, undefined);
  assert.equal(
    (await client.list(PODS, { namespace })).items.filter((pod) => pod.metadata.deletionTimestamp).length,
    0,
  );

  const stuck = await drain('a', '--timeout', '3');
  assert.equal(stuck.code, 1);
  assert.match(
    stuck.stderr,
    /^error: node a is not empty after 3 s \(it stays cordoned\): default\/ext: waits for the outside/,
  );
  assert.equal((await client.get(NODES, { namespace: '', name: 'a' })).spec?.unschedulable, true);
  assert.equal(
    (await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'ext' })).status?.evacuationNodeName,
    'a',
  );
  // Whoever uncordons the node ends the drain.
  const calledOff = at.start(['drain', 'a', '--timeout', '60', '--data-dir', at.data]);
  await calledOff.line(/default\/ext: /);
  const body = { spec: { unschedulable: false } };
  await client.patch(NODES, { namespace: '', name: 'a' }, { type: 'merge', body });
  const ended = await calledOff.ended;
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^error: node a was uncordoned: nothing more is evicted$/m);
  const evicted = await client.get(PODS, { namespace, name: 'virt-launcher-plain' });
  assert.ok(evicted.metadata.deletionTimestamp);
  assert.equal((await drain('b')).stdout.trim(), 'node b is empty');
  assert.match((await drain('nowhere')).stderr, /there is no node "nowhere"/);
  assert.equal((await drain()).code, 1);
});

// S-199
// S-366
test('coracle drain empties a node: one guest moves while it runs, another is started elsewhere', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  const up = await at.up('--nodes', '2');
  assert.equal(up.code, 0, up.stderr);
  const { client, close } = adminOf(at.data);
  t.after(close);
  const [first = '', second = ''] = await eventually('two nodes', async () => {
    const { items } = await client.list(NODES);
    return items.length === 2 ? items.map(({ metadata }) => metadata.name ?? '').sort() : undefined;
  });
  const cordon = (name: string, unschedulable: boolean) =>
    client.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } });
  await cordon(second, true);
  for (const [name, evictionStrategy, boots] of [
    ['moves', 'LiveMigrate', byKernel],
    ['restarts', 'None', bootNothing],
  ] as const)
    await client.create(
      VIRTUAL_MACHINES,
      tinyVm(name, (vm) => {
        boots(vm);
        vm.spec.template.spec!.terminationGracePeriodSeconds = 1;
        vm.spec.template.spec!.evictionStrategy = evictionStrategy;
      }),
    );
  const instance = (name: string) => client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name });
  const migratable = (vmi: VirtualMachineInstance) =>
    vmi.status?.conditions?.some(({ type, status }) => type === 'LiveMigratable' && status === 'True') === true;
  const before = await Promise.all(
    ['moves', 'restarts'].map((name) =>
      eventually(`${name} runs`, async () => {
        const vmi = await instance(name).catch(() => undefined);
        return vmi?.status?.phase === 'Running' && migratable(vmi) ? vmi : undefined;
      }),
    ),
  );
  assert.deepEqual(
    before.map(({ status }) => status?.nodeName),
    [first, first],
  );
  await cordon(second, false);
  await eventually('it takes guests again', async () => {
    const { spec } = await client.get(NODES, { namespace: '', name: second });
    return !spec?.taints?.some(({ effect }) => effect === 'NoSchedule');
  });

  const rehearsal = await at.run(['drain', `node/${first}`, '--what-if', '--json', '--data-dir', at.data]);
  assert.equal(rehearsal.code, 0, rehearsal.stderr);
  const rows = JSON.parse(rehearsal.stdout).pods as { instance: string; verdict: string; target: string }[];
  assert.deepEqual(
    rows.map((row) => [row.instance, row.verdict, row.target]),
    [
      ['moves', 'migrates', second],
      ['restarts', 'restarts', second],
    ],
  );
  for (const words of [['vm/moves'], ['moves.default'], ['vmi/moves', '-n', namespace]]) {
    const console_ = at.start(['console', ...words, '--backlog', '--data-dir', at.data]);
    await console_.line(/cloud-init: done/);
    console_.child.kill('SIGINT');
    assert.equal((await console_.ended).code, 0, words.join(' '));
  }
  const drained = at.start(['drain', first, '--data-dir', at.data, '--timeout', '90']);
  const outcome = await drained.ended;
  assert.equal(outcome.code, 0, `${outcome.stdout}${outcome.stderr}`);
  assert.match(outcome.stdout, new RegExp(`default/moves: runs on ${second}`));
  assert.match(outcome.stdout, new RegExp(`node ${first} is empty\n$`));
  const moved = await instance('moves');
  assert.deepEqual([moved.metadata.uid, moved.status?.nodeName], [before[0]?.metadata.uid, second]);
  const restarted = await eventually('restarts runs again', async () => {
    const vmi = await instance('restarts').catch(() => undefined);
    return vmi?.status?.phase === 'Running' ? vmi : undefined;
  });
  assert.notEqual(restarted.metadata.uid, before[1]?.metadata.uid);
  assert.equal(restarted.status?.nodeName, second);
  await client.patch(
    VIRTUAL_MACHINES,
    { namespace, name: 'restarts' },
    { type: 'merge', body: { spec: { runStrategy: 'Halted' } } },
  );
  const refused = await eventually('it is stopped', async () => {
    const outcome = await at.run(['console', 'restarts', '--data-dir', at.data]);
    return outcome.stderr.includes('is stopped') ? outcome : undefined;
  });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^error: default\/restarts is stopped \(start it: coracle start restarts -n default\)/);
});
