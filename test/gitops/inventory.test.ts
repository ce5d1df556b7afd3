/** The inventory of a sync in several objects, on a real API server: written, grown and shrunk with a kill at every write. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { openInventory, partName } from '../../packages/gitops/src/apply/inventory.ts';
import { entryBytes } from '../../packages/gitops/src/apply/inventory-layout.ts';
import { type ObjectRef, RESOURCE_GROUPS, type ResourceStatus } from '../../packages/gitops/src/kinds/kinds.ts';
import { refId } from '../../packages/gitops/src/plan/object-ref.ts';
import { SyncFailure } from '../../packages/gitops/src/status/sync-error.ts';
import type { SyncIdentity } from '../../packages/gitops/src/status/sync-identity.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

const { signal } = new AbortController();
let board: InProcessControlPlane;
let client: Client;
before(async () => {
  board = await startInProcess();
  client = await board.plane.adminClient();
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } });
});
after(() => board.stop());

let count = 0;
const newSync = (): SyncIdentity => ({ kind: 'RepoSync', namespace: 'team', name: `sync-${count++}` });
const ref = (number: number): ObjectRef => ({
  group: '',
  kind: 'ConfigMap',
  namespace: 'team',
  name: `m${String(number).padStart(5, '0')}`,
});
const range = (from: number, to: number): ObjectRef[] =>
  Array.from({ length: to - from }, (_, index) => ref(from + index));
const names = (refs: readonly ObjectRef[] | undefined): string[] | undefined => refs?.map(refId).sort();
/** Three entries to a part. */
const SMALL = 3 * entryBytes(ref(0));
const showsStatus = (): boolean => true;
/** What is there of a sync, by name. */
const objects = async ({ name }: SyncIdentity) =>
  (
    await client.list(RESOURCE_GROUPS, { namespace: 'team', labelSelector: `configsync.gke.io/sync-name=${name}` })
  ).items.sort((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1));

class Killed extends Error {}
/** A client that is killed instead of making write number `at`; what it wrote before stays. */
function dyingClient(at: number): { client: Client; readonly writes: () => number } {
  let writes = 0;
  const write = <T>(act: () => Promise<T>): Promise<T> => {
    if (writes === at) return Promise.reject(new Killed('killed'));
    writes++;
    return act();
  };
  return {
    writes: () => writes,
    client: {
      ...client,
      get: (...args: Parameters<Client['get']>) => client.get(...args),
      create: (...args: Parameters<Client['create']>) => write(() => client.create(...args)),
      patch: (...args: Parameters<Client['patch']>) => write(() => client.patch(...args)),
      delete: (...args: Parameters<Client['delete']>) => write(() => client.delete(...args)),
    } as Client,
  };
}

// S-952
test('the first object has upstream’s name and label, the others neither; it names them, and reports lie beside their entries', async () => {
  const sync = newSync();
  const inventory = openInventory({ client, sync, showsStatus, maxBytes: SMALL });
  assert.equal(await inventory.read(signal), undefined);
  await inventory.write(range(0, 8), signal);
  const parts = await objects(sync);
  assert.deepEqual(
    parts.map(({ metadata, spec }) => [metadata.name, spec?.resources?.length]),
    [1, 2, 3].map((number) => [partName(sync, number), number === 3 ? 2 : 3]),
  );
  assert.deepEqual(
    parts.map(({ metadata }) => metadata.labels?.['cli-utils.sigs.k8s.io/inventory-id']),
    [`team_${sync.name}`, undefined, undefined],
  );
  assert.deepEqual(
    parts[0]!.spec?.subgroups?.map(({ name }) => name),
    [partName(sync, 2), partName(sync, 3)],
  );
  const status = (one: ObjectRef): ResourceStatus => ({
    ...one,
    status: one.name === 'm00007' ? 'Failed' : 'Current',
    strategy: 'Apply',
    actuation: 'Succeeded',
    reconcile: 'Succeeded',
  });
  await inventory.report(range(0, 8).map(status), signal);
  const reported = await objects(sync);
  assert.deepEqual(
    reported.map(({ status }) => status?.resourceStatuses?.length),
    [3, 3, 2],
  );
  assert.deepEqual(
    reported.map(({ status }) => status?.conditions?.find(({ type }) => type === 'Stalled')?.status),
    ['True', 'False', 'True'],
  );
  await inventory.report(range(0, 8).map(status), signal);
  await inventory.write(range(0, 8), signal);
  assert.deepEqual(await objects(sync), reported, 'what is so already is not written');
  await inventory.write([ref(0), ref(7)], signal);
  const [only, ...others] = await objects(sync);
  assert.deepEqual([only?.spec?.resources?.length, only?.spec?.subgroups, others.length], [2, undefined, 0]);
  await inventory.remove(signal);
  assert.deepEqual(await objects(sync), []);
});

// S-991: An attempt reads each object of its inventory once, and what somebody else writes of it meanwhile stays.
test('an attempt reads each object once; what somebody else writes meanwhile is found out and stays', async () => {
  const sync = newSync();
  const open = (client: Client) => openInventory({ client, sync, showsStatus, maxBytes: SMALL });
  await open(client).write(range(0, 5), signal);
  let reads = 0;
  const get = (...args: Parameters<Client['get']>) => {
    reads++;
    return client.get(...args);
  };
  const inventory = open({ ...client, get } as Client);
  await inventory.read(signal);
  await inventory.write(range(0, 6), signal);
  await inventory.write(range(1, 6), signal);
  await inventory.report([{ ...ref(1), status: 'Current' }], signal);
  assert.equal(reads, 2);

  await inventory.read(signal);
  const key = { namespace: 'team', name: sync.name };
  await client.patch(RESOURCE_GROUPS, key, { type: 'merge', body: { metadata: { labels: { other: 'one' } } } });
  await inventory.write(range(2, 6), signal);
  await client.patch(RESOURCE_GROUPS, key, { type: 'merge', body: { metadata: { labels: { another: 'one' } } } });
  await inventory.report([{ ...ref(2), status: 'Failed' }], signal);
  const [first] = await objects(sync);
  assert.equal(first?.metadata.labels?.['other'], 'one');
  assert.equal(first?.metadata.labels?.['another'], 'one');
  assert.deepEqual(
    first?.status?.resourceStatuses?.map(({ name }) => name),
    [ref(2).name],
  );
  assert.equal(first?.status?.observedGeneration, first?.metadata.generation);
  assert.deepEqual(names(await inventory.read(signal)), names(range(2, 6)));
});

// S-952
test('its first object is deleted by hand: the others are taken up again, and none is left behind', async () => {
  const sync = newSync();
  const inventory = openInventory({ client, sync, showsStatus, maxBytes: SMALL });
  await inventory.write(range(0, 8), signal);
  await client.delete(RESOURCE_GROUPS, { namespace: 'team', name: sync.name });
  assert.equal(await inventory.read(signal), undefined);
  await inventory.write(range(0, 8), signal);
  assert.deepEqual(names(await inventory.read(signal)), names(range(0, 8)));
  await client.delete(RESOURCE_GROUPS, { namespace: 'team', name: sync.name });
  await inventory.remove(signal);
  assert.deepEqual(await objects(sync), []);
});

// S-952
test('20,000 objects, each with its status: every object of it is one that the server takes', async () => {
  const sync = newSync();
  const inventory = openInventory({ client, sync, showsStatus });
  const refs = range(0, 20_000);
  await inventory.write(refs, signal);
  await inventory.report(
    refs.map((one) => ({
      ...one,
      status: 'InProgress',
      sourceHash: '0123456',
      strategy: 'Apply',
      actuation: 'Succeeded',
      reconcile: 'Succeeded',
    })),
    signal,
  );
  const parts = await objects(sync);
  assert.ok(parts.length > 2);
  for (const part of parts)
    assert.ok(JSON.stringify(part).length < 1.5 * 1024 * 1024, `${JSON.stringify(part).length}`);
  assert.equal((await inventory.read(signal))?.length, 20_000);
});

// S-952
test('more than all parts may hold is refused, with a sentence, and nothing is written', async () => {
  const sync = newSync();
  const inventory = openInventory({ client, sync, showsStatus, maxBytes: entryBytes(ref(0)) });
  await assert.rejects(inventory.write(range(0, 65), signal), (error: unknown) => {
    assert.ok(error instanceof SyncFailure);
    assert.deepEqual(
      error.errors.map(({ code }) => code),
      ['2009'],
    );
    assert.match(error.errors[0]!.errorMessage, /too large: 65 ResourceGroups, of 64 at most\. Split the source/);
    return true;
  });
  assert.deepEqual(await objects(sync), []);
});

// S-952
test('killed at any write, whatever changes: no entry is lost whose object may be there, and the next run makes it right', async () => {
  const set = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 16 });
  await fc.assert(
    fc.asyncProperty(set, set, async (first, second) => {
      for (let at = 0; ; at++) {
        const sync = newSync();
        const whole = openInventory({ client, sync, showsStatus, maxBytes: SMALL });
        await whole.write(first.map(ref), signal);
        const dying = dyingClient(at);
        const killed = openInventory({ client: dying.client, sync, showsStatus, maxBytes: SMALL });
        const outcome = await killed.write(second.map(ref), signal).then(
          () => 'whole',
          (error: unknown) => {
            if (!(error instanceof Killed)) throw error;
            return 'killed';
          },
        );
        // What stays is named at each moment: its object is there.
        const named = new Set(names(await whole.read(signal)));
        for (const number of second)
          if (first.includes(number)) assert.ok(named.has(refId(ref(number))), `${number} is lost at write ${at}`);
        await whole.write(second.map(ref), signal);
        assert.deepEqual(names(await whole.read(signal)), names(second.map(ref)));
        const parts = await objects(sync);
        assert.equal(parts.length, Math.max(Math.ceil(second.length / 3), 1));
        // The end is killed at each write as well: what is left is found again.
        for (let end = 0; end < parts.length; end++) {
          const ending = openInventory({ client: dyingClient(1).client, sync, showsStatus, maxBytes: SMALL });
          await ending.remove(signal).catch((error: unknown) => assert.ok(error instanceof Killed));
        }
        await whole.remove(signal);
        assert.deepEqual(await objects(sync), []);
        if (outcome === 'whole') return;
      }
    }),
    { numRuns: 4 },
  );
});
