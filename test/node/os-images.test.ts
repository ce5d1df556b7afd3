/** The catalogue of images: fetched from a vendor with its checksum or from a registry, and of use offline afterwards. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type RegistryServer, startRegistry, tarOf } from '../../packages/runtime/src/oci/registry-server.fixture.ts';
import { openWorkspace } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { startImageServer } from '../testkit/image-server.ts';
import { whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const MIB = 1024 * 1024;

// S-1310: `coracle images refresh NAME` fetches an image of the catalogue from its vendor, checked against the vendor's list of
//   digests, or from a registry by a DataImportCron; a DataSource of kubevirt-os-images leads to it. A wrong checksum leaves nothing.
// S-1311: What was fetched once serves further machines offline: `coracle create --image NAME` copies it.
test('an image is fetched with its checksum, and serves machines without its vendor', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  const vendor = await startImageServer();
  let registry: RegistryServer | undefined;
  t.after(async () => {
    await vendor.close();
    await registry?.close();
  });
  const coracle = (...argv: string[]) => at.run([...argv, '--data-dir', at.data]);
  const state = async (name: string) => {
    const [image] = JSON.parse((await coracle('images', name, '--json')).stdout);
    return image.here;
  };
  const bytes = randomBytes(2 * MIB);
  const from = vendor.serve('/debian-13.img', bytes);
  const digest = createHash('sha512').update(bytes).digest('hex');
  const list = (hex: string): string => vendor.serve('/SHA512SUMS', Buffer.from(`${hex}  debian-13.img\n`));
  const refresh = (...more: string[]) => coracle('images', 'refresh', 'debian:13', '--from', from, ...more);

  assert.match((await refresh('--from', 'ftp://x')).stderr, /--from takes URLs of http and https, and docker:/);
  assert.match((await coracle('images', 'refresh', 'debain:13')).stderr, /no image is called debain:13; did you mean/);
  const wrong = await refresh('--checksums', list('0'.repeat(128)));
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /^no control plane runs in /m);
  assert.match(wrong.stderr, /^error: debian:13 is not fetched: .*checksum does not match/m);
  const none = await refresh('--checksums', vendor.serve('/EMPTY', Buffer.from('nothing')));
  assert.match(none.stderr, /EMPTY has no SHA-256 or SHA-512 of debian-13\.img/);
  assert.equal(await state('debian:13'), false);

  const fetched = await refresh('--checksums', list(digest));
  const claim = `debian-13-${digest.slice(0, 12)}`;
  assert.deepEqual([fetched.code, fetched.stdout], [0, `debian:13 is up to date (${claim})\n`], fetched.stderr);
  assert.equal(await state('debian:13'), true);
  const source = JSON.parse(
    (await at.kubectl(['get', 'das', 'debian-13', '-n', 'kubevirt-os-images', '-o', 'json'])).stdout,
  );
  assert.deepEqual(source.spec.source.pvc, { namespace: 'kubevirt-os-images', name: claim });
  assert.equal(source.metadata.labels['instancetype.kubevirt.io/default-preference'], 'debian');

  await vendor.close();
  assert.match((await refresh()).stderr, /cannot fetch .*SHA512SUMS: /);
  const made = await coracle('create', 'web', '--image', 'debian', '--ssh-key', 'none');
  assert.equal(made.code, 0, made.stderr);
  assert.doesNotMatch(made.stderr, /fetching/);
  const dv = async () => JSON.parse((await at.kubectl(['get', 'dv', 'web-root', '-o', 'json'])).stdout);
  await eventually('its disk is a copy', async () => (await dv()).status?.phase === 'Succeeded');
  // A machine's DataVolume names what its DataSource stood for when it was made.
  const { source: copied, sourceRef } = (await dv()).spec;
  assert.deepEqual([copied.pvc, sourceRef], [{ namespace: 'kubevirt-os-images', name: claim }, undefined]);

  registry = await startRegistry();
  const disk = { name: 'disk/disk.img', content: randomBytes(MIB), type: 'file' } as const;
  const pushed = await registry.addImage('disks/fedora', 'latest', [await tarOf([disk])]);
  const cron = await coracle('images', 'refresh', 'fedora', '--from', `docker://${registry.host}/disks/fedora:latest`);
  const name = `fedora-latest-${pushed.replace('sha256:', '').slice(0, 12)}`;
  assert.deepEqual([cron.code, cron.stdout], [0, `fedora:latest is up to date (${name})\n`], cron.stderr);
  assert.equal(await state('fedora:latest'), true);
  await coracle('down', '--force');
});
