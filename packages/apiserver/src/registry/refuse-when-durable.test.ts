import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { holdCommits, openStore, settle } from '../cache/store.fixture.ts';
import { builtinResource } from '../kinds/builtin/builtin-resources.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import { createObject } from './create.ts';
import { deleteObject } from './delete.ts';
import { updateObject } from './update.ts';
import { NO_ADMISSION } from './write-call.ts';
import type { Registry, WriteCall } from './write-contract.ts';

const clock = createFakeClock();
const info = builtinResource({ group: '', version: 'v1', resource: 'configmaps' })!;
const call: WriteCall = {
  info,
  subresource: '',
  namespace: 'ns',
  name: 'c',
  dryRun: false,
  manager: 'test',
  admission: NO_ADMISSION,
  warn: () => {},
};
const configMap = (value: string, resourceVersion?: string): UnstructuredObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'ns', ...(resourceVersion && { resourceVersion }) },
  data: { value },
});

async function open() {
  const backend = holdCommits(createMemoryBackend());
  const store = await openStore(backend, clock);
  const registry: Registry = { store, clock };
  const create = (value: string) => createObject(registry, { ...call, name: '', object: configMap(value) });
  const update = (value: string, resourceVersion: string) =>
    updateObject(registry, {
      ...call,
      object: configMap(value, resourceVersion),
      authorizeCreate: () => {},
      sent: () => assert.fail(),
    });
  const remove = () => deleteObject(registry, { ...call, options: {} });
  return { backend, create, update, remove };
}

/** How a call ends, or 'open' as long as it has not. */
function watched(call: Promise<unknown>): () => string {
  let state = 'open';
  call.then(
    () => {
      state = 'ok';
    },
    (error: unknown) => {
      state = error instanceof ApiError ? error.reason : String(error);
    },
  );
  return () => state;
}

// S-233: A refusal (404, 409) that rests on a write still on its way is reported only when that write is durable.
test('a refusal that rests on a write on its way is reported once that is durable', async () => {
  const { backend, create, update, remove } = await open();
  const steps = [
    { write: () => create('one'), refused: () => create('two'), reason: 'AlreadyExists' },
    { write: () => update('two', '1'), refused: () => update('three', '1'), reason: 'Conflict' },
    { write: () => remove(), refused: () => update('four', '2'), reason: 'NotFound' },
    { write: () => create('five'), refused: () => create('six'), reason: 'AlreadyExists' },
    { write: () => remove(), refused: () => remove(), reason: 'NotFound' },
  ];
  for (const { write, refused, reason } of steps) {
    const written = watched(write());
    await settle();
    const answer = watched(refused());
    await settle();
    assert.deepEqual([written(), answer()], ['open', 'open'], reason);
    await backend.release();
    assert.deepEqual([written(), answer()], ['ok', reason]);
  }
});

test('with nothing on its way a refusal is reported at once', async () => {
  const { backend, create, update } = await open();
  const made = create('one');
  await backend.release();
  await made;
  const [taken, stale] = [watched(create('two')), watched(update('two', '7'))];
  await settle();
  assert.deepEqual([taken(), stale()], ['AlreadyExists', 'Conflict']);
});

// S-233
test('when the write it rests on fails, the call is tried again', async () => {
  const { backend, create } = await open();
  const lost = watched(create('one'));
  await settle();
  const second = watched(create('two'));
  await settle();
  await backend.fail('no-space');
  assert.deepEqual([lost(), second()], ['InsufficientStorage', 'open']);
  await backend.release();
  assert.equal(second(), 'ok');
});
