import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { openStore } from '../cache/store.fixture.ts';
import type { Row } from '../storage/backend.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import { renewStored } from './renew-stored.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function renewed(prefix: string, object: object): unknown {
  const place = { prefix, namespace: 'default', name: 'a', key: 'default/a' };
  return JSON.parse(decoder.decode(renewStored(place, encoder.encode(JSON.stringify(object)))));
}

test('an object of an older version gets what Go writes though nobody sent it', () => {
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'a', namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
    status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2024-01-01T00:00:00Z' }] },
  };
  const { status } = renewed('/pods', pod) as typeof pod;
  assert.deepEqual(status.conditions, [{ ...pod.status.conditions[0], lastProbeTime: null }]);
  const role = { kind: 'Role', apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'a' }, rules: [] };
  assert.deepEqual(renewed('rbac.authorization.k8s.io/roles', role), { ...role, rules: null });
});

test('what is so already, of another kind, or no object at all is given back as it is', () => {
  const place = { prefix: 'rbac.authorization.k8s.io/roles', namespace: 'default', name: 'a', key: 'default/a' };
  for (const text of [
    '{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"rules":null}',
    '{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"rules":[]}',
    'nothing',
  ]) {
    const bytes = encoder.encode(text);
    assert.equal(renewStored(place, bytes), bytes, text);
  }
});

// S-334
test('a store shows what an older version wrote as it shows its own, and takes what is younger as it is', async () => {
  const key = 'rbac.authorization.k8s.io/roles/default/';
  const row = (revision: number, name: string): Row => {
    const metadata = { name, namespace: 'default', resourceVersion: String(revision) };
    const role = { kind: 'Role', apiVersion: 'rbac.authorization.k8s.io/v1', metadata };
    return { revision, key: `${key}${name}`, value: encoder.encode(JSON.stringify(role)), created: true };
  };
  const memory = createMemoryBackend();
  await memory.open(new AbortController().signal);
  await memory.commit([row(1, 'old'), row(2, 'young')]);
  await memory.close();
  const backend: typeof memory = {
    ...memory,
    open: async (signal) => ({ ...(await memory.open(signal)), incomplete: 1 }),
  };
  const store = await openStore(backend, createFakeClock(), { renew: renewStored });
  const texts = ['old', 'young'].map((name) => {
    const stored = store.get({ prefix: 'rbac.authorization.k8s.io/roles', namespace: 'default', name });
    return [decoder.decode(stored?.bytes).endsWith(',"rules":null}'), stored?.object['rules']];
  });
  assert.deepEqual(texts, [
    [true, null],
    [false, undefined],
  ]);
  await store.close();
});
