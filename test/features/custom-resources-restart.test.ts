import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import { createObjectStore } from '../../packages/apiserver/src/cache/create-object-store.ts';
import { Extensions } from '../../packages/apiserver/src/extensions/definition-controller.ts';
import { builtinResources } from '../../packages/apiserver/src/kinds/builtin/builtin-resources.ts';
import { asCrd, CLEANUP_FINALIZER, conditionOf } from '../../packages/apiserver/src/kinds/custom/crd.ts';
import { setCrdDefaults } from '../../packages/apiserver/src/kinds/custom/crd-strategy.ts';
import { noOutbound } from '../../packages/apiserver/src/outbound/outbound.ts';
import { createResourceCatalog } from '../../packages/apiserver/src/registry/resource-catalog.ts';
import type { Backend } from '../../packages/apiserver/src/storage/backend.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { definition } from '../testkit/custom-definitions.ts';

const PREFIX = 'apiextensions.k8s.io/customresourcedefinitions';
const KEY = { prefix: PREFIX, namespace: '', name: 'things.example.com' };
const THING = { prefix: 'example.com/things', namespace: 'default', name: 't' };

/** A store and a catalog over what a backend holds, with the extensions started. */
async function start(backend: Backend) {
  const stopped = new AbortController();
  const clock = systemClock;
  const store = await createObjectStore({ backend, clock, log: silentLogger, signal: stopped.signal });
  const catalog = createResourceCatalog(builtinResources());
  const extensions = new Extensions({ resources: catalog, connect: noOutbound, log: silentLogger });
  return { store, catalog, extensions, begin: () => extensions.start({ store, clock }) };
}

function stored(more: { readonly deleted?: boolean; readonly status: object }): UnstructuredObject {
  const crd = structuredClone(definition({ name: 'thing' })) as unknown as UnstructuredObject;
  crd.metadata.generation = 1;
  if (more.deleted) {
    crd.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    crd.metadata.deletionGracePeriodSeconds = 0;
    crd.metadata.finalizers = [CLEANUP_FINALIZER];
  }
  crd['status'] = more.status;
  setCrdDefaults(crd);
  return crd;
}

const ESTABLISHED = {
  acceptedNames: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
  storedVersions: ['v1'],
  observedGeneration: 1,
  conditions: [
    { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' },
    {
      type: 'Established',
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    },
  ],
};
const thing = (): UnstructuredObject =>
  ({
    kind: 'Thing',
    apiVersion: 'example.com/v1',
    metadata: { name: 't', namespace: 'default', uid: 'u' },
  }) as UnstructuredObject;

// S-156
test('what was established before is served before anything else happens', async () => {
  const server = await start(createMemoryBackend());
  await server.store.write(KEY, () => ({ type: 'put', object: stored({ status: ESTABLISHED }) }));
  server.begin();
  assert.ok(server.catalog.lookup('example.com', 'v1', 'things'), 'no turn of the event loop lies between');
  server.extensions.stop();
  await server.store.close();
});

test('a definition that was created as the server ended is established at the next start', async () => {
  const server = await start(createMemoryBackend());
  await server.store.write(KEY, () => ({ type: 'put', object: stored({ status: {} }) }));
  const done = new Promise<void>((resolve) => {
    server.store.watch(PREFIX, server.store.revision(), (changes) => {
      const { status } = asCrd(changes.at(-1)!.current.object);
      if (conditionOf(status, 'Established')?.status === 'True') resolve();
    });
  });
  server.begin();
  await done;
  assert.ok(server.catalog.lookup('example.com', 'v1', 'things'));
  server.extensions.stop();
  await server.store.close();
});

// S-156
test('a deletion that was under way is finished at the next start', async () => {
  const server = await start(createMemoryBackend());
  await server.store.write(KEY, () => ({ type: 'put', object: stored({ deleted: true, status: ESTABLISHED }) }));
  await server.store.write(THING, () => ({ type: 'put', object: thing() }));
  const gone = new Promise<void>((resolve) => {
    server.store.watch(PREFIX, server.store.revision(), (changes) => {
      if (changes.some(({ type }) => type === 'DELETED')) resolve();
    });
  });
  server.begin();
  await gone;
  assert.equal(server.store.get(THING), undefined);
  server.extensions.stop();
  await server.store.close();
});
