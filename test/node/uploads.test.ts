/** A machine that boots from a disk that was uploaded to a server of its own process, over all of its connections. */
// test:full: it starts a server, makes the tiny guest's disk and boots it.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';

const MAIN = resolve(import.meta.dirname, '../../packages/coracle/src/main.ts');
let directory: string;
let server: ControlPlaneProcess;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coracle-uploads-'));
  server = await startProcess(directory, { nodes: 1 });
});
after(async () => {
  await server?.kill('SIGTERM');
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
});

/** Runs the program against the server. */
function coracle(...argv: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const [name = '', ...more] = argv;
  const child = spawn(process.execPath, [MAIN, name, '--data-dir', directory, ...more], { timeout: 280_000 });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  return new Promise((done) => child.on('close', (code) => done({ code, out, err })));
}

// S-1243: `coracle upload NAME FILE` makes a disk from an image of this host, from which a machine boots; `--explain` prints the
//   call of virtctl; what is no image is refused with its reason, before it is sent and by the server.
test('coracle upload, and a guest that boots from it', { timeout: 600_000 }, async () => {
  const { disk } = await ensureGuest();
  const explained = await coracle('upload', 'tiny', disk, '--size', '256Mi', '--explain');
  assert.equal(explained.out.trim(), `virtctl image-upload dv tiny --size 256Mi --image-path ${disk} --insecure`);
  const sent = await coracle('upload', 'tiny', disk, '--size', '256Mi');
  assert.deepEqual(sent, { code: 0, out: 'dv/tiny created\ndv/tiny uploaded\ndv/tiny Succeeded\n', err: '' });

  const manifest = join(directory, 'vm.json');
  const vm = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          terminationGracePeriodSeconds: 0,
          domain: { devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] }, memory: { guest: '128Mi' } },
          volumes: [{ name: 'root', dataVolume: { name: 'tiny' } }],
        },
      },
    },
  };
  await writeFile(manifest, JSON.stringify(vm));
  const made = spawnSync('kubectl', ['--kubeconfig', join(directory, 'kubeconfig'), 'apply', '-f', manifest]);
  assert.equal(made.status, 0, made.stderr?.toString());
  // It has booted when it asks for a name.
  for (let tries = 0; ; tries++) {
    const logs = await coracle('logs', 'web');
    if (/login:/.test(logs.out)) break;
    assert.ok(tries < 200, `the guest does not boot: ${logs.out.slice(-2000)} ${logs.err}`);
    await new Promise((next) => setTimeout(next, 500));
  }
});

// S-1243
test('what is no image', { timeout: 600_000 }, async () => {
  const page = join(directory, 'page.html');
  await writeFile(page, '<html>'.repeat(900));
  const refused = await coracle('upload', 'page', page);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /text file and no disk image/);
  const large = join(directory, 'large.img');
  await writeFile(large, Buffer.alloc(3 * 1024 * 1024, 1));
  const answered = await coracle('upload', 'large', large, '--size', '1Mi');
  assert.equal(answered.code, 1);
  assert.match(answered.err, /the upload is refused \(400\): .*larger than the reported available storage/);
});

// S-1423: `coracle upload` fills a disk that waits for its bytes, as after an upload that was interrupted, and none that is full.
test('an upload to a disk that waits for its bytes', { timeout: 600_000 }, async () => {
  const blank = join(directory, 'blank.img');
  await writeFile(blank, Buffer.alloc(1024 * 1024));
  const target = join(directory, 'dv.json');
  await writeFile(
    target,
    JSON.stringify({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'again', namespace: 'default' },
      spec: { source: { upload: {} }, storage: { resources: { requests: { storage: '1Mi' } } } },
    }),
  );
  const made = spawnSync('kubectl', ['--kubeconfig', join(directory, 'kubeconfig'), 'apply', '-f', target]);
  assert.equal(made.status, 0, made.stderr?.toString());
  const sent = await coracle('upload', 'again', blank);
  assert.deepEqual(sent, { code: 0, out: 'dv/again waits for it\ndv/again uploaded\ndv/again Succeeded\n', err: '' });
  const full = await coracle('upload', 'again', blank);
  assert.deepEqual([full.code, full.out], [1, '']);
  assert.match(full.err, /disk default\/again already exists \(another name, or: kubectl delete dv again -n default\)/);
});
