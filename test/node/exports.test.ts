/** Disks and memory that leave a server of its own process: `coracle export` and `memory-dump` with a real guest. */
// test:full: a guest that boots, is saved, dumped and stopped, and a control plane that is killed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_EXPORTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const namespace = 'default';
const key = (name: string) => ({ namespace, name });
const MAIN = resolve(import.meta.dirname, '../../packages/coracle/src/main.ts');
const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

// S-1388: `coracle export` writes a disk of a stopped machine, of a snapshot while the guest runs, or of a claim into a file of this
//   host, byte for byte, whole or not at all; it keeps a file that is there, and prints virtctl's call with `--explain`.
// S-1389: `coracle memory-dump` gives the memory of a running guest as an ELF file.
// S-1390: A control plane that is killed in the middle of a download leaves no process and no file behind.
test('disks and memory leave as files', { timeout: 600_000, ...(why && { skip: why }) }, async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'coracle-exports-'));
  const temporary = join(data, 'tmp');
  mkdirSync(temporary);
  await importTinyGuest(data);
  const plane = await startProcess(data, { nodes: 1, env: { TMPDIR: temporary } });
  const admin = adminOf(data);
  const { client } = admin;
  t.after(async () => {
    await client.delete(VIRTUAL_MACHINES, key('m')).catch(() => undefined);
    await admin.close();
    await plane.kill('SIGKILL');
    const ours = await findProcesses((argv) => argv.some((word) => word.includes(data)));
    for (const pid of ours) process.kill(pid, 'SIGKILL');
    rmSync(data, { recursive: true, force: true, maxRetries: 10 });
  });
  const coracle = async (...argv: string[]): Promise<{ code: number | null; out: string; err: string }> => {
    const [name = '', ...more] = argv;
    const child = spawn(process.execPath, [MAIN, name, '--data-dir', data, ...more], { timeout: 280_000 });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    return new Promise((done) => child.on('close', (code) => done({ code, out, err })));
  };
  const ok = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await coracle(...argv);
    assert.equal(code, 0, `${argv.join(' ')}: ${out}${err}`);
    return out;
  };

  const content = Buffer.concat([randomBytes(5 * 1024 * 1024), Buffer.alloc(11 * 1024 * 1024)]);
  const source = join(data, 'source.img');
  writeFileSync(source, content);
  await ok('upload', 'disk', source);
  await client.create(
    VIRTUAL_MACHINES,
    tinyVm('m', ({ spec }) => {
      delete spec.running;
      spec.runStrategy = 'Always';
      const { domain, volumes } = spec.template.spec!;
      domain.devices.disks!.push({ name: 'd', disk: { bus: 'virtio' } });
      volumes!.push({ name: 'd', dataVolume: { name: 'disk' } });
    }),
  );
  await eventually('the guest runs', async () => {
    const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key('m'));
    return vmi.status?.phase === 'Running';
  });

  const refused = await coracle('export', 'm', '--output', join(data, 'no.img'));
  assert.equal(refused.code, 1);
  assert.match(refused.err, /Virtual Machine default\/m is running: stop it, or export a snapshot/);
  await client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: key('s'),
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'm' } },
  });
  await eventually('the snapshot is ready', async () => {
    const snapshot = await client.get(VIRTUAL_MACHINE_SNAPSHOTS, key('s'));
    return snapshot.status?.readyToUse === true;
  });
  const before = await client.get(VIRTUAL_MACHINE_INSTANCES, key('m'));
  const saved = join(data, 'saved.img');
  await ok('export', 'snapshot/s', '--format', 'raw', '--output', saved);
  assert.equal(sha(readFileSync(saved)), sha(content));
  const running = await client.get(VIRTUAL_MACHINE_INSTANCES, key('m'));
  assert.deepEqual([running.metadata.uid, running.status?.phase], [before.metadata.uid, 'Running']);
  const again = await coracle('export', 'snapshot/s', '--output', saved);
  assert.match(again.err, /already exists: --force replaces it/);
  assert.equal(
    await ok('export', 'snapshot/s', '--volume', 'disk', '--explain'),
    'virtctl vmexport download export-s --snapshot=s -n default --volume=disk --output=disk.img.gz\n',
  );

  const elf = join(data, 'm.elf');
  await ok('memory-dump', 'get', 'm', '--claim-name', 'dump', '--create-claim', '--output', elf);
  const magic = Buffer.alloc(4);
  readSync(openSync(elf, 'r'), magic);
  assert.equal(magic.toString('latin1'), '\x7fELF');

  await ok('stop', 'm', '--force', '--wait');
  const packed = join(data, 'm.img.gz');
  await ok('export', 'm', '--volume', 'disk', '--output', packed);
  assert.equal(sha(gunzipSync(readFileSync(packed))), sha(content));
  assert.deepEqual((await client.list(VIRTUAL_MACHINE_EXPORTS, { namespace })).items, [], 'no export is left');
  assert.deepEqual(readdirSync(temporary), []);

  await client.create(VIRTUAL_MACHINE_EXPORTS, {
    apiVersion: 'export.kubevirt.io/v1',
    kind: 'VirtualMachineExport',
    metadata: key('killed'),
    spec: { source: { apiGroup: '', kind: 'PersistentVolumeClaim', name: 'disk' } },
  });
  const { status } = await eventually('the export is ready', async () => {
    const found = await client.get(VIRTUAL_MACHINE_EXPORTS, key('killed'));
    return found.status?.phase === 'Ready' ? found : undefined;
  });
  const external = status?.links?.external;
  const secret = await client.get(SECRETS, key(status?.tokenSecretRef ?? ''));
  const token = Buffer.from(secret.data?.['token'] ?? '', 'base64').toString();
  const readers = () => findProcesses((argv) => /qemu-nbd/.test(argv.join(' ')) && argv.join(' ').includes(data));
  const url = external?.volumes?.[0]?.formats?.find(({ format }) => format === 'raw')?.url ?? '';
  const headers = { 'x-kubevirt-export-token': token };
  await new Promise<void>((begun, fail) => {
    const asked = get(url, { ca: external?.cert, headers, agent: false }, (response) => {
      response.once('data', () => {
        response.pause();
        begun();
      });
      response.on('error', () => {});
    });
    asked.on('error', fail);
  });
  assert.equal((await readers()).length > 0, true, 'somebody reads the disk');
  await plane.kill('SIGKILL');
  await eventually('the reader ends', async () => (await readers()).length === 0);
  assert.deepEqual(readdirSync(temporary), []);
  assert.ok(!existsSync(join(data, 'no.img')));
});
