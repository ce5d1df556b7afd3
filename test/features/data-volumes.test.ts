/** DataVolumes on a server with a real pool: from definition to a claim that is full. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FillPlane, startFillPlane } from '../testkit/fill-plane.ts';

const MIB = 1024 * 1024;
let plane: FillPlane;
before(async () => {
  plane = await startFillPlane();
});
after(() => plane?.stop());

const succeeded = ({ status }: { status?: { phase?: string } }): boolean => status?.phase === 'Succeeded';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';

const contentOf = (name: string): Promise<Buffer> => plane.contentOf(name);

const image = Buffer.concat([randomBytes(3 * MIB), Buffer.alloc(2 * MIB), randomBytes(MIB)]);
const isImage = (content: Buffer): boolean =>
  content.length === 16 * MIB && content.subarray(0, image.length).equals(image);

// S-1100: A DataVolume of a web server's image gets a claim of its name, which is bound once its content is whole: raw,
//   packed by gzip, xz or zstd, or qcow2, vmdk or vdi, recognised by their own bytes.
test('an image of a web server fills a claim', async () => {
  const digest = createHash('sha256').update(image).digest('hex');
  const url = plane.server.serve('/raw.img', image);
  await plane.dataVolume('raw', { source: { http: { url, checksum: `sha256:${digest}` } } });
  const done = await plane.dataVolumeSettled('raw', succeeded);
  assert.equal(done['status'].progress, '100.0%');
  assert.equal(done['status'].claimName, 'raw');
  const conditions = Object.fromEntries(
    done['status'].conditions.map((one: { type: string; status: string; reason?: string }) => [
      one.type,
      `${one.status} ${one.reason ?? ''}`,
    ]),
  );
  assert.deepEqual(conditions, { Bound: 'True Bound', Ready: 'True ', Running: 'False Completed' });
  const claim = await plane.admin(`GET ${CLAIMS}/raw`);
  assert.equal(claim.status.phase, 'Bound');
  assert.deepEqual(claim.spec.accessModes, ['ReadWriteMany']);
  assert.equal(claim.spec.volumeMode, 'Block');
  assert.equal(claim.metadata.ownerReferences[0].kind, 'DataVolume');
  assert.ok(isImage(await contentOf('raw')));
  await plane.reported('raw', 'ImportSucceeded', /Successfully imported into PVC raw/);
});

const tool = async (...argv: string[]): Promise<void> => {
  const result = await run(argv, { signal: NEVER, timeoutMs: 60_000 });
  assert.ok(result.ok, result.ok ? '' : result.message);
};
const at = (name: string): string => join(plane.directory, name);

const FORMS: readonly (readonly [string, () => Promise<Uint8Array>])[] = [
  ['gz', async () => gzipSync(image)],
  ['zst', async () => zstdCompressSync(image)],
  [
    'xz',
    async () => {
      await writeFile(at('plain'), image);
      await tool('xz', '-0', '-f', '-k', at('plain'));
      return readFile(at('plain.xz'));
    },
  ],
  ...(['qcow2', 'vmdk', 'vdi'] as const).map(
    (format) =>
      [
        format,
        async () => {
          await writeFile(at('plain.raw'), image);
          await tool('qemu-img', 'convert', '-f', 'raw', '-O', format, at('plain.raw'), at(`plain.${format}`));
          return readFile(at(`plain.${format}`));
        },
      ] as const,
  ),
  [
    'qcow2.gz',
    async () => {
      await writeFile(at('inner.raw'), image);
      await tool('qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', at('inner.raw'), at('inner.qcow2'));
      return gzipSync(await readFile(at('inner.qcow2')));
    },
  ],
];
// S-1100
for (const [form, make] of FORMS)
  test(`an image as ${form} fills a claim`, async () => {
    const name = `as-${form.replace('.', '-')}`;
    const url = plane.server.serve(`/${name}`, await make());
    await plane.dataVolume(name, { source: { http: { url } } });
    await plane.dataVolumeSettled(name, succeeded);
    assert.ok(isImage(await contentOf(name)), 'the guest reads the image');
  });

// S-1504: Where no claim can be made for a DataVolume, an event and a condition with the reason `ErrClaimNotValid` say why.
test('a DataVolume of a class of which nothing is known', async () => {
  const resources = { requests: { storage: '16Mi' } };
  await plane.dataVolume('lost', { source: { upload: {} }, storage: { resources, storageClassName: 'nobody' } });
  await plane.reported('lost', 'ErrClaimNotValid', /no accessMode specified in StorageProfile nobody/);
  const lost = await plane.dataVolumeSettled('lost', ({ status }) => status?.conditions?.length > 0);
  const bound = lost['status'].conditions.find(({ type }: { type: string }) => type === 'Bound');
  assert.deepEqual([bound.status, bound.reason], ['Unknown', 'ErrClaimNotValid']);
});

// S-1101: A blank DataVolume is an empty claim; one of another claim, a VolumeSnapshot or a DataSource is a copy that shares
//   what it can, and may leave its size to the source.
test('blank, of a claim, of a DataSource', async () => {
  await plane.dataVolume('empty', { source: { blank: {} } });
  await plane.dataVolumeSettled('empty', succeeded);
  assert.ok((await contentOf('empty')).equals(Buffer.alloc(16 * MIB)));
  const url = plane.server.serve('/original', image);
  await plane.dataVolume('original', { source: { http: { url } } });
  await plane.dataVolumeSettled('original', succeeded);
  await plane.dataVolume('copy', { storage: {}, source: { pvc: { namespace: 'default', name: 'original' } } });
  await plane.dataVolumeSettled('copy', succeeded);
  assert.ok(isImage(await contentOf('copy')));
  const { backing } = plane.realPool.diskOf(await plane.handleOf('copy'));
  assert.ok(backing, 'nothing was copied');
  await plane.admin('POST /apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources', {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: { name: 'golden' },
    spec: { source: { pvc: { namespace: 'default', name: 'original' } } },
  });
  await plane.dataVolume('of-golden', { storage: {}, sourceRef: { kind: 'DataSource', name: 'golden' } });
  await plane.dataVolumeSettled('of-golden', succeeded);
  assert.ok(isImage(await contentOf('of-golden')));
  await plane.reported('of-golden', 'CloneSucceeded');
});

// S-1101
test('of a VolumeSnapshot, which may go while the copy stays', async () => {
  const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots';
  await plane.dataVolume('saved', { source: { http: { url: plane.server.serve('/saved', image) } } });
  await plane.dataVolumeSettled('saved', succeeded);
  // One that waits for its snapshot says so.
  await plane.dataVolume('of-saved', { storage: {}, source: { snapshot: { namespace: 'default', name: 'then' } } });
  await plane.reported('of-saved', 'Pending', /VolumeSnapshot default\/then does not exist/);
  await plane.admin(`POST ${SNAPSHOTS}`, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'then' },
    spec: { source: { persistentVolumeClaimName: 'saved' } },
  });
  await plane.dataVolumeSettled('of-saved', succeeded);
  assert.equal((await plane.admin(`GET ${CLAIMS}/of-saved`)).status.capacity.storage, '16Mi');
  await plane.admin('POST /apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources', {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: { name: 'snapshot' },
    spec: { source: { snapshot: { namespace: 'default', name: 'then' } } },
  });
  const larger = { resources: { requests: { storage: '32Mi' } } };
  await plane.dataVolume('larger', { storage: larger, sourceRef: { kind: 'DataSource', name: 'snapshot' } });
  await plane.dataVolumeSettled('larger', succeeded);
  await plane.admin(`DELETE ${SNAPSHOTS}/then`);
  await plane.settled(`${SNAPSHOTS}/then`, ({ metadata }) => metadata === undefined);
  await plane.admin('DELETE /apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes/saved');
  await plane.settled(`${CLAIMS}/saved`, ({ metadata }) => metadata === undefined);
  assert.ok(isImage(await contentOf('of-saved')));
  const large = await contentOf('larger');
  assert.equal(large.length, 32 * MIB);
  assert.ok(large.subarray(0, image.length).equals(image));
});

// S-1102: What cannot be filled says why in the condition Running and in an event, is tried again later, and leaves nothing
//   of a failed attempt; the claim stays unbound meanwhile.
test('a wrong checksum is reported, tried again, and right once the server is', async () => {
  const url = plane.server.serve('/wrong', randomBytes(MIB));
  const digest = createHash('sha256').update(image).digest('hex');
  await plane.dataVolume('wrong', { source: { http: { url, checksum: `sha256:${digest}` } } });
  const failed = await plane.dataVolumeSettled('wrong', ({ status }) => (status?.restartCount ?? 0) >= 1);
  const running = failed['status'].conditions.find((one: { type: string }) => one.type === 'Running');
  assert.equal(running.reason, 'Error');
  assert.match(running.message, /the checksum does not match/);
  assert.notEqual((await plane.admin(`GET ${CLAIMS}/wrong`)).status.phase, 'Bound');
  await plane.reported('wrong', 'ImportFailed', /Failed to import into PVC wrong/);
  plane.server.serve('/wrong', image);
  await plane.dataVolumeSettled('wrong', succeeded);
  assert.ok(isImage(await contentOf('wrong')));
});

// S-1103: A download that breaks off goes on where it stopped, if the server still has the same bytes.
test('a download that broke off goes on', async () => {
  const url = plane.server.serve('/cut', image);
  plane.server.cut.push(2 * MIB);
  await plane.dataVolume('cut', { source: { http: { url } } });
  await plane.dataVolumeSettled('cut', succeeded);
  assert.ok(isImage(await contentOf('cut')));
  assert.ok(
    plane.server.requests.some((line) => /^GET \/cut bytes=\d+-$/.test(line)),
    plane.server.requests.join('\n'),
  );
});

// S-1652: While a DataVolume is filled its status says how far it is, in percent, and its condition Running how much has come,
//   how fast, and how long the rest takes.
// S-1104: What is being made for a DataVolume that is deleted goes with it, from the pool as well.
test('a DataVolume that is deleted while it is filled leaves nothing', async () => {
  const url = plane.server.serve('/slow', image);
  plane.server.pauseMs = 300;
  await plane.dataVolume('slow', { source: { http: { url } } });
  const conditionOf = (status: { conditions?: { type: string; message?: string }[] } | undefined): string =>
    status?.conditions?.find(({ type }) => type === 'Running')?.message ?? '';
  const busy = await plane.dataVolumeSettled('slow', ({ status }) => /iB\/s/.test(conditionOf(status)));
  const { phase, progress } = busy['status'];
  assert.equal(phase, 'ImportInProgress');
  assert.match(progress, /^[1-9]\d?\.\d+%$/);
  assert.match(conditionOf(busy['status']), /^download: \d+\.\d [KM]iB of 6\.0 MiB, [\d.]+ [KM]iB\/s, \d+s left$/);
  assert.ok((await plane.realPool.fills()).includes(await plane.handleOf('slow')));
  await plane.admin('DELETE /apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes/slow');
  await plane.settled(`${CLAIMS}/slow`, (object) => object['metadata'] === undefined);
  await eventually('the pool holds nothing of it', async () => (await plane.realPool.fills()).length === 0);
  plane.server.pauseMs = 0;
});

// S-1105: A class that waits for a first Pod makes the DataVolume wait for it too (PendingPopulation), unless it asks to be
//   bound at once.
test('a class that waits for a first Pod', async () => {
  const storage = { storageClassName: 'local-wait', resources: { requests: { storage: '16Mi' } } };
  await plane.dataVolume('waits', { source: { blank: {} }, storage });
  await plane.dataVolumeSettled('waits', ({ status }) => status?.phase === 'PendingPopulation');
  await plane.dataVolume(
    'at-once',
    { source: { blank: {} }, storage },
    { annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': '' } },
  );
  await plane.dataVolumeSettled('at-once', succeeded);
  await plane.admin(`PATCH ${CLAIMS}/waits`, {
    metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } },
  });
  // The node of the test names the pool in memory: what matters is that the choice is acted on.
  await plane.dataVolumeSettled('waits', ({ status }) => status?.phase !== 'PendingPopulation');
});

// S-1106: Each storage class has a StorageProfile, which says what claims of it are where a DataVolume does not.
test('every class has a profile', async () => {
  const profile = await plane.settled('/apis/cdi.kubevirt.io/v1beta1/storageprofiles/local', ({ status }) => !!status);
  assert.equal(profile['status'].provisioner, 'local.coracle.dev');
  assert.deepEqual(profile['status'].claimPropertySets[0], { accessModes: ['ReadWriteMany'], volumeMode: 'Block' });
});
