import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../../apimachinery/src/meta/gvk.ts';
import type { UnstructuredObject } from '../../../../apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES } from '../../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { createInformerSet } from '../../../../client/src/informer/informer-set.ts';
import { VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOTS } from '../../../../cluster-rules/src/volume-snapshot/kinds.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { createLogger } from '../../../../runtime/src/log/log.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import { snapshotStores } from './snapshot-stores.ts';
import { createVolumeStatusesController } from './volume-statuses-controller.ts';

const TYPES = [
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  VOLUME_SNAPSHOT_CLASSES,
  PERSISTENT_VOLUME_CLAIMS,
  STORAGE_CLASSES,
  PODS,
] as unknown as ResourceType<never>[];

const machine = (name: string, volumes: readonly string[]) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: 'ns' },
  spec: { template: { spec: { volumes: volumes.map((name) => ({ name, containerDisk: { image: 'x' } })) } } },
  status: { conditions: [{ type: 'Ready', status: 'False' }] },
});

// S-1680: Which volumes of a machine can be snapshotted is written when the process has nothing else to do, within three seconds.
test('machines that start do not wait for what is said of their volumes', async () => {
  const clock = createFakeClock();
  const api = createFakeApi(TYPES);
  const client = createClient(api.handler);
  const informers = createInformerSet(client, { clock });
  const moments: { readonly ms: number; readonly come: () => void }[] = [];
  const whenIdle = (ms: number, signal: AbortSignal) =>
    new Promise<void>((come) => {
      moments.push({ ms, come });
      signal.addEventListener('abort', () => come());
    });
  const log = createLogger(() => {}, 'info');
  const stores = snapshotStores(informers);
  const controller = createVolumeStatusesController({ client, clock: { ...clock, whenIdle }, log, stores });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), controller.start(stop.signal)]);
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) {
      await clock.advance(10);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const said = (): unknown[] =>
    (
      api.all(VIRTUAL_MACHINES) as (UnstructuredObject & {
        status: { volumeSnapshotStatuses?: { name: string }[] };
      })[]
    ).map(({ status }) => status.volumeSnapshotStatuses?.map(({ name }) => name));

  api.put(machine('one', ['root']));
  api.put(machine('two', ['root']));
  await settle();
  assert.deepEqual([said(), moments.map(({ ms }) => ms)], [[undefined, undefined], [3000]]);

  // What changes meanwhile is in the one write that follows.
  api.put(machine('two', ['root', 'data']));
  await settle();
  moments.shift()!.come();
  await settle();
  assert.deepEqual(said(), [['root'], ['root', 'data']]);
  assert.equal(api.requests.filter((one) => one.startsWith('PATCH')).length, 2);

  stop.abort();
  await run;
});
