/** Pods go where their volumes are, and volumes of claims that wait are made where the Pod goes. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poolNode } from '../testkit/fake-pool.ts';
import { CLAIMS, type Row, type StoragePlane, startStoragePlane } from '../testkit/storage-plane.ts';

const PODS = '/api/v1/namespaces/default/pods';
let plane: StoragePlane;
before(async () => {
  plane = await startStoragePlane(['scheduler'], async (fresh) => {
    const { status, ...node } = poolNode('a-bare');
    await fresh.admin('POST /api/v1/nodes', { ...node, metadata: { name: 'a-bare', labels: { place: 'bare' } } });
    await fresh.admin('PATCH /api/v1/nodes/a-bare/status', { status });
    await fresh.admin('PATCH /api/v1/nodes/a-bare', { spec: { taints: null } });
    await fresh.admin('POST /api/v1/namespaces/default/serviceaccounts', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default' },
    });
  });
});
after(() => plane.stop());

const pod = (name: string, claimName: string, spec: object = {}): Promise<Row> =>
  plane.admin(`POST ${PODS}`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
      ...spec,
    },
  });
const onNode = (name: string, node: string) =>
  plane.settled(`${PODS}/${name}`, ({ spec }) => {
    assert.ok(['', node].includes(spec.nodeName ?? ''), spec.nodeName);
    return spec.nodeName === node;
  });
const refused = (name: string, message: RegExp) =>
  plane.settled(`${PODS}/${name}`, ({ status }) =>
    (status?.conditions ?? []).some((one: Row) => one['type'] === 'PodScheduled' && message.test(one['message'])),
  );

// S-532: Pods go where their volumes are reached; volumes of claims that wait for their first Pod are made where it
//   goes.
// Compat Types, P1, yes: WaitForFirstConsumer, node affinity of volumes
test('a Pod of a claim that waits selects a node, and is bound when the claim is', async () => {
  await plane.claim('waits', { storageClassName: 'local-wait' });
  await plane.reported('waits', 'WaitForFirstConsumer');
  await pod('waits', 'waits');
  await onNode('waits', 'n1');
  const { metadata, status } = await plane.admin(`GET ${CLAIMS}/waits`);
  assert.equal(metadata.annotations['volume.kubernetes.io/selected-node'], 'n1');
  assert.equal(status.phase, 'Bound');
});

// S-532
test('a Pod goes to a node that serves the pool of its volume', async () => {
  await plane.claim('there');
  await plane.settled(`${CLAIMS}/there`, ({ status }) => status?.phase === 'Bound');
  await pod('there', 'there');
  await onNode('there', 'n1');
  await pod('elsewhere', 'there', { nodeSelector: { place: 'bare' } });
  await refused('elsewhere', /1 node\(s\) didn't match PersistentVolume's node affinity/);
});

test('a Pod waits for a claim that is not bound, and gets a condition', async () => {
  await pod('early', 'late');
  await refused('early', /0\/2 nodes are available: persistentvolumeclaim "late" not found\./);
  await plane.claim('late', { storageClassName: 'unknown' });
  await refused('early', /pod has unbound immediate PersistentVolumeClaims/);
});
