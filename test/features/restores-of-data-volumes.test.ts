/** Snapshots and restores of machines whose disks DataVolumes fill, on a server where somebody brought CDI's kind. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import {
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { key, type SavedMachines, savedMachines } from '../testkit/saved-machines.ts';
import { playStorage, type StoragePlayer } from '../testkit/storage-player.ts';

interface DataVolume extends KubeObject {
  spec?: object;
  status?: { phase?: string };
}
const DATA_VOLUMES: ResourceType<DataVolume> = {
  group: 'cdi.kubevirt.io',
  version: 'v1beta1',
  resource: 'datavolumes',
  kind: 'DataVolume',
  namespaced: true,
};
const POPULATED_FOR = 'cdi.kubevirt.io/storage.populatedFor';
const PREPOPULATED = 'cdi.kubevirt.io/storage.prePopulated';
const SPEC = { source: { blank: {} }, storage: { resources: { requests: { storage: '1Gi' } } } };

let cluster: FakeCluster;
let storage: StoragePlayer;
let words: SavedMachines;
let playing = true;
let played: Promise<void>;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,snapshot,garbage-collector-controller,persistentvolumeclaim-protection-controller',
  });
  storage = playStorage(cluster.client);
  words = savedMachines(cluster.client);
  played = playImporter();
});
after(async () => {
  playing = false;
  await played;
  await storage.stop();
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

const found = <T extends KubeObject>(type: ResourceType<T>, name: string): Promise<T | undefined> =>
  cluster.client.get(type, key(name)).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });

/** As CDI: a DataVolume that is said to be filled takes the claim of its name, and is done. */
async function playImporter(): Promise<void> {
  while (playing) {
    for (const one of (await cluster.client.list(DATA_VOLUMES)).items) {
      const { name = '', uid = '', annotations } = one.metadata;
      const claim = await found(PERSISTENT_VOLUME_CLAIMS, name);
      if (
        !['true', name].includes(annotations?.[PREPOPULATED] ?? '') ||
        claim?.metadata.annotations?.[POPULATED_FOR] !== name
      )
        continue;
      if (claim.metadata.ownerReferences?.[0]?.uid === uid) continue;
      // Claims are watched, DataVolumes are looked at: this order spares the wait.
      await settle(name);
      await own(name, uid);
    }
    await new Promise((next) => setTimeout(next, 5));
  }
}
let writes = 0;
const own = (name: string, uid: string) =>
  cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, key(name), {
    type: 'merge',
    body: {
      metadata: {
        annotations: { 'cdi.kubevirt.io/storage.pod.phase': `${++writes}` },
        ownerReferences: [{ apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid, controller: true }],
      },
    },
  });
const settle = (name: string) =>
  cluster.client.patch(
    DATA_VOLUMES,
    key(name),
    { type: 'merge', body: { status: { phase: 'Succeeded' } } },
    { subresource: 'status' },
  );

/** A machine with the template of a DataVolume, as the machine's controller and CDI leave them. */
async function machine(name: string): Promise<VirtualMachine> {
  await words.claim(`${name}-a`);
  const { metadata } = await cluster.client.create(DATA_VOLUMES, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name: `${name}-a`, namespace: 'default' },
    spec: SPEC,
  });
  const owned = await own(`${name}-a`, metadata.uid ?? '');
  assert.equal(owned.metadata.ownerReferences?.length, 1);
  return words.machine(name, [], {
    dataVolumeTemplates: [{ metadata: { name: `${name}-a` }, spec: SPEC }],
    template: {
      spec: {
        domain: { devices: {}, memory: { guest: '64Mi' } },
        volumes: [{ name: 'a', dataVolume: { name: `${name}-a` } }],
      },
    },
  });
}
const templatesOf = ({ spec }: VirtualMachine): unknown[] =>
  (spec.dataVolumeTemplates ?? []).map(({ metadata }) => (metadata as { name?: string } | undefined)?.name);
const volumesOf = ({ spec }: VirtualMachine): unknown[] =>
  (spec.template.spec?.volumes ?? []).map(({ dataVolume }) => dataVolume?.name);

// S-846: Where DataVolumes are served, a machine with templates of them is saved once they are filled; a restore names
//   the templates as its policy says, hands the claims over filled and takes away what was replaced; in place neither
//   the spec nor a name changes.
test('a snapshot waits until the disk of a DataVolume is filled', async () => {
  await machine('slow');
  await words.snapshot('s-slow', 'slow');
  const reported = await words.until(VIRTUAL_MACHINE_SNAPSHOTS, 's-slow', ({ status }) =>
    (status?.conditions ?? []).some(({ reason }) => reason?.includes('volume not populated')),
  );
  assert.ok(
    reported.status?.conditions?.some(
      ({ reason }) => reason === 'Source not locked source default/slow volume not populated: slow-a',
    ),
    JSON.stringify(reported.status?.conditions),
  );
  await settle('slow-a');
  await own('slow-a', (await found(DATA_VOLUMES, 'slow-a'))?.metadata.uid ?? '');
  const { status } = await words.saved('s-slow');
  assert.deepEqual(status?.snapshotVolumes, { includedVolumes: ['a'] });
});

// S-846
test('a restore names the template anew, hands the claim over filled, and takes the old DataVolume away', async () => {
  await machine('web');
  await settle('web-a');
  await words.snapshot('s-web', 'web');
  await words.saved('s-web');
  const { metadata } = await words.restore('r-web', 's-web', 'web');
  const { status } = await words.restored('r-web');
  const name = `restore-${metadata.uid}-a`;
  const now = await words.vm('web');
  assert.deepEqual([templatesOf(now), volumesOf(now)], [[name], [name]]);
  assert.deepEqual(status?.deletedDataVolumes, ['web-a']);
  assert.deepEqual(
    status?.restores?.map(({ persistentVolumeClaim, dataVolumeName }) => [persistentVolumeClaim, dataVolumeName]),
    [[name, name]],
  );
  const filled = await found(DATA_VOLUMES, name);
  assert.equal(filled?.metadata.annotations?.[PREPOPULATED], 'true');
  assert.deepEqual(filled?.spec, SPEC);
  const claim = await found(PERSISTENT_VOLUME_CLAIMS, name);
  assert.equal(claim?.metadata.ownerReferences?.[0]?.uid, filled?.metadata.uid);
  assert.equal(claim?.spec?.dataSource?.kind, 'VolumeSnapshot');
  await eventually('the old one is gone with its claim', async () => {
    const left = [await found(DATA_VOLUMES, 'web-a'), await found(PERSISTENT_VOLUME_CLAIMS, 'web-a')];
    return left.every((each) => each === undefined);
  });
});

// S-846
test('in place the machine that Git describes does not change: templates, volumes and names of disks', async () => {
  await machine('git');
  await settle('git-a');
  await words.snapshot('s-git', 'git');
  await words.saved('s-git');
  const before = await words.vm('git');
  const old = await found(PERSISTENT_VOLUME_CLAIMS, 'git-a');
  await words.restore('r-git', 's-git', 'git', { volumeRestorePolicy: 'InPlace' });
  const { status } = await words.restored('r-git');
  assert.deepEqual((await words.vm('git')).spec, before.spec);
  assert.equal(status?.deletedDataVolumes, undefined);
  const claim = await found(PERSISTENT_VOLUME_CLAIMS, 'git-a');
  assert.notEqual(claim?.metadata.uid, old?.metadata.uid);
  assert.equal(claim?.spec?.dataSource?.kind, 'VolumeSnapshot');
  const filled = await found(DATA_VOLUMES, 'git-a');
  assert.equal(filled?.metadata.annotations?.[PREPOPULATED], 'git-a', 'nobody fills it again');
  await eventually('the DataVolume has its claim', async () => {
    const owned = await found(PERSISTENT_VOLUME_CLAIMS, 'git-a');
    return owned?.metadata.ownerReferences?.[0]?.uid === filled?.metadata.uid;
  });
});

// S-846
test('a new machine of a snapshot has DataVolumes of its own, by the policy of names', async () => {
  await words.restore('r-twin', 's-git', 'twin', { volumeRestorePolicy: 'PrefixTargetName' });
  await words.restored('r-twin');
  const twin = await cluster.client.get(VIRTUAL_MACHINES, key('twin'));
  assert.deepEqual([templatesOf(twin), volumesOf(twin)], [['twin-a'], ['twin-a']]);
  assert.equal((await found(DATA_VOLUMES, 'twin-a'))?.metadata.annotations?.['restore.kubevirt.io/name'], 'r-twin');
  assert.ok(await found(DATA_VOLUMES, 'git-a'), 'that of the source stays');
});
