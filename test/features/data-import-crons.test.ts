/** DataVolumes of registries, and DataImportCrons, which import again what has changed. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type RegistryServer, startRegistry, tarOf } from '../../packages/runtime/src/oci/registry-server.fixture.ts';
import { eventually } from '../testkit/eventually.ts';
import { DATA_VOLUMES_PATH, type FillPlane, startFillPlane } from '../testkit/fill-plane.ts';

const MIB = 1024 * 1024;
const CDI = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default';
let plane: FillPlane;
let registry: RegistryServer;
before(async () => {
  plane = await startFillPlane();
  registry = await startRegistry();
});
after(async () => {
  await plane?.stop();
  await registry?.close();
});

const push = async (): Promise<string> =>
  registry.addImage('images/disk', 'latest', [
    await tarOf([{ name: 'disk/disk.img', content: randomBytes(2 * MIB), type: 'file' }]),
  ]);
const storage = { resources: { requests: { storage: '16Mi' } } };
const sourceOf = () => ({ registry: { url: `docker://${registry.host}/images/disk:latest` } });
const succeeded = ({ status }: { status?: { phase?: string } }): boolean => status?.phase === 'Succeeded';

// S-1116: A DataVolume of a registry gets the disk of a container disk; one that is not there is reported as ImagePullFailed.
test('the disk of an image fills a claim', async () => {
  await push();
  await plane.dataVolume('disk', { source: sourceOf() });
  await plane.dataVolumeSettled('disk', succeeded);
  assert.equal(plane.realPool.diskOf(await plane.handleOf('disk')).size, 16 * MIB);
  await plane.dataVolume('missing', { source: { registry: { url: `docker://${registry.host}/images/none:latest` } } });
  const failed = await plane.dataVolumeSettled('missing', ({ status }) => (status?.restartCount ?? 0) >= 1);
  const running = failed['status'].conditions.find((one: { type: string }) => one.type === 'Running');
  assert.equal(running.reason, 'ImagePullFailed');
  // S-1316
  const seen = new Set<string>();
  await plane.dataVolumeSettled('missing', ({ status }) => {
    for (const { type, reason } of status.conditions) if (type === 'Running') seen.add(reason);
    return status.restartCount >= 3;
  });
  assert.ok(seen.has('ImagePullFailed') && !seen.has('Pending'), [...seen].join());
  await plane.admin(`DELETE ${DATA_VOLUMES_PATH}/missing`);
});

const names = async (): Promise<string[]> =>
  (await plane.admin(`GET ${DATA_VOLUMES_PATH}?labelSelector=cdi.kubevirt.io/dataImportCron=golden`)).items.map(
    ({ metadata }: { metadata: { name: string } }) => metadata.name,
  );
const full = (digest: string) => () =>
  plane.settled(
    `${CDI}/dataimportcrons/golden`,
    ({ status }) =>
      status?.lastImportedPVC?.name === nameOf(digest) &&
      status.conditions?.some(
        (one: { type: string; status: string }) => one.type === 'UpToDate' && one.status === 'True',
      ),
  );
const sourceSettled = (name: string, reason: string) =>
  plane.settled(`${CDI}/datasources/${name}`, ({ status }) => status?.conditions?.[0]?.reason === reason);
const nameOf = (digest: string): string => `fedora-${digest.replace('sha256:', '').slice(0, 12)}`;
/** As if its last look had been an hour ago. */
const due = (): Promise<unknown> =>
  plane.admin(`PATCH ${CDI}/dataimportcrons/golden/status`, {
    status: { lastExecutionTimestamp: new Date(Date.now() - 3_600_000).toISOString().replace(/\.\d+/, '') },
  });

// S-1117: A DataImportCron imports an image at once, and again when its digest has changed by the next time of its schedule;
//   its DataSource leads to the newest import that is full, and older ones go beyond importsToKeep.
test('a changed image is imported again', async () => {
  const first = await push();
  await plane.admin(`POST ${CDI}/dataimportcrons`, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: { name: 'golden' },
    spec: {
      schedule: '* * * * *',
      managedDataSource: 'fedora',
      importsToKeep: 1,
      template: { spec: { source: sourceOf(), storage } },
    },
  });
  await full(first)();
  const led = await plane.admin(`GET ${CDI}/datasources/fedora`);
  assert.deepEqual(led.spec.source.pvc, { namespace: 'default', name: nameOf(first) });
  await sourceSettled('fedora', 'Ready');
  const second = await push();
  await due();
  await full(second)();
  const next = await plane.admin(`GET ${CDI}/datasources/fedora`);
  assert.equal(next.spec.source.pvc.name, nameOf(second));
  await eventually(
    'the older import goes',
    async () => JSON.stringify(await names()) === JSON.stringify([nameOf(second)]),
  );
  await plane.dataVolume('of-fedora', { storage: {}, sourceRef: { kind: 'DataSource', name: 'fedora' } });
  await plane.dataVolumeSettled('of-fedora', succeeded);
  const { status } = await sourceSettled('fedora', 'Ready');
  assert.deepEqual(status.source, { pvc: { namespace: 'default', name: nameOf(second) } });
});

// S-1315: A DataSource says in its status what it leads to in the end, and by condition Ready whether that can be copied, with
//   CDI's reasons; it follows what becomes of that.
test('a DataSource is ready when its claim or snapshot is', async () => {
  const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots';
  const lead = (name: string, source: object): Promise<unknown> =>
    plane.admin(`POST ${CDI}/datasources`, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { name },
      spec: { source },
    });
  const at = { namespace: 'default', name: 'later' };
  await lead('of-claim', { pvc: at });
  await lead('of-snapshot', { snapshot: at });
  await lead('of-source', { dataSource: { namespace: 'default', name: 'of-claim' } });
  for (const name of ['of-claim', 'of-snapshot', 'of-source']) await sourceSettled(name, 'NotFound');
  await plane.dataVolume('later', { source: { blank: {} } });
  for (const name of ['of-claim', 'of-source']) {
    const { status } = await sourceSettled(name, 'Ready');
    assert.deepEqual([status.source, status.conditions[0].status], [{ pvc: at }, 'True']);
  }
  await plane.admin(`POST ${SNAPSHOTS}`, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'later' },
    spec: { source: { persistentVolumeClaimName: 'later' } },
  });
  await sourceSettled('of-snapshot', 'Ready');
  await plane.admin(`DELETE ${SNAPSHOTS}/later`);
  await plane.admin(`DELETE ${DATA_VOLUMES_PATH}/later`);
  for (const name of ['of-claim', 'of-snapshot', 'of-source']) await sourceSettled(name, 'NotFound');
});

// S-1117
for (const [what, change, message] of [
  ['no schedule', { schedule: 'now and then' }, /Illegal cron schedule/],
  ['another source', { template: { spec: { source: { blank: {} }, storage } } }, /only images of registries/],
  ['no DataSource', { managedDataSource: '' }, /Managed DataSource is missing/],
] as const)
  test(`a DataImportCron with ${what} is refused`, async () => {
    const spec = {
      schedule: '',
      managedDataSource: 'a',
      template: { spec: { source: { registry: { url: 'docker://a/b' } }, storage } },
      ...change,
    };
    const { status, json } = await plane.ask(`POST ${CDI}/dataimportcrons`, {
      as: ['admin', 'system:masters'],
      body: { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataImportCron', metadata: { name: 'bad' }, spec },
    });
    assert.equal(status, 422, JSON.stringify(json));
    assert.match(json.message, message);
  });
