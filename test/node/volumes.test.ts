/** Volumes, images and the network as a guest sees them, and images and texts that must be refused. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import {
  CONFIG_MAPS,
  EVENTS,
  PERSISTENT_VOLUME_CLAIMS,
  SECRETS,
  STORAGE_CLASSES,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceSpec,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { type RegistryServer, startRegistry, tarOf } from '../../packages/runtime/src/oci/registry-server.fixture.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const MIB = 1024 * 1024;

let board: Board;
let registry: RegistryServer;
let open: RegistryServer;
let outside: string;
before(async () => {
  outside = await mkdtemp(join(tmpdir(), 'coracle-host-'));
  await mkdir(join(outside, 'root'));
  board = await startBoard({
    agent: { hostDiskRoots: [join(outside, 'root')], cpus: 64, memoryBytes: 64 * 1024 * MIB },
  });
  registry = await startRegistry();
  registry.auth = { token: 'pull', basic: 'me:secret' };
  open = await startRegistry();
  await open.addImage('two', 'v1', [
    await tarOf([
      { name: 'disk/a', content: 'a' },
      { name: 'disk/b', content: 'b' },
    ]),
  ]);
  const kubevirt = (await board.client.list(KUBEVIRTS)).items[0]!;
  await board.client.patch(
    KUBEVIRTS,
    { namespace: kubevirt.metadata.namespace ?? '', name: kubevirt.metadata.name ?? '' },
    {
      type: 'merge',
      body: {
        spec: {
          configuration: {
            developerConfiguration: { featureGates: ['HostDisk'] },
            smbios: { manufacturer: 'Acme, Inc=x', product: 'Pro', version: 'v,1' },
          },
        },
      },
    },
  );
});
after(async () => {
  await board?.close();
  await registry?.close();
  await open?.close();
  await rm(outside, { recursive: true, force: true });
});

const isRunning = (vmi: { status?: { phase?: string } }): boolean => vmi.status?.phase === 'Running';
const create = (type: ResourceType<KubeObject>, kind: string, name: string, rest: object): Promise<unknown> =>
  board.client.create(type, { apiVersion: 'v1', kind, metadata: { name, namespace: NAMESPACE }, ...rest });
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const httpGet = (host: string): Promise<string> =>
  new Promise((resolve, reject) => {
    get({ host, port: usualHostPort(8080), path: '/index.txt' }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
const paused = (
  volumes: NonNullable<VirtualMachineInstanceSpec['volumes']>,
  more: Partial<VirtualMachineInstanceSpec> = {},
): VirtualMachineInstanceSpec => ({
  startStrategy: 'Paused',
  terminationGracePeriodSeconds: 0,
  domain: { devices: {}, memory: { guest: '16Mi' } },
  volumes,
  ...more,
});

/** What the guest runs at its first boot: prints what it has, one fact a line. */
const LOOK = `#!/bin/sh
exec >/dev/console 2>&1
echo LOOK-BEGIN
modprobe -q isofs; mkdir -p /m
for d in /sys/block/[vs]*; do n=\${d##*/}; echo "disk $n $(cat $d/size) ro=$(cat $d/ro) [$(cat $d/serial 2>/dev/null || tail -c +5 $d/device/vpd_pg80 2>/dev/null)]"; done
for d in /dev/vd? /dev/sd? /dev/sr?; do
  mount -r -t iso9660 $d /m 2>/dev/null || continue
  find /m -type f | while read -r f; do echo "file $(stat -c '%a %u' "$f") $f=$(head -c 60 "$f" | tr '\\n' '|')"; done
  umount /m
done
cd /sys/class/dmi/id
for f in sys_vendor product_name product_version product_family product_uuid product_serial chassis_vendor chassis_asset_tag; do echo "dmi $f=$(cat $f | tr '\\n' '|')"; done
echo "args $(cat /proc/cmdline)"
echo "mac $(cat /sys/class/net/eth0/address) $(basename $(readlink /sys/class/net/eth0/device/driver))"
echo "route $(ip route | head -1) dns $(cat /etc/resolv.conf)"
printf 'written by the guest' | dd of=/dev/vdb conv=notrunc 2>/dev/null; printf 'QFI\\373' | dd of=/dev/vdc conv=notrunc 2>/dev/null; sync
echo LOOK-END
`;

// S-066
// S-072: Volumes: cloudInitNoCloud from a secret, secret, downwardAPI, serviceAccount, sysprep, persistentVolumeClaim,
//   hostDisk behind its gate and below named directories.
// S-112
test('one guest with every kind of volume, kernel and disks from a registry that wants a token', async () => {
  const guest = await ensureGuest();
  const disk = readFileSync(guest.disk);
  const platform = (architecture: string) => ({ platform: { architecture, os: 'linux' } });
  const digest = registry.addImage('multi', 'amd64', [
    await tarOf([
      { name: 'disk/wrong.img', content: 'not this one' },
      { name: 'other/right.qcow2', content: disk },
      { name: 'boot/vmlinuz', content: readFileSync(guest.kernel) },
      { name: 'boot/initrd', content: readFileSync(guest.initrd) },
    ]),
  ]);
  const manifests = [
    { mediaType: MANIFEST, digest: `sha256:${'0'.repeat(64)}`, size: 1, ...platform('arm64') },
    { mediaType: MANIFEST, digest, size: 1, ...platform('amd64') },
  ];
  registry.addManifest('multi', 'v1', { schemaVersion: 2, mediaType: INDEX, manifests }, INDEX);
  registry.cutBlobs = [MIB];
  const image = `${registry.host}/multi:v1`;
  await create(SECRETS, 'Secret', 'pull', {
    type: 'kubernetes.io/dockerconfigjson',
    data: {
      '.dockerconfigjson': base64(JSON.stringify({ auths: { [registry.host]: { auth: base64('me:secret') } } })),
    },
  });
  await create(SECRETS, 'Secret', 'user', { data: { userdata: base64(LOOK), networkdata: base64('version: 1\n') } });
  await create(SECRETS, 'Secret', 'sec', { data: { password: base64('p,a=ss\nword') } });
  await create(CONFIG_MAPS, 'ConfigMap', 'cm', {
    data: { 'app.conf': 'blue', '-dash': 'd' },
    binaryData: { bin: 'AAE=' },
  });
  await create(CONFIG_MAPS, 'ConfigMap', 'answers', { data: { 'Unattend.XML': '<x/>' } });
  await board.client.create(STORAGE_CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'raw' },
    provisioner: 'local.coracle.dev',
    parameters: { format: 'raw' },
  });
  await create(PERSISTENT_VOLUME_CLAIMS, 'PersistentVolumeClaim', 'claim', {
    spec: { storageClassName: 'raw', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '21Mi' } } },
  });
  const uuid = '5d307ca9-b3ef-428c-8861-06e72d69f223';
  const host = join(outside, 'root', 'new.img');
  const created = await board.createVmi('many', {
    hostname: 'my-host',
    terminationGracePeriodSeconds: 0,
    domain: {
      memory: { guest: '192Mi' },
      chassis: { manufacturer: 'Ch,as=sis', asset: '-a\nb' },
      firmware: {
        uuid,
        serial: '-ser.1',
        kernelBoot: {
          kernelArgs: 'console=ttyS0 x=a,b -- -y',
          container: {
            image,
            imagePullSecret: 'pull',
            kernelPath: '/boot/vmlinuz',
            initrdPath: '/boot/initrd',
          },
        },
      },
      devices: {
        interfaces: [
          { name: 'default', masquerade: {}, model: 'e1000', macAddress: 'DE-AD-00-00-BE-AF', ports: [{ port: 8080 }] },
        ],
        disks: [
          { name: 'seed', disk: { bus: 'virtio' } },
          { name: 'claim', disk: { bus: 'virtio' }, serial: 'claim.1' },
          { name: 'host', disk: { bus: 'virtio' } },
          { name: 'root', disk: { bus: 'virtio' }, serial: 'a+b-c_d' },
          { name: 'sata', disk: { bus: 'sata' }, serial: 'SATA-1' },
          { name: 'scsi', disk: { bus: 'scsi' }, serial: '-scsi', cache: 'none', io: 'native' },
          { name: 'fixed', disk: { bus: 'virtio', readonly: true } },
          { name: 'cm', disk: { bus: 'virtio' } },
          { name: 'sec', cdrom: { bus: 'sata' } },
          { name: 'down', cdrom: { bus: 'scsi' } },
          { name: 'account', disk: { bus: 'scsi' } },
          { name: 'answers', cdrom: { bus: 'sata' } },
        ],
      },
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: [
      { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'user' }, networkDataSecretRef: { name: 'user' } } },
      { name: 'claim', persistentVolumeClaim: { claimName: 'claim' } },
      { name: 'host', hostDisk: { path: host, type: 'DiskOrCreate', capacity: '15Mi' } },
      { name: 'root', containerDisk: { image, imagePullSecret: 'pull', path: '/other/right.qcow2' } },
      { name: 'sata', emptyDisk: { capacity: '10Mi' } },
      { name: 'scsi', emptyDisk: { capacity: '20000000' } },
      { name: 'fixed', emptyDisk: { capacity: '3Mi' } },
      { name: 'cm', configMap: { name: 'cm', volumeLabel: 'CFG' } },
      { name: 'sec', secret: { secretName: 'sec' } },
      {
        name: 'down',
        downwardAPI: {
          fields: [
            { path: 'labels', fieldRef: { fieldPath: "metadata.labels['vm.kubevirt.io/name']" } },
            {
              path: 'sub/cpu',
              resourceFieldRef: { resource: 'requests.cpu', containerName: 'compute', divisor: '1m' },
            },
          ],
        },
      },
      { name: 'account', serviceAccount: { serviceAccountName: 'default' } },
      { name: 'answers', sysprep: { configMap: { name: 'answers' } } },
    ],
  });
  // A second guest boots its disk by the BIOS, from USB, behind another disk, and serves the same port.
  await board.createVmi('usb', {
    terminationGracePeriodSeconds: 0,
    domain: {
      memory: { guest: '160Mi' },
      devices: {
        interfaces: [{ name: 'default', masquerade: {}, ports: [{ port: 8080 }] }],
        disks: [
          { name: 'blank', disk: { bus: 'virtio' } },
          { name: 'root', disk: { bus: 'usb' }, bootOrder: 1 },
        ],
      },
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: [
      { name: 'blank', emptyDisk: { capacity: '1Mi' } },
      { name: 'root', containerDisk: { image: 'localhost/tiny', imagePullPolicy: 'Never' } },
    ],
  });
  const vmi = await board.until('many', 'running', isRunning);
  const seen = collect(await board.connect('many/console?backlog=true'));
  await seen.has('LOOK-END');
  // A login prompt may come in between.
  const text = seen.text().replaceAll('\r', '').replaceAll('my-host login: ', '');
  const lines = text.slice(text.indexOf('LOOK-BEGIN'), text.indexOf('LOOK-END')).split('\n');
  const has = (pattern: RegExp): void =>
    assert.ok(
      lines.some((line) => pattern.test(line)),
      `${pattern} in\n${lines.join('\n')}`,
    );
  for (const pattern of [
    /^disk vdb 43008 ro=0 \[claim\.1\]$/,
    /^disk vdc 30720 ro=0 /,
    /^disk vdd 131072 ro=0 \[a\+b-c_d\]$/,
    /^disk sd. 20480 ro=0 \[ *SATA-1 *\]$/,
    /^disk sd. 38912 ro=0 \[-scsi\]$/,
    /^disk vde 6144 ro=1 /,
    /^file 600 0 \/m\/user-data=/,
    /^file 600 0 \/m\/network-config=version: 1\|$/,
    new RegExp(`^file 600 0 /m/meta-data=.*${uuid}`),
    /^file 644 0 \/m\/app\.conf=blue$/,
    /^file 644 0 \/m\/-dash=d$/,
    /^file 644 0 \/m\/bin=/,
    /^file 644 0 \/m\/password=p,a=ss\|word$/,
    /^file 644 0 \/m\/labels=many$/,
    /^file 644 0 \/m\/sub\/cpu=\d+$/,
    /^file 644 0 \/m\/namespace=default$/,
    /^file 644 0 \/m\/token=eyJ/,
    /^file 644 0 \/m\/Unattend\.XML=<x\/>$/,
    /^dmi sys_vendor=Acme, Inc=x\|?$/,
    /^dmi product_name=Pro\|?$/,
    /^dmi product_version=v,1\|?$/,
    /^dmi product_family=KubeVirt\|?$/,
    new RegExp(`^dmi product_uuid=${uuid}\\|?$`),
    /^dmi product_serial=-ser\.1\|?$/,
    /^dmi chassis_vendor=Ch,as=sis\|?$/,
    /^dmi chassis_asset_tag=-a\|b\|?$/,
    /^args .*x=a,b -- -y$/,
    /^mac de:ad:00:00:be:af e1000$/,
    /^route default via 10\.0\.2\.1 dev eth0.* dns search default\.svc\.cluster\.local .*$/,
    /^nameserver 10\.0\.2\.3$/,
  ])
    has(pattern);
  // The registry was asked once for the layer that both use, and once more for the rest of it.
  const blobs = registry.requests.filter((line) => line.includes('/blobs/') && !/ range=bytes=0-/.test(line));
  assert.ok(blobs.length >= 2 && blobs.length <= 4, blobs.join('\n'));
  assert.equal(blobs.filter((line) => !line.includes('range=')).length <= 2, true, blobs.join('\n'));

  const other = await board.until('usb', 'running', isRunning);
  const [first, second] = [vmi, other].map((v) => hostAddressOf(v.status?.interfaces?.[0]?.ipAddress ?? ''));
  assert.notEqual(first, second);
  await collect(await board.connect('usb/console?backlog=true')).has('login:');
  assert.match(await httpGet(first ?? ''), new RegExp(uuid));
  assert.doesNotMatch(await httpGet(second ?? ''), new RegExp(uuid));

  const claims = join(board.directory, 'node/claims');
  const [uid = ''] = (await readdir(claims)).filter((name) => name !== 'pool.json');
  const [file = ''] = (await readdir(join(claims, uid))).filter((name) => name.endsWith('.raw'));
  assert.match((await readFile(join(claims, uid, file))).subarray(0, 20).toString(), /^written by the guest/);
  assert.equal((await stat(host)).size, 15 * MIB);
  // The guest wrote the magic of qcow2 to its host disk: the next start still takes the file for what it is, raw.
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'many' });
  await eventually('gone', async () => (await board.vmi('many').catch(() => undefined)) === undefined);
  assert.equal((await readFile(host)).readUInt32BE(0), 0x514649fb);
  const hosted = [{ name: 'h', hostDisk: { path: host, type: 'Disk' } }];
  await board.createVmi('again', paused(hosted));
  assert.notEqual((await board.until('again', 'running', isRunning)).metadata.uid, created.metadata.uid);
});

// S-108
// S-402
test('images, paths and texts that cannot be used are refused by name, and nothing outside is touched', async () => {
  const guarded = join(outside, 'guarded');
  await writeFile(guarded, 'untouched');
  await symlink(guarded, join(outside, 'root', 'leaf.img'));
  await symlink(outside, join(outside, 'root', 'out'));
  const qcow = Buffer.alloc(65536);
  qcow.writeUInt32BE(0x514649fb, 0);
  qcow.writeUInt32BE(3, 4);
  qcow.writeUInt32BE(16, 20);
  qcow.writeBigUInt64BE(BigInt(MIB), 24);
  qcow.writeUInt32BE(104, 100);
  const change = (act: (copy: Buffer) => void): Buffer => {
    const copy = Buffer.from(qcow);
    act(copy);
    return copy;
  };
  const images: Record<string, Parameters<typeof tarOf>[0]> = {
    backing: [{ name: 'disk/a', content: change((b) => b.writeBigUInt64BE(200n, 8)) }],
    data: [{ name: 'disk/a', content: change((b) => b.writeBigUInt64BE(4n, 72)) }],
    huge: [{ name: 'disk/a', content: change((b) => b.writeBigUInt64BE(2n ** 60n, 24)) }],
    symlink: [{ name: 'disk/a', type: 'symlink', linkname: guarded }],
    climb: [{ name: `disk/../../../../../../..${guarded}`, content: 'pwned' }],
    device: [{ name: 'disk/a', type: 'character-device' }],
  };
  for (const [name, entries] of Object.entries(images)) open.addImage(name, 'v1', [await tarOf(entries)]);
  const lied = open.addBlob(Buffer.alloc(3000, 1));
  open.lies.set(lied.digest, Buffer.alloc(3000, 2));
  open.addManifest('lie', 'v1', { schemaVersion: 2, layers: [{ mediaType: 'x', ...lied }] }, MANIFEST);

  const disk = (image: string, more = {}) => paused([{ name: 'v', containerDisk: { image, ...more } }]);
  const host = (path: string, more = {}) => paused([{ name: 'v', hostDisk: { path, type: 'Disk', ...more } }]);
  const kernel = (args: string) => {
    const spec = kernelSpec({ startStrategy: 'Paused', terminationGracePeriodSeconds: 0 });
    spec.domain.firmware!.kernelBoot!.kernelArgs = args;
    return spec;
  };
  /** Name -> spec, reason of the event, its text, and what the condition Synchronized says. */
  const cases: Record<
    string,
    readonly [spec: VirtualMachineInstanceSpec, reason: string, message: RegExp, condition?: RegExp]
  > = {
    backing: [disk(`${open.host}/backing:v1`), 'Failed', /names a backing file/, /^(ErrImagePull|ImagePullBackOff)/],
    data: [disk(`${open.host}/data:v1`), 'Failed', /names an external data file/, /data file/],
    huge: [disk(`${open.host}/huge:v1`), 'Failed', /virtual size \d+ is out of range/],
    symlink: [disk(`${open.host}/symlink:v1`), 'Failed', /is a link; it must be a regular file/],
    climb: [disk(`${open.host}/climb:v1`), 'Failed', /holds no disk at \/disk/],
    device: [disk(`${open.host}/device:v1`), 'Failed', /holds no disk at \/disk/],
    two: [disk(`${open.host}/two:v1`), 'Failed', /exactly one file, it holds: \/disk\/a, \/disk\/b/],
    lie: [disk(`${open.host}/lie:v1`), 'Failed', /image .*\/lie:v1: a layer does not match its digest/],
    denied: [disk(`${registry.host}/multi:v1`), 'Failed', /asks for credentials; name a Secret/],
    nosecret: [
      disk(`${registry.host}/multi:v1`, { imagePullSecret: 'nosuch' }),
      'Failed',
      /answered 401.*; pull secret nosuch does not exist/,
      /nosuch/,
    ],
    never: [
      disk(`${open.host}/absent:v1`, { imagePullPolicy: 'Never' }),
      'Failed',
      /not present and its pull policy is Never/,
      /^ErrImageNeverPull/,
    ],
    unnamed: [disk('a b'), 'InvalidImageName', /invalid image reference/, /^InvalidImageName/],
    local: [disk('localhost/absent', { imagePullPolicy: 'Always' }), 'Failed', /coracle image import/],
    hostout: [host(guarded), 'FailedMount', /does not lie below an allowed directory/],
    hostdots: [host(`${outside}/root/../guarded`), 'FailedMount', /does not lie below an allowed directory/],
    hostdir: [host(`${outside}/root/out/guarded`), 'FailedMount', /does not lie below an allowed directory/],
    hostleaf: [host(`${outside}/root/leaf.img`), 'FailedMount', /hostDisk\.path is not a regular file/],
    hostbig: [
      host(`${outside}/root/big.img`, { type: 'DiskOrCreate', capacity: '4Pi' }),
      'FailedMount',
      /could not be made with 4Pi: E/,
    ],
    label: [paused([{ name: 'v', configMap: { name: 'cm', volumeLabel: '-o,x' } }]), 'FailedMount', /volume label/],
    nomap: [paused([{ name: 'v', configMap: { name: 'none' } }]), 'FailedMount', /configmap none: .*not found/],
    nul: [kernel('a\0b'), 'InvalidMachine', /firmware\.kernelBoot\.kernelArgs holds a NUL/],
    long: [kernel('x'.repeat(100_000)), 'InvalidMachine', /kernelArgs is longer than/],
  };
  await create(CONFIG_MAPS, 'ConfigMap', 'cm', { data: { a: 'b' } }).catch(() => undefined);
  for (const [name, [spec]] of Object.entries(cases)) await board.createVmi(`bad-${name}`, spec);
  for (const [name, [, reason, message, condition]] of Object.entries(cases)) {
    let last = '';
    await eventually(`event of ${name}`, async () => {
      const events = (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.filter(
        ({ type, involvedObject: about }) =>
          type === 'Warning' &&
          // What cannot be mounted is reported on the Pod, as by a kubelet.
          (reason === 'FailedMount'
            ? about.kind === 'Pod' && about.name?.startsWith(`virt-launcher-bad-${name}-`)
            : about.name === `bad-${name}`),
      );
      last = JSON.stringify(events.map((event) => [event.reason, event.message]));
      return events.some((event) => event.reason === reason && message.test(event.message ?? ''));
    }).catch((error: Error) => assert.fail(`${error.message}: ${last}`));
    if (condition)
      await board.until(`bad-${name}`, 'condition', (vmi) => {
        const found = vmi.status?.conditions?.find(({ type }) => type === 'Synchronized');
        return condition.test(`${found?.reason}: ${found?.message}`);
      });
    assert.notEqual((await board.vmi(`bad-${name}`)).status?.phase, 'Running');
  }
  assert.equal(await readFile(guarded, 'utf8'), 'untouched');
  assert.deepEqual((await readdir(outside)).sort(), ['guarded', 'root']);
  assert.deepEqual((await readdir(join(outside, 'root'))).sort(), ['leaf.img', 'new.img', 'out']);
});

// S-107
test('started under umask 0000, everything is still closed to others, sockets included', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-umask-'));
  const before = process.umask(0);
  const starting = startProcess(join(directory, 'data'), { nodes: 1 });
  process.umask(before);
  const plane = await starting;
  const admin = adminOf(join(directory, 'data'));
  let pid = 0;
  try {
    await admin.client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'closed', namespace: NAMESPACE },
      spec: paused([{ name: 'v', emptyDisk: { capacity: '1Mi' } }]),
    });
    const key = { namespace: NAMESPACE, name: 'closed' };
    await eventually('running', async () => isRunning(await admin.client.get(VIRTUAL_MACHINE_INSTANCES, key)));
    const open: string[] = [];
    let sockets = 0;
    for (const entry of await readdir(join(directory, 'data'), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      // A file on its way into the place of another may be there by now.
      const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
      if ((mode & 0o077) !== 0) open.push(`${path} ${mode.toString(8)}`);
      if (entry.isSocket()) sockets++;
      if (entry.name === 'qemu.pid') pid = Number(await readFile(path, 'utf8'));
    }
    assert.deepEqual(open, []);
    assert.ok(sockets >= 3 && pid > 0);
  } finally {
    await admin.close();
    await plane.kill('SIGTERM');
    if (pid > 0) process.kill(pid, 'SIGKILL');
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
});
