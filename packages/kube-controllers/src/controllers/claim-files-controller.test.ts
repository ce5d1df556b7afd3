import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import { createInformerSet } from '../../../client/src/informer/informer-set.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createClaimFilesController } from './claim-files-controller.ts';

const TYPES = [NODES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES] as unknown as ResourceType<never>[];
const uid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;

// S-500: The files of a deleted claim go on every node that holds some, once no guest has them open; what is to be
//   retained stays.
test('every node that holds files of a deleted claim is notified, unless its class retains them', async () => {
  const clock = createFakeClock();
  const api = createFakeApi(TYPES);
  const client = createClient(api.handler);
  const informers = createInformerSet(client, { clock });
  const controller = createClaimFilesController({ client, informers, clock, log: silentLogger });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), controller.start(stop.signal)]);
  const pass = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) {
      await clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const putClass = (name: string, reclaimPolicy: string): void =>
    void api.put({ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name }, reclaimPolicy });
  const putClaim = (n: number): void =>
    void api.put({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: `c${n}`, namespace: 'ns', uid: uid(n) },
    });
  const putNode = (name: string, claims: string): void =>
    void api.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, uid: name, annotations: { 'coracle.dev/claims': claims } },
    });
  const listedOn = (name: string): string | undefined =>
    api.get(NODES, '', name)?.metadata.annotations?.['coracle.dev/gone-claims'];

  putClass('deletes', 'Delete');
  putClass('retains', 'Retain');
  for (const n of [1, 2, 3, 4, 5]) putClaim(n);
  putNode('a', [uid(1), `${uid(2)}/deletes`, `${uid(3)}/retains`, `${uid(4)}/lost`, uid(5)].join());
  putNode('b', uid(1));
  putNode('c', uid(5));
  await pass();
  assert.deepEqual(['a', 'b', 'c'].map(listedOn), [undefined, undefined, undefined]);

  for (const n of [1, 2, 3, 4]) api.remove(PERSISTENT_VOLUME_CLAIMS, 'ns', `c${n}`);
  await pass();
  assert.deepEqual(['a', 'b', 'c'].map(listedOn), [`${uid(1)},${uid(2)}`, uid(1), undefined]);

  // The agent has removed them; a node that was away when a claim was deleted hears of it when it is back.
  putNode('b', '');
  putNode('d', `${uid(1)},${uid(5)}`);
  await pass();
  assert.deepEqual(['b', 'd'].map(listedOn), [undefined, uid(1)]);
  // A claim of the same name is another one.
  putClaim(1);
  api.put({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c2', namespace: 'ns', uid: uid(8) },
  });
  putNode('e', `${uid(1)},${uid(2)}/deletes`);
  await pass();
  assert.equal(listedOn('e'), uid(2));
  stop.abort();
  await clock.advance(0);
  await run;
});
