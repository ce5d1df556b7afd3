/** Restores of machines with dataVolumeTemplates where this program itself fills DataVolumes: real contents in a real pool. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { DATA_VOLUMES_PATH, type FillPlane, startFillPlane } from '../testkit/fill-plane.ts';
import { type SavedMachines, savedMachines } from '../testkit/saved-machines.ts';
import { CLAIMS, type Row, VOLUMES } from '../testkit/storage-plane.ts';

const MIB = 1024 * 1024;
const image = randomBytes(4 * MIB);
let plane: FillPlane;
let words: SavedMachines;
let url: string;
before(async () => {
  plane = await startFillPlane(['vm', 'snapshot']);
  words = savedMachines(await plane.plane.adminClient());
  url = plane.server.serve('/image', image);
  const template = {
    metadata: { name: 'web-root' },
    spec: { source: { http: { url } }, storage: { resources: { requests: { storage: '16Mi' } } } },
  };
  await words.machine('web', [], {
    dataVolumeTemplates: [template],
    template: {
      spec: {
        domain: { devices: {}, memory: { guest: '64Mi' } },
        volumes: [{ name: 'root', dataVolume: { name: 'web-root' } }],
      },
    },
  });
  await filled('web-root');
  await words.snapshot('then', 'web');
  await words.saved('then');
  // Whoever fills a disk from its source again is found out.
  plane.server.serve('/image', randomBytes(4 * MIB));
  plane.server.requests.length = 0;
});
after(() => plane.stop());

const filled = (name: string): Promise<Row> =>
  plane.dataVolumeSettled(name, ({ status }) => status?.phase === 'Succeeded');
const isGone = (path: string): Promise<Row> => plane.settled(path, ({ metadata }) => metadata === undefined);
const nameOf = ({ spec }: VirtualMachine): [template: unknown, volume: unknown] => [
  (spec.dataVolumeTemplates?.[0]?.metadata as { name?: string } | undefined)?.name,
  spec.template.spec?.volumes?.[0]?.dataVolume?.name,
];
/** The DataVolume is full, its claim bound and its own, the content that of the snapshot; nobody asked the source. */
async function holds(name: string, vm: string): Promise<void> {
  const dataVolume = await filled(name);
  const claim = await plane.settled(
    `${CLAIMS}/${name}`,
    ({ status, metadata }) =>
      status?.phase === 'Bound' && metadata.ownerReferences?.[0]?.uid === dataVolume['metadata'].uid,
  );
  assert.equal(claim['spec'].dataSource.kind, 'VolumeSnapshot');
  assert.ok((await plane.contentOf(name)).subarray(0, image.length).equals(image), `${name} has another content`);
  await eventually(`${name} is of ${vm}`, async () => {
    const [owner] = (await plane.admin(`GET ${DATA_VOLUMES_PATH}/${name}`)).metadata.ownerReferences ?? [];
    return owner?.kind === 'VirtualMachine' && owner.name === vm;
  });
  assert.deepEqual(plane.server.requests, []);
}

// S-1405: A restore of a machine with dataVolumeTemplates brings back the content of the snapshot through the DataVolume controller
//   of this program, under new names, in place and as another machine; nothing is fetched again, and what was replaced goes.
// Compat KubeVirt's API, P2, yes: VirtualMachineRestore: DataVolume templates
test('under a new name, and the old disk goes', async () => {
  const { metadata } = await words.restore('anew', 'then', 'web');
  const { status } = await words.restored('anew');
  const name = `restore-${metadata.uid}-root`;
  assert.deepEqual(nameOf(await words.vm('web')), [name, name]);
  assert.deepEqual(status?.deletedDataVolumes, ['web-root']);
  await holds(name, 'web');
  await isGone(`${DATA_VOLUMES_PATH}/web-root`);
  await isGone(`${CLAIMS}/web-root`);
});

// S-1405
test('as another machine, beside the first', async () => {
  await words.restore('second', 'then', 'twin', { volumeRestorePolicy: 'PrefixTargetName' });
  await words.restored('second');
  assert.deepEqual(nameOf(await words.vm('twin')), ['twin-root', 'twin-root']);
  await holds('twin-root', 'twin');
});

// S-1405
test('in place, where neither the spec nor a name changes', async () => {
  await words.snapshot('of-twin', 'twin');
  await words.saved('of-twin');
  const { spec } = await words.vm('twin');
  const { metadata: old } = await plane.admin(`GET ${CLAIMS}/twin-root`);
  await words.restore('in-place', 'of-twin', 'twin', { volumeRestorePolicy: 'InPlace' });
  await words.restored('in-place');
  assert.deepEqual((await words.vm('twin')).spec, spec);
  await holds('twin-root', 'twin');
  assert.notEqual((await plane.admin(`GET ${CLAIMS}/twin-root`)).metadata.uid, old.uid);
});

// S-1405
test('with the machine its restored disks go', async () => {
  const { volumeName } = (await plane.admin(`GET ${CLAIMS}/twin-root`)).spec;
  await plane.admin('DELETE /apis/kubevirt.io/v1/namespaces/default/virtualmachines/twin');
  for (const path of [`${DATA_VOLUMES_PATH}/twin-root`, `${CLAIMS}/twin-root`, `${VOLUMES}/${volumeName}`])
    await isGone(path);
});
