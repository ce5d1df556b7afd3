import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true, clock: createFakeClock() });
  const metadata = { name: 'default' };
  await server.create('/api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata,
  });
  await runtimeClass('plain');
  await runtimeClass('heavy', { overhead: { podFixed: { cpu: '250m', memory: '64Mi' } } });
  await runtimeClass('placed', {
    scheduling: {
      nodeSelector: { disk: 'fast' },
      tolerations: [
        { key: 'vm', operator: 'Exists' },
        { key: 'mine', operator: 'Equal', value: 'a', effect: 'NoSchedule' },
      ],
    },
  });
});
after(() => server.stop());

const runtimeClass = (name: string, more: object = {}) =>
  server.create('/apis/node.k8s.io/v1/runtimeclasses', {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name },
    handler: 'vm',
    ...more,
  });
let number = 0;
const create = (spec: object) =>
  server.request('POST', '/api/v1/namespaces/default/pods', {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `p${number++}` },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }], ...spec },
    },
  });

test('a runtime class gives its Pods overhead, node selector and tolerations', async () => {
  assert.equal((await create({ runtimeClassName: 'plain' })).status, 201);
  const heavy = (await create({ runtimeClassName: 'heavy' })).json;
  assert.deepEqual(heavy.spec.overhead, { cpu: '250m', memory: '64Mi' });
  const same = await create({ runtimeClassName: 'heavy', overhead: { cpu: '0.25', memory: '64Mi' } });
  assert.equal(same.status, 201);
  const placed = await create({
    runtimeClassName: 'placed',
    nodeSelector: { zone: 'z' },
    tolerations: [
      { key: 'vm', operator: 'Exists', effect: 'NoSchedule' },
      { key: 'mine', operator: 'Exists' },
    ],
  });
  const { nodeSelector, tolerations } = placed.json.spec;
  assert.deepEqual(nodeSelector, { zone: 'z', disk: 'fast' });
  // Of two that overlap, the one that tolerates more is left.
  assert.deepEqual(
    tolerations.filter(({ key }: { key: string }) => !key.startsWith('node.kubernetes.io/')),
    [
      { key: 'mine', operator: 'Exists' },
      { key: 'vm', operator: 'Exists' },
    ],
  );
});

test('what does not fit a runtime class is refused in upstream’s words', async () => {
  const cases: [spec: object, why: string][] = [
    [{ runtimeClassName: 'absent' }, 'pod rejected: RuntimeClass "absent" not found'],
    [
      { runtimeClassName: 'heavy', overhead: { cpu: '1' } },
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ],
    [{ overhead: { cpu: '1' } }, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'],
    [
      { runtimeClassName: 'plain', overhead: { cpu: '1' } },
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    ],
    [
      { runtimeClassName: 'placed', nodeSelector: { disk: 'slow' } },
      'conflict: runtimeClass.scheduling.nodeSelector[disk] = fast; pod.spec.nodeSelector[disk] = slow',
    ],
  ];
  for (const [spec, why] of cases) {
    const name = `p${number}`;
    const { status, json } = await create(spec);
    assert.deepEqual([status, json.reason, json.message], [403, 'Forbidden', `pods "${name}" is forbidden: ${why}`]);
  }
});

test('a new node takes no Pods before it is ready, whatever it says of itself', async () => {
  const taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
  const mine = { key: 'mine', effect: 'NoExecute' };
  const cases: [taints: object[] | undefined, wanted: object[]][] = [
    [undefined, [taint]],
    [[mine], [mine, taint]],
    [[taint], [taint]],
    [[{ ...taint, effect: 'NoExecute' }], [{ ...taint, effect: 'NoExecute' }, taint]],
  ];
  for (const [taints, wanted] of cases) {
    const { json } = await server.request('POST', '/api/v1/nodes', {
      body: { apiVersion: 'v1', kind: 'Node', metadata: { name: `n${number++}` }, ...(taints && { spec: { taints } }) },
    });
    assert.deepEqual(json.spec.taints, wanted);
    // Only at its creation: who takes it away later has a reason.
    const freed = await server.request('PATCH', `/api/v1/nodes/${json.metadata.name}`, {
      body: { spec: { taints: null } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    assert.equal(freed.json.spec.taints, undefined);
  }
});
