import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cloneJson } from '../../../apimachinery/src/meta/deep-clone.ts';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import { PODS } from '../../../apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../../apimachinery/src/types/types.ts';
import { isConflict } from '../api-failure.ts';
import { createClient } from '../create-client.ts';
import { createFakeApi } from '../fake-api.fixture.ts';
import { addFinalizer } from '../finalizer/finalizer.ts';
import { commit, planCommit } from './commit.ts';

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'ns', uid: 'u1', resourceVersion: '7', labels: { a: '1', b: '2' } },
  spec: { containers: [], nodeName: 'n' },
  status: { phase: 'Pending' },
};
const lock = { uid: 'u1', resourceVersion: '7' };
const changed = (change: (clone: Pod) => void): Pod => {
  const clone = cloneJson<Pod>(pod);
  change(clone);
  return clone;
};

const cases: {
  name: string;
  after: Pod;
  options?: Parameters<typeof planCommit>[2];
  plan: ReturnType<typeof planCommit>;
}[] = [
  { name: 'no change', after: changed(() => {}), plan: undefined },
  {
    name: 'a label removed, one changed',
    after: changed((one) => {
      one.metadata.labels = { a: '9' };
    }),
    plan: { subresource: '', body: { metadata: { ...lock, labels: { a: '9', b: null } } } },
  },
  {
    name: 'a finalizer',
    after: addFinalizer(pod, 'x/y'),
    plan: { subresource: '', body: { metadata: { ...lock, finalizers: ['x/y'] } } },
  },
  {
    name: 'spec',
    after: changed((one) => {
      one.spec.nodeName = 'm';
    }),
    plan: { subresource: '', body: { spec: { nodeName: 'm' }, metadata: lock } },
  },
  {
    name: 'status only',
    after: changed((one) => {
      one.status = { phase: 'Running' };
    }),
    plan: { subresource: 'status', body: { status: { phase: 'Running' }, metadata: lock } },
  },
  {
    name: 'status removed',
    after: changed((one) => {
      delete one.status;
    }),
    plan: { subresource: 'status', body: { status: null, metadata: lock } },
  },
  {
    name: 'spec and status, status last',
    after: changed((one) => {
      one.spec.nodeName = 'm';
      one.status = { phase: 'Running' };
    }),
    options: { order: 'status-last' },
    plan: { subresource: '', body: { spec: { nodeName: 'm' }, metadata: lock } },
  },
  {
    name: 'spec and status of a kind without /status',
    after: changed((one) => {
      one.spec.nodeName = 'm';
      one.status = { phase: 'Running' };
    }),
    options: { subresource: '' },
    plan: { subresource: '', body: { spec: { nodeName: 'm' }, status: { phase: 'Running' }, metadata: lock } },
  },
];
for (const { name, after, options, plan } of cases) {
  test(`planCommit(): ${name}`, () => assert.deepEqual(planCommit(pod, after, options), plan));
}

// S-051: A controller saves only the difference, metadata and spec apart from status, under the revision it read.
test('planCommit() refuses spec and status in one pass, and an object that was never stored', () => {
  const both = changed((one) => {
    one.metadata.labels = {};
    one.status = { phase: 'Running' };
  });
  assert.throws(() => planCommit(pod, both), /Cannot commit Pod "p": metadata and status changed in one pass/);
  const { uid: _uid, ...metadata } = pod.metadata;
  assert.throws(() => planCommit({ ...pod, metadata }, both), /no uid or resourceVersion/);
});

// S-051
test('commit() returns what is stored, and 409 when somebody wrote in between', async () => {
  const api = createFakeApi([PODS] as ResourceType<never>[]);
  const client = createClient(api.handler);
  const before = api.put({ ...pod, metadata: { name: 'p', namespace: 'ns' } }) as unknown as Pod;
  assert.equal(await commit(client, PODS, { before, after: cloneJson<Pod>(before) }), undefined);
  assert.deepEqual(api.requests, []);

  const after = cloneJson<Pod>(before);
  after.status = { phase: 'Running' };
  const stored = await commit(client, PODS, { before, after });
  assert.equal(stored?.status?.phase, 'Running');
  assert.deepEqual(api.requests, ['PATCH /api/v1/namespaces/ns/pods/p/status']);
  await assert.rejects(commit(client, PODS, { before, after }), isConflict);
  // Deleted and made anew: the same name, another object.
  const remade = {
    ...before,
    metadata: { ...before.metadata, uid: 'other', resourceVersion: stored!.metadata.resourceVersion! },
  };
  await assert.rejects(commit(client, PODS, { before: remade, after: { ...remade, status: {} } }), isConflict);
});
