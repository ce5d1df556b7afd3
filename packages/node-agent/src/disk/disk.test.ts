import assert from 'node:assert/strict';
import { chmod, lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { partly } from '../../../../test/testkit/partly.ts';
import type { Pod } from '../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../../kubevirt/src/kinds/kinds.ts';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { hostDisk } from './blank-volumes.ts';
import { type CloudInitData, configDriveFiles, noCloudFiles } from './cloud-init-volume.ts';
import { credentialsOf } from './image-volumes.ts';
import { createIso, isSafePath } from './iso.ts';
import { podField, resourceField } from './object-volumes.ts';
import { createRawImage, rawImageSize } from './raw-image.ts';
import { openVmDirectory, vmDirectoryOf } from './vm-directory.ts';
import type { VolumeRequest } from './volume-request.ts';

const UID = '11111111-2222-4333-8444-555555555555';
const signal = new AbortController().signal;
let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coracle-disk-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const data = (change: Partial<CloudInitData> = {}): CloudInitData => ({
  instanceId: UID,
  name: 'vm',
  namespace: 'ns',
  hostname: 'host',
  publicKeys: [],
  userData: new TextEncoder().encode('#cloud-config\n'),
  devices: [],
  ...change,
});

test('NoCloud and ConfigDrive have a constant list of files, and texts come back unchanged from their JSON', () => {
  fc.assert(
    fc.property(fc.string(), fc.array(fc.string(), { maxLength: 3 }), (hostname, publicKeys) => {
      const noCloud = noCloudFiles(data({ hostname, publicKeys, networkData: new Uint8Array(1) }));
      assert.deepEqual([...noCloud.keys()], ['meta-data', 'user-data', 'network-config']);
      const meta = JSON.parse(String(noCloud.get('meta-data'))) as Record<string, unknown>;
      assert.equal(meta['local-hostname'], hostname);
      assert.equal(meta['instance-id'], UID);
      assert.deepEqual(Object.values((meta['public-keys'] ?? {}) as object), publicKeys);
      const drive = configDriveFiles(data({ hostname }));
      assert.deepEqual([...drive.keys()], ['openstack/latest/meta_data.json', 'openstack/latest/user_data']);
      const metaData = JSON.parse(String(drive.get('openstack/latest/meta_data.json'))) as Record<string, unknown>;
      assert.deepEqual(
        [metaData['instance_id'], metaData['uuid'], metaData['local_hostname']],
        ['vm.ns', UID, hostname],
      );
    }),
  );
});

test('file names that climb, and labels that are none, make no image', async () => {
  for (const name of ['..', '.', 'a/../b', '/a', 'a//b', '', 'a\0b', 'a b', 'a\nb'])
    assert.equal(isSafePath(name), false, name);
  assert.equal(isSafePath('openstack/latest/x_1.json'), true);
  const make = (path: string, label: string): Promise<void> =>
    createIso('x.iso', { directory: dir, label, files: new Map([[path, 'x']]), clock: systemClock, signal });
  await assert.rejects(make('../../escape', 'ok'), /cannot be a file name/);
  await assert.rejects(make('fine', '-o/etc/passwd'), /volume label/);
  assert.deepEqual(await readdir(dir), []);
  await make('fine', 'cidata');
  assert.deepEqual(await readdir(dir), ['x.iso']);
});

test('directories are named by UID only, and must be ours alone', async () => {
  for (const bad of ['..', '', 'a', `${UID}/..`, 'AAAAAAAA-2222-4333-8444-555555555555', `../${UID}`])
    assert.throws(() => vmDirectoryOf(dir, bad));
  const made = await openVmDirectory(dir, UID);
  await chmod(made, 0o755);
  await assert.rejects(openVmDirectory(dir, UID), /not a directory owned by this user/);
  await rm(made, { recursive: true });
  await symlink('/etc', made);
  await assert.rejects(openVmDirectory(dir, UID), /not a directory owned by this user/);
});

// S-072
test('hostDisk stays below its roots, with links resolved, and is off without them', async () => {
  const root = join(dir, 'root');
  await mkdir(root);
  await writeFile(join(root, 'good.img'), Buffer.alloc(1024));
  await writeFile(join(dir, 'secret.img'), Buffer.alloc(1024));
  await symlink(dir, join(root, 'out'));
  await symlink(join(dir, 'secret.img'), join(root, 'leaf.img'));
  const vmi = { metadata: {}, spec: {} } as unknown as VirtualMachineInstance;
  const open = (path: string, roots = [root], type = 'Disk', capacity?: string) =>
    hostDisk({ vmi, hostDiskRoots: roots } as unknown as VolumeRequest, {
      name: 'v',
      hostDisk: { path, type, ...(capacity !== undefined && { capacity }) },
    });
  assert.deepEqual(await open(join(root, 'good.img')), { file: join(root, 'good.img'), format: 'raw' });
  await assert.rejects(open(join(root, 'good.img'), []), /switched off/);
  for (const path of [
    'good.img',
    `${root}/../secret.img`,
    `${root}/out/secret.img`,
    `${root}/..`,
    root,
    `${root}/a\0b`,
  ])
    await assert.rejects(open(path), /hostDisk.path/, path);
  await assert.rejects(open(join(root, 'leaf.img')), /not a regular file/);
  await assert.rejects(open(join(root, 'new.img')), /does not exist/);
  await assert.rejects(open(join(root, 'new.img'), [root], 'DiskOrCreate'), /capacity/);
  assert.equal((await open(join(root, 'new.img'), [root], 'DiskOrCreate', '2Mi')).format, 'raw');
  // A guest may write the header of another format, naming other files: it is never looked at.
  await writeFile(join(root, 'new.img'), Buffer.concat([Buffer.from([0x51, 0x46, 0x49, 0xfb]), Buffer.alloc(1020)]));
  assert.equal((await open(join(root, 'new.img'))).format, 'raw');
  await assert.rejects(open(join(root, 'big.img'), [root], 'DiskOrCreate', '4Pi'), /could not be made with 4Pi/);
  assert.deepEqual((await readdir(root)).sort(), ['good.img', 'leaf.img', 'new.img', 'out']);
});

test('credentials are those of the registry of the image, and of no other', () => {
  const secret = (value: unknown): Map<string, Uint8Array> =>
    new Map([['.dockerconfigjson', Buffer.from(JSON.stringify(value))]]);
  const auths = {
    'https://quay.io/v1/': { username: 'q', password: 'p' },
    'docker.io': { auth: Buffer.from('d:pa:ss').toString('base64') },
    __proto__: { username: 'evil', password: 'x' },
  };
  assert.deepEqual(credentialsOf(secret({ auths }), 'quay.io/a/b'), { username: 'q', password: 'p' });
  assert.deepEqual(credentialsOf(secret({ auths }), 'alpine'), { username: 'd', password: 'pa:ss' });
  assert.equal(credentialsOf(secret({ auths }), 'quay.io.example.com/a'), undefined);
  for (const broken of [null, [], { auths: null }, { auths: { 'quay.io': null } }])
    assert.equal(credentialsOf(secret(broken), 'quay.io/a'), undefined);
});

test('resourceField() rounds up to the divisor, and has no value for a limit that is not set', () => {
  const resources = { requests: { cpu: '150m', memory: '266304Ki' }, limits: { memory: '1Gi' } };
  const pod = partly<Pod>({ metadata: {}, spec: { containers: [{ name: 'compute', resources }] } });
  const cases: readonly [object, string | undefined][] = [
    [{ resource: 'requests.cpu' }, '1'],
    [{ resource: 'requests.cpu', divisor: '1m' }, '150'],
    [{ resource: 'requests.cpu', divisor: '0' }, '1'],
    [{ resource: 'requests.memory' }, String(266304 * 1024)],
    [{ resource: 'requests.memory', divisor: '1Mi' }, '261'],
    [{ resource: 'limits.memory', divisor: '1Gi' }, '1'],
    [{ resource: 'requests.ephemeral-storage' }, '0'],
    [{ resource: 'limits.cpu' }, undefined],
    [{ resource: 'limits.constructor' }, undefined],
    [{ resource: 'cpu' }, undefined],
    [{}, undefined],
  ];
  for (const [ref, value] of cases)
    assert.equal(resourceField(pod, { containerName: 'compute', ...ref }), value, JSON.stringify(ref));
  assert.equal(resourceField(pod, { containerName: 'other', resource: 'requests.cpu' }), undefined);
});

// S-144: Raw images are made whole or not at all, and are never probed for a format, whatever a guest writes into them.
test('raw images appear whole or not at all, once, and whatever a guest writes into them they stay raw', async () => {
  const file = join(dir, 'disk.img');
  assert.equal(await rawImageSize(file), undefined);
  await Promise.all([1, 2, 3].map((n) => createRawImage(file, n * 1024 * 1024)));
  const size = await rawImageSize(file);
  assert.equal((size ?? 0) % (1024 * 1024), 0);
  await assert.rejects(createRawImage(join(dir, 'huge.img'), Number.MAX_SAFE_INTEGER), /E(FBIG|INVAL|NOSPC)/);
  assert.deepEqual(await readdir(dir), ['disk.img']);
  assert.equal((await lstat(file)).mode & 0o777, 0o600);
  await writeFile(join(dir, 'zero.img'), '');
  await symlink(file, join(dir, 'link.img'));
  await assert.rejects(rawImageSize(join(dir, 'zero.img')), /is empty/);
  await assert.rejects(rawImageSize(join(dir, 'link.img')), /not a regular file/);
  await assert.rejects(rawImageSize(dir), /not a regular file/);
  await writeFile(join(dir, 'odd.img'), 'QFI\xfb and so on');
  assert.equal(await rawImageSize(join(dir, 'odd.img')), 512);
});

test('podField() answers the downward API and nothing inherited', () => {
  const pod = partly<Pod>({ metadata: { name: 'p', labels: { a: '1', b: '"' } }, spec: { containers: [] } });
  assert.equal(podField(pod, 'metadata.name'), 'p');
  assert.equal(podField(pod, "metadata.labels['a']"), '1');
  assert.equal(podField(pod, "metadata.labels['constructor']"), '');
  assert.equal(podField(pod, 'metadata.labels'), 'a="1"\nb="\\""');
  assert.equal(podField(pod, 'spec.secret'), undefined);
});
