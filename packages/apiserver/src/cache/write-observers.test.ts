import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import { holdCommits, openStore, PREFIX, put, settle } from './store.fixture.ts';

async function observed() {
  const backend = holdCommits(createMemoryBackend());
  const store = await openStore(backend, createFakeClock());
  const heard: string[] = [];
  const observer = store.observe(PREFIX, {
    decided: ({ type, current }) => heard.push(`${type} ${current.name}`),
    settled: ({ current }, durable) => {
      const published = store.get({ prefix: PREFIX, namespace: 'ns', name: current.name }) !== undefined;
      heard.push(`${current.name} ${durable ? 'durable' : 'failed'}${published ? ', published' : ''}`);
    },
  });
  const taken = (): string[] => heard.splice(0);
  return { backend, store, observer, taken };
}

it('observe() tells of a write within its decision, and again when it is durable, before it is answered', async () => {
  const { backend, store, observer, taken } = await observed();
  const written = put(store, 'a', '1').then(() => taken());
  assert.deepEqual(taken(), ['ADDED a']);
  await backend.release();
  assert.deepEqual(await written, ['a durable, published']);
  observer.stop();
  const after = put(store, 'b', '1');
  await backend.release();
  await after;
  assert.deepEqual(taken(), []);
});

it('observe() tells of writes that failed, and of nothing under other prefixes', async () => {
  const { backend, store, taken } = await observed();
  const failed = put(store, 'a', '1');
  failed.catch(() => {});
  const other = store.write({ prefix: 'g/others', namespace: 'ns', name: 'x' }, () => ({
    type: 'put',
    object: { apiVersion: 'g/v1', kind: 'Other', metadata: { name: 'x', namespace: 'ns' } },
  }));
  other.catch(() => {});
  assert.deepEqual(taken(), ['ADDED a']);
  await settle();
  await backend.fail('io');
  await assert.rejects(failed);
  assert.deepEqual(taken(), ['a failed']);
});
