/** Exports as `virtctl vmexport` downloads them: its requests, with real bytes, from a real pool. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { request as https, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { parseAllDocuments } from 'yaml';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { isProgram } from '../../packages/runtime/src/process/program.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FillPlane, startFillPlane } from '../testkit/fill-plane.ts';
import type { Row } from '../testkit/storage-plane.ts';

const MIB = 1024 * 1024;
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const EXPORTS = '/apis/export.kubevirt.io/v1/namespaces/default/virtualmachineexports';
const SECRETS = '/api/v1/namespaces/default/secrets';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const image = Buffer.concat([randomBytes(3 * MIB), Buffer.alloc(2 * MIB), randomBytes(MIB)]);
/** Of a claim that holds it: more than the image has. */
const SIZE = 8 * MIB;

let plane: FillPlane;
const temporary = process.env['TMPDIR'];
before(async () => {
  plane = await startFillPlane(['export', 'snapshot']);
  process.env['TMPDIR'] = join(plane.directory, 'tmp');
  await mkdir(join(plane.directory, 'tmp'));
});
after(async () => {
  if (temporary === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = temporary;
  await plane?.stop();
});

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function disk(name: string): Promise<void> {
  await plane.dataVolume(name, {
    source: { http: { url: plane.server.serve(`/${name}`, image) } },
    storage: { resources: { requests: { storage: String(SIZE) } } },
  });
  await plane.dataVolumeSettled(name, ({ status }) => status?.phase === 'Succeeded');
}

const GROUPS: Readonly<Record<string, string>> = {
  VirtualMachine: 'kubevirt.io',
  VirtualMachineSnapshot: 'snapshot.kubevirt.io',
};

/** As virtctl makes one: with a Secret of its own, or none. */
async function offer(name: string, kind: string, source: string, spec: object = {}): Promise<void> {
  const apiGroup = GROUPS[kind] ?? '';
  await plane.admin(`POST ${EXPORTS}`, {
    apiVersion: 'export.kubevirt.io/v1',
    kind: 'VirtualMachineExport',
    metadata: { name },
    spec: { source: { apiGroup, kind, name: source }, ...spec },
  });
}

/** A Pod that has the claim. */
const podWith = (name: string, claimName: string): Promise<Row> =>
  plane.admin('POST /api/v1/namespaces/default/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
    },
  });

const inPhase = (phase: string) => (row: Row) => row['status']?.phase === phase;
const settled = (name: string, phase = 'Ready'): Promise<Row> => plane.settled(`${EXPORTS}/${name}`, inPhase(phase));
const conditionOf = (row: Row, type: string): Row => {
  const { status, reason, message } = row['status'].conditions.find((one: Row) => one['type'] === type) ?? {};
  return { status, reason, message };
};
const linkOf = (row: Row, volume: string, format: string): string =>
  row['status'].links.external.volumes
    .find(({ name }: Row) => name === volume)
    .formats.find((one: Row) => one['format'] === format).url;
const manifestOf = (row: Row, type: string): string =>
  row['status'].links.external.manifests.find((one: Row) => one['type'] === type)?.url;

async function tokenOf(row: Row): Promise<string> {
  const { data } = await plane.admin(`GET ${SECRETS}/${row['status'].tokenSecretRef}`);
  return Buffer.from(data.token, 'base64').toString();
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
  /** False when the connection broke off. */
  readonly isWhole: boolean;
}

async function get(
  url: string,
  { token, onStart, ...options }: RequestOptions & { readonly token?: string; readonly onStart?: () => void } = {},
): Promise<Answer> {
  const headers = { ...options.headers, ...(token !== undefined && { 'x-kubevirt-export-token': token }) };
  return new Promise((resolve, reject) => {
    const request = https(url, { ca: plane.uploads.ca, agent: false, ...options, headers }, (response) => {
      const parts: Buffer[] = [];
      const end = (isWhole: boolean): void =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts), isWhole });
      response.on('data', (part: Buffer) => {
        if (parts.push(part) === 1 && onStart) {
          response.pause();
          onStart();
          setTimeout(() => response.resume(), 300);
        }
      });
      response.on('end', () => end(response.complete));
      response.on('error', () => end(false));
    });
    request.on('error', reject);
    request.end();
  });
}

// S-1380: A claim is exported as `virtctl vmexport` asks for it: raw and gzip are byte for byte what a guest would read, under
//   the links, names and manifests of upstream.
// S-1673: A download of a raw disk that broke off goes on where it ended: `Range: bytes=N-` (`curl -C -`).
// Compat KubeVirt's API, P2, yes: VirtualMachineExport (export.kubevirt.io/v1, v1beta1): claims, stopped machines and snapshots; raw, gzip, dir, tar.gz; manifests; token, ttl
test('a claim is downloaded as raw and as gzip', async () => {
  await disk('disk');
  await offer('of-claim', 'PersistentVolumeClaim', 'disk');
  const row = await settled('of-claim');
  assert.deepEqual(conditionOf(row, 'Ready'), { status: 'True', reason: 'PodReady', message: '' });
  assert.equal(conditionOf(row, 'PVCReady')['reason'], 'PVCBound');
  assert.equal(row['status'].serviceName, 'virt-export-of-claim');
  assert.equal(row['status'].tokenSecretRef, 'export-token-of-claim');
  assert.equal(row['status'].links.external.cert, plane.uploads.ca.trim());
  assert.equal(
    Date.parse(row['status'].ttlExpirationTime) - Date.parse(row['metadata'].creationTimestamp),
    2 * 3_600_000,
  );
  const token = await tokenOf(row);
  assert.match(token, /^[a-z2-7]{20}$/);
  const content = await plane.contentOf('disk');
  const raw = await get(linkOf(row, 'disk', 'raw'), { token });
  assert.deepEqual([raw.status, raw.isWhole, raw.headers['content-length']], [200, true, String(SIZE)]);
  assert.equal(sha(raw.body), sha(content));
  const packed = await get(linkOf(row, 'disk', 'gzip'), { token });
  assert.equal(sha(gunzipSync(packed.body)), sha(content));
  const head = await get(linkOf(row, 'disk', 'raw'), { token, method: 'HEAD' });
  assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, String(SIZE), 0]);
  const part = async (range: string, more: Readonly<Record<string, string>> = {}): Promise<unknown[]> => {
    const answer = await get(linkOf(row, 'disk', 'raw'), { token, headers: { range, ...more } });
    const { status, headers, body } = answer;
    return [status, headers['content-range'], headers['content-length'], sha(body)];
  };
  const of = (from: number, to = SIZE): string => sha(content.subarray(from, to));
  const [middle, all] = [5 * MIB + 3, SIZE];
  const expected = [206, `bytes ${middle}-${all - 1}/${all}`, `${all - middle}`, of(middle)];
  assert.deepEqual(await part(`bytes=${middle}-`), expected, 'a download goes on');
  assert.deepEqual(await part(`bytes=${middle}-${middle + 9}`), [
    206,
    `bytes ${middle}-${middle + 9}/${all}`,
    '10',
    of(middle, middle + 10),
  ]);
  assert.deepEqual((await part(`bytes=${all}-`)).slice(0, 2), [416, `bytes */${all}`]);
  for (const [range, more] of [
    ['bytes=-5'],
    ['bytes=0-1,5-6'],
    ['bytes=5-4'],
    ['bytes=5-', { 'if-range': '"x"' }],
  ] as const)
    assert.deepEqual(await part(range, more), [200, undefined, `${all}`, of(0)], range);
  const secret = await get(manifestOf(row, 'auth-header-secret'), { token });
  assert.deepEqual(JSON.parse(secret.body.toString()).items, [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'header-secret-of-claim' },
      stringData: { token: `x-kubevirt-export-token:${token}` },
    },
  ]);
  assert.equal(manifestOf(row, 'all'), undefined);
  assert.equal((await plane.admin(`GET ${EXPORTS.replace('/v1/', '/v1beta1/')}/of-claim`)).status.phase, 'Ready');
  assert.deepEqual(await readdir(join(plane.directory, 'tmp')), [], 'nothing is left of the readers');
});

// S-1690: A raw disk has an ETag: with `If-Range` a download goes on to the same bytes, and where the disk has changed since it is sent
//   anew, which `curl -C -` takes for an error; old bytes and new ones are never joined.
test('curl goes on with a disk that has not changed, and refuses one that has', async (t) => {
  if (!['curl', 'qemu-io'].every((name) => isProgram(name))) return t.skip('needs curl and qemu-io');
  await disk('resumed');
  await offer('of-resumed', 'PersistentVolumeClaim', 'resumed');
  const row = await settled('of-resumed');
  const token = await tokenOf(row);
  const url = linkOf(row, 'resumed', 'raw');
  const whole = await get(url, { token });
  const etag = String(whole.headers['etag']);
  assert.match(etag, /^"[0-9a-f]{32}"$/);
  const [ca, file] = [join(plane.directory, 'ca.pem'), join(plane.directory, 'resumed.img')];
  await writeFile(ca, plane.uploads.ca);
  const half = whole.body.subarray(0, 5 * MIB + 7);
  const headers = [`If-Range: ${etag}`, `x-kubevirt-export-token: ${token}`].flatMap((header) => ['-H', header]);
  const goOn = async () => {
    await writeFile(file, half);
    return run(['curl', '-sSf', '-C', '-', ...headers, '--cacert', ca, '-o', file, url], {
      signal: NEVER,
      timeoutMs: 60_000,
    });
  };
  const first = await goOn();
  assert.ok(first.ok, first.ok ? '' : first.message);
  assert.equal(sha(await readFile(file)), sha(whole.body));

  const { file: image, format } = plane.realPool.diskOf(await plane.handleOf('resumed'));
  const wrote = await run(['qemu-io', '-f', format, '-c', 'write -P 7 0 64k', image], {
    signal: NEVER,
    timeoutMs: 60_000,
  });
  assert.ok(wrote.ok, wrote.ok ? '' : wrote.message);
  const second = await goOn();
  assert.equal(second.ok ? 0 : second.code, 33, 'no part of the new one');
  assert.equal(sha(await readFile(file)), sha(half), 'what is there stays');
  const anew = await get(url, { token, headers: { range: 'bytes=5-', 'if-range': etag } });
  assert.deepEqual([anew.status, anew.body.length], [200, whole.body.length]);
  assert.equal(anew.body[0], 7);
  assert.notEqual(anew.headers['etag'], etag);
});

// S-1583: The server shows who asks for the host of an internal link a certificate for that name, while the export is ready.
test('an internal link is served under its own name', async () => {
  await offer('inside', 'PersistentVolumeClaim', 'disk');
  const row = await settled('inside');
  const link = new URL(row['status'].links.internal.volumes[0].formats[0].url);
  assert.equal(link.host, 'virt-export-inside.default.svc');
  const asked = { servername: link.hostname, token: await tokenOf(row), method: 'HEAD' };
  link.host = `127.0.0.1:${plane.uploads.port}`;
  assert.equal((await get(link.href, asked)).status, 200);
  await assert.rejects(get(link.href, { ...asked, servername: 'virt-export-none.default.svc' }), /altnames/);
  await plane.admin(`DELETE ${EXPORTS}/inside`);
});

// S-1460: The Service `virt-export-NAME` leads to a Pod of the export, by upstream's labels and ports; the export is Ready when that
//   is, waits with PodPending before, is Terminated when it ends, and gets another then.
test('a Pod stands behind the Service of an export', async () => {
  await offer('behind', 'PersistentVolumeClaim', 'disk');
  const { metadata } = await settled('behind');
  const service = await plane.admin('GET /api/v1/namespaces/default/services/virt-export-behind');
  assert.deepEqual(service.spec.selector, { 'kubevirt.io.virt-export-service': 'behind' });
  assert.deepEqual(service.spec.ports, [{ protocol: 'TCP', port: 443, targetPort: 8443 }]);
  const selected = 'labelSelector=kubevirt.io.virt-export-service%3Dbehind';
  const { items } = await plane.admin(`GET /api/v1/namespaces/default/pods?${selected}`);
  const [pod] = items;
  for (const owned of [service, pod]) assert.equal(owned.metadata.ownerReferences[0].uid, metadata.uid);
  assert.deepEqual([items.length, pod.status.phase, pod.spec.volumes ?? []], [1, 'Running', []]);
  await plane.admin('PATCH /api/v1/namespaces/default/pods/virt-export-behind/status', {
    status: { phase: 'Succeeded' },
  });
  await plane.reported('behind', 'ExporterPodFailedOrCompleted', /is in phase Succeeded/);
  await plane.settled('/api/v1/namespaces/default/pods/virt-export-behind', (one) => {
    return one['metadata']?.uid !== pod.metadata.uid && one['status']?.phase === 'Running';
  });
  await settled('behind');
  await plane.admin(`DELETE ${EXPORTS}/behind`);
  await plane.settled('/api/v1/namespaces/default/pods/virt-export-behind', (one) => one['metadata'] === undefined);
});

// S-1461: A claim that waits for its first Pod is not exported before it has one, and says so; from then on it is.
test('a claim that waits for its first consumer is exported once it has a volume', async () => {
  await plane.claim('late', { storageClassName: 'local-wait' });
  await offer('of-late', 'PersistentVolumeClaim', 'late');
  const waits = await settled('of-late', 'Pending');
  const message = 'PersistentVolumeClaim default/late is not bound';
  assert.deepEqual(conditionOf(waits, 'Ready'), { status: 'False', reason: 'PVCPending', message });
  assert.equal(conditionOf(waits, 'PVCReady')['reason'], 'PVCPending');
  await podWith('first', 'late');
  await plane.settled(`${CLAIMS}/late`, ({ status }) => status?.phase === 'Bound');
  await plane.settled(`${EXPORTS}/of-late`, (row) => conditionOf(row, 'Ready')['reason'] === 'InUse');
  await plane.admin('DELETE /api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 });
  const { links } = (await settled('of-late'))['status'];
  assert.deepEqual(
    links.external.volumes.map(({ name }: Row) => name),
    ['late'],
  );
});

// S-1381: An export is downloaded with the token of its own Secret alone; anybody else gets one and the same 401, whatever there
//   is and whatever path is asked for.
test('who has no token gets 401 for everything', async () => {
  await offer('mine', 'PersistentVolumeClaim', 'disk', { tokenSecretRef: 'mine' });
  await offer('other', 'PersistentVolumeClaim', 'disk');
  const other = await tokenOf(await settled('other'));
  const row = await settled('mine');
  const url = linkOf(row, 'disk', 'raw');
  const refused = async (path: string, token?: string): Promise<void> => {
    const answer = await get(path, token === undefined ? {} : { token });
    assert.equal(answer.status, 401, path);
    assert.match(answer.body.toString(), /no export of this name is ready/);
  };
  // Its Secret is not there yet; then it holds nothing.
  await refused(url, '');
  await plane.admin(`POST ${SECRETS}`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'mine' },
    data: { token: '' },
  });
  await refused(url, '');
  await plane.admin(`PATCH ${SECRETS}/mine`, { stringData: { token: 'let-me-in' } });
  const token = 'let-me-in';
  assert.equal((await get(url, { token, method: 'HEAD' })).status, 200);
  for (const wrong of [undefined, '', 'let-me-i', other]) await refused(url, wrong);
  await refused(url.replace('/namespaces/default/', '/namespaces/kube-system/'), token);
  await refused(url.replace('/virtualmachineexports/mine/', '/virtualmachineexports/other/'), token);
  await refused(url.replace('/virtualmachineexports/mine/', '/virtualmachineexports/none/'), token);
  for (const path of [
    'volumes/none/disk.img',
    'volumes/disk/..%2fdisk.img',
    'volumes/disk/dir/',
    'volumes/disk/disk.tar.gz',
  ])
    assert.equal((await get(url.replace('volumes/disk/disk.img', path), { token })).status, 404, path);
  assert.equal((await get(url, { token, method: 'POST' })).status, 405);
  await plane.admin(`DELETE ${EXPORTS}/mine`);
  await eventually('the export is not served any more', async () => (await get(url, { token })).status === 401);
});

// S-1382: A claim of files, as that of a memory dump, is exported as tar.gz and as a directory; nothing but its own files is
//   in it.
test('a memory dump is downloaded as tar.gz, and from the directory', async () => {
  await plane.claim('dump', { resources: { requests: { storage: '1Mi' } } });
  await plane.settled(`${CLAIMS}/dump`, (row) => row['status']?.phase === 'Bound');
  const directory = join(plane.directory, 'claims', await plane.handleOf('dump'), 'memory-dumps');
  await mkdir(directory, { recursive: true });
  const dumped = Buffer.concat([Buffer.from('\x7fELF', 'latin1'), randomBytes(700_001)]);
  const name = `vm-${'long'.repeat(25)}-dump-20300101-000000.memory.dump`;
  await writeFile(join(directory, name), dumped);
  await writeFile(join(directory, 'partial'), 'half of one');
  await offer('of-dump', 'PersistentVolumeClaim', 'dump');
  const row = await settled('of-dump');
  const token = await tokenOf(row);
  const archive = await get(linkOf(row, 'dump', 'tar.gz'), { token });
  const into = join(plane.directory, 'unpacked');
  await mkdir(into);
  await writeFile(join(into, 'a.tgz'), archive.body);
  const result = await run(['tar', '-xzf', 'a.tgz'], { cwd: into, signal: NEVER, timeoutMs: 60_000 });
  assert.ok(result.ok, result.ok ? '' : result.message);
  assert.deepEqual((await readdir(into)).sort(), ['a.tgz', name].sort());
  const dir = linkOf(row, 'dump', 'dir');
  assert.match((await get(dir, { token })).body.toString(), new RegExp(`<a href="${name}">`));
  assert.equal(sha((await get(`${dir}${name}`, { token })).body), sha(dumped));
  for (const path of ['partial', '..%2f..%2fpool.json', '%2e%2e/pool.json', 'disk.img'])
    assert.equal((await get(`${dir}${path}`, { token })).status, 404, path);
});

// S-1383: An export waits while a Pod or a guest has what it is of, with upstream's reason; a guest that takes the volume in the
//   middle of a download breaks that off and starts.
test('a claim in use is not downloaded', async () => {
  await disk('busy');
  await offer('of-busy', 'PersistentVolumeClaim', 'busy');
  const row = await settled('of-busy');
  const token = await tokenOf(row);
  const url = linkOf(row, 'busy', 'raw');
  const user = { vmi: 'a-guest', place: 'n1' };
  let taken: Promise<unknown> | undefined;
  const handle = await plane.handleOf('busy');
  const onStart = (): void => {
    taken = plane.realPool.reserve(handle, { ...user, access: 'write' });
  };
  const broken = await get(url, { token, onStart });
  await taken;
  assert.deepEqual([broken.status, broken.isWhole], [200, false]);
  assert.equal((await get(url, { token })).status, 503);
  plane.realPool.release(handle, user);
  await podWith('user', 'busy');
  const paused = await settled('of-busy', 'Pending');
  const message = 'PersistentVolumeClaim default/busy is in use';
  assert.deepEqual(conditionOf(paused, 'Ready'), { status: 'False', reason: 'InUse', message });
  assert.deepEqual(paused['status'].links, {});
  await plane.reported('of-busy', 'ExportPaused', /is in use/);
  assert.equal((await get(url, { token })).status, 401);
  await plane.admin('DELETE /api/v1/namespaces/default/pods/user', { gracePeriodSeconds: 0 });
  await settled('of-busy');
  await eventually('the readers are gone', async () => (await readdir(join(plane.directory, 'tmp'))).length === 0);
});

const machine = (name: string, spec: object) =>
  plane.admin(`POST ${VMS}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: {
      runStrategy: 'Halted',
      template: {
        spec: {
          domain: { devices: { disks: [{ name: 'd', disk: { bus: 'virtio' } }] }, memory: { guest: '64Mi' } },
          ...spec,
        },
      },
    },
  });

// S-1384: A stopped machine is exported with the manifests that make it anew elsewhere, its disks fetched from the export.
test('a stopped machine gives its disks and manifests', async () => {
  await disk('root');
  await machine('m', { volumes: [{ name: 'd', dataVolume: { name: 'root' } }] });
  await offer('of-m', 'VirtualMachine', 'm');
  const row = await settled('of-m');
  assert.equal(row['status'].virtualMachineName, 'm');
  const token = await tokenOf(row);
  const answer = await get(manifestOf(row, 'all'), { token, headers: { accept: 'application/yaml' } });
  const [ca, vm, volume, ...more] = parseAllDocuments(answer.body.toString())
    .map((one) => one.toJS() as Row)
    .filter((one) => one !== null);
  assert.deepEqual(more, []);
  assert.deepEqual([ca?.['metadata'].name, ca?.['data']], ['export-ca-cm-of-m', { 'ca.pem': plane.uploads.ca.trim() }]);
  assert.equal(vm?.['spec'].template.spec.volumes[0].dataVolume.name, 'root');
  assert.equal(vm?.['status'], undefined);
  assert.deepEqual(volume?.['spec'].source, {
    http: {
      url: linkOf(row, 'root', 'gzip'),
      certConfigMap: 'export-ca-cm-of-m',
      secretExtraHeaders: ['header-secret-of-m'],
    },
  });
  await offer('of-none', 'VirtualMachine', 'none');
  const missing = await settled('of-none', 'Pending');
  assert.equal(conditionOf(missing, 'Ready')['message'], 'Virtual Machine default/none not found');
  await machine('diskless', { domain: { devices: {}, memory: { guest: '64Mi' } } });
  await offer('of-diskless', 'VirtualMachine', 'diskless');
  assert.equal(conditionOf(await settled('of-diskless', 'Skipped'), 'Ready')['reason'], 'VMNoVolumes');
  await plane.admin(`POST ${VMS.replace('virtualmachines', 'virtualmachineinstances')}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'm' },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
  const running = await settled('of-m', 'Pending');
  assert.deepEqual(conditionOf(running, 'Ready'), {
    status: 'False',
    reason: 'InUse',
    message: 'Virtual Machine default/m is running',
  });
});

// S-1385: A snapshot is exported by claims made of it, which go with the export.
test('a snapshot gives the disks of its moment', async () => {
  await disk('saved');
  await machine('s', { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'saved' } }] });
  const snapshots = '/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots';
  await plane.admin(`POST ${snapshots}`, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name: 'snap' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 's' } },
  });
  await offer('of-snap', 'VirtualMachineSnapshot', 'snap');
  await plane.settled(`${snapshots}/snap`, (row) => row['status']?.readyToUse === true);
  const row = await settled('of-snap');
  assert.deepEqual(conditionOf(row, 'VolumesCreated')['reason'], 'AllPVCsReady');
  const token = await tokenOf(row);
  const raw = await get(linkOf(row, 'saved', 'raw'), { token });
  assert.equal(sha(raw.body), sha(await plane.contentOf('saved')));
  const all = await get(manifestOf(row, 'all'), { token });
  const volume = JSON.parse(all.body.toString()).items.find(({ kind }: Row) => kind === 'DataVolume');
  assert.equal(volume.spec.source.http.url, linkOf(row, 'saved', 'gzip'));
  assert.equal((await plane.admin(`GET ${CLAIMS}/of-snap-saved`)).status.phase, 'Bound');
  await plane.admin(`DELETE ${EXPORTS}/of-snap`);
  await plane.settled(`${CLAIMS}/of-snap-saved`, (claim) => claim['metadata'] === undefined);
});

// S-1387: An export that names nothing that can be exported is refused at once, and what it is of never changes, in upstream's
//   words.
test('what cannot be exported is refused', async () => {
  const source = (kind: string, name: string, apiGroup?: string) => ({ kind, name, ...(apiGroup && { apiGroup }) });
  for (const [given, status, message] of [
    [source('Pod', 'p'), 422, /invalid kind/],
    [source('constructor', 'p'), 422, /invalid kind/],
    [source('VirtualMachineBackup', 'p', 'backup.kubevirt.io'), 422, /not exported here: .* the claim .* written to/],
    [source('VirtualMachineTemplate', 'p', 'template.kubevirt.io'), 422, /templates are not exported here/],
    [source('PersistentVolumeClaim', ''), 422, /PVC name must not be empty/],
    [source('PersistentVolumeClaim', 'p', 'kubevirt.io'), 422, /PVC API group must be missing or blank/],
    [source('VirtualMachine', 'p'), 422, /VM API group must be kubevirt.io/],
    [source('VirtualMachineSnapshot', '', 'snapshot.kubevirt.io'), 422, /VMSnapshot name must not be empty/],
    [source('VirtualMachineSnapshot', 'p', 'x'), 422, /VMSnapshot API group must be snapshot.kubevirt.io/],
  ] as const) {
    const body = {
      apiVersion: 'export.kubevirt.io/v1',
      kind: 'VirtualMachineExport',
      metadata: { name: 'refused' },
      spec: { source: given },
    };
    const answer = await plane.ask(`POST ${EXPORTS}`, { as: ['admin', 'system:masters'], body });
    assert.deepEqual([answer.status, message.test(answer.json.message)], [status, true], answer.json.message);
  }
  const spec = { ttlDuration: '1h' };
  const changed = await plane.ask(`PATCH ${EXPORTS}/of-claim`, { as: ['admin', 'system:masters'], body: { spec } });
  assert.match(changed.json.message, /spec in immutable after creation/);
  await assert.rejects(offer('late', 'PersistentVolumeClaim', 'disk', { ttlDuration: 'soon' }), /invalid duration/);
});

// S-1386: An export is removed when its time is over, and what was made for it goes along.
test('an export ends with its ttl', async () => {
  await offer('short', 'PersistentVolumeClaim', 'disk', { ttlDuration: '6s' });
  const row = await settled('short');
  await plane.settled(`${EXPORTS}/short`, (one) => one['metadata'] === undefined);
  await plane.settled(`${SECRETS}/${row['status'].tokenSecretRef}`, (one) => one['metadata'] === undefined);
  assert.equal((await get(linkOf(row, 'disk', 'raw'), { token: 'x' })).status, 401);
});
