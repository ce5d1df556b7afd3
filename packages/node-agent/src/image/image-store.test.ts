import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { Clock } from '../../../runtime/src/clock/clock.ts';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { parseChallenge, registryOrigin } from '../../../runtime/src/oci/registry-client.ts';
import { type RegistryServer, sha256, startRegistry, tarOf } from '../../../runtime/src/oci/registry-server.fixture.ts';
import { type ImageError, type ImageStore, openImageStore, type StoredImage } from './image-store.ts';
import { importImage, listImages, removeImage } from './local-images.ts';

const signal = new AbortController().signal;
/** Real time, but pauses between tries cost nothing. */
const clock: Clock = { ...systemClock, sleep: () => Promise.resolve() };
const DISK = Buffer.concat([Buffer.alloc(70_000, 1), Buffer.alloc(200_000), Buffer.alloc(3000, 2)]);
let dir = '';
let registry: RegistryServer;
let store: ImageStore;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coracle-image-'));
  registry = await startRegistry();
  store = await openImageStore(join(dir, 'images'), { clock });
});
afterEach(async () => {
  await registry.close();
  await rm(dir, { recursive: true, force: true });
});

const ensure = (tag: string, more: object = {}): Promise<StoredImage> =>
  store.ensure({ reference: `${registry.host}/${tag}`, wanted: { disk: '/disk' }, signal, ...more });
const isPull = (pattern: RegExp) => (error: ImageError) => {
  assert.equal(error.name, 'ImageError');
  assert.match(error.message, pattern);
  return true;
};
const content = (image: StoredImage): Promise<Buffer> => readFile(image.disk?.path ?? '');

// S-066: Container disks come from any OCI registry: bearer challenge, manifest lists, resume, digest check.
test('ensure() pulls plain, gzip and zstd layers and keeps the one disk', async () => {
  const tar = await tarOf([
    { name: 'disk/', type: 'directory' },
    { name: './disk/a.img', content: DISK },
    { name: 'etc/x', content: 'x' },
  ]);
  for (const [name, layer] of [
    ['plain', tar],
    ['gzip', gzipSync(tar)],
    ['zstd', zstdCompressSync(tar)],
  ] as const) {
    const digest = registry.addImage(name, 'v1', [layer]);
    const image = await ensure(`${name}:v1`);
    assert.deepEqual([image.digest, image.pulled, image.disk?.format], [digest, true, 'raw']);
    assert.deepEqual(await content(image), DISK);
  }
  // One content, one file; nothing unfinished is left.
  assert.equal((await readdir(join(dir, 'images/files'))).length, 1);
  assert.deepEqual([await readdir(join(dir, 'images/parts')), await readdir(join(dir, 'images/scratch'))], [[], []]);
  assert.equal((await stat(join(dir, 'images'))).mode & 0o777, 0o700);
});

test('a present image is not pulled again, except that Always asks the registry what the tag means', async () => {
  registry.addImage('x', 'v1', [await tarOf([{ name: 'disk/a', content: 'one' }])]);
  await ensure('x:v1');
  const before = registry.requests.length;
  assert.equal((await ensure('x:v1')).pulled, false);
  assert.equal((await ensure('x:v1', { policy: 'Never' })).pulled, false);
  assert.equal(registry.requests.length, before);
  assert.equal((await ensure('x:v1', { policy: 'Always' })).pulled, false);
  assert.deepEqual(registry.requests.slice(before), ['GET /v2/x/manifests/v1']);
  registry.addImage('x', 'v1', [await tarOf([{ name: 'disk/a', content: 'two' }])]);
  assert.equal((await content(await ensure('x:v1', { policy: 'Always' }))).toString(), 'two');
  await assert.rejects(ensure('y:v1', { policy: 'Never' }), { reason: 'ErrImageNeverPull' });
  await assert.rejects(ensure('y:v1'), isPull(/not found in the registry/));
  await assert.rejects(store.ensure({ reference: '../x', wanted: { disk: '/disk' }, signal }), {
    reason: 'InvalidImageName',
  });
});

// S-067: Images are stored once by digest, within a bound; local images are imported, listed and removed.
test('concurrent pulls are one pull, and one caller leaving does not end it', async () => {
  registry.addImage('x', 'v1', [await tarOf([{ name: 'disk/a', content: DISK }])]);
  const leaver = new AbortController();
  const gone = ensure('x:v1', { signal: leaver.signal });
  const rest = Promise.all([ensure('x:v1'), ensure('x:v1')]);
  leaver.abort(new Error('left'));
  await assert.rejects(gone, /left/);
  assert.equal((await rest).length, 2);
  assert.equal(registry.requests.filter((r) => r.includes('/blobs/')).length, 1);
});

// S-066
test('a cut download is resumed where it broke, and a store that forgot midway continues the part', async () => {
  const layer = await tarOf([{ name: 'disk/a', content: DISK }]);
  registry.addImage('x', 'v1', [layer]);
  registry.cutBlobs = [50_000, 60_000];
  const seen: number[] = [];
  // On a busy machine a cut may overtake all that was sent before it.
  registry.cutWhen = async (from) => {
    while ((seen.at(-1) ?? 0) <= from) await setTimeout(5);
  };
  const image = await ensure('x:v1', { onProgress: (done: number) => seen.push(done) });
  assert.deepEqual(await content(image), DISK);
  const offsets = registry.requests
    .filter((r) => r.includes('/blobs/'))
    .map((r) => Number(/ range=bytes=(\d+)-$/.exec(r)?.[1] ?? 0));
  assert.equal(offsets.length, 3);
  const [first = -1, second = -1, third = -1] = offsets;
  // What had arrived before each cut is not asked for again (the last bytes of a cut answer may be lost on the way).
  assert.ok(first === 0 && second > 0 && third > second && third <= 110_000, String(offsets));
  assert.equal(seen.at(-1), layer.length);
});

test('images of a repository that share a layer may be pulled at once, and so may different files of one image', async () => {
  // Large enough that the answers interleave.
  const big = Buffer.alloc(6_000_000, 3);
  const layer = await tarOf([
    { name: 'disk/a', content: big },
    { name: 'boot/kernel', content: 'KERNEL' },
    { name: 'more/b', content: DISK },
  ]);
  for (const tag of ['x', 'y', 'z']) registry.addImage('r', tag, [layer]);
  registry.cutBlobs = [2_000_000];
  const [x, y, z, kernel] = await Promise.all([
    ensure('r:x'),
    ensure('r:y', { wanted: { disk: '/more' } }),
    ensure('r:z'),
    ensure('r:x', { wanted: { kernel: '/boot/kernel' } }),
  ]);
  assert.deepEqual(await content(x), big);
  assert.deepEqual(await content(y), DISK);
  assert.deepEqual(await content(z), big);
  assert.equal(kernel.kernel?.size, 6);
  // One after another, so the layer came once, in two pieces because of the cut.
  assert.equal(registry.requests.filter((r) => r.includes('/blobs/')).length, 2);
  assert.deepEqual(await readdir(join(dir, 'images/parts')), []);
});

// S-145: Layers of images that cannot be used are kept within a bound, and not for ever.
test('layers of images that cannot be used are kept within a bound, and not for ever', async () => {
  let now = Date.now();
  const later: Clock = { ...clock, now: () => now };
  store = await openImageStore(join(dir, 'images'), { clock: later, maxImageBytes: 50_000 });
  const parts = (): Promise<string[]> => readdir(join(dir, 'images/parts'));
  for (const name of ['a', 'b', 'c']) {
    registry.addImage(name, 'v1', [await tarOf([{ name: `no/${name}`, content: Buffer.alloc(20_000, name) }])]);
    await assert.rejects(ensure(`${name}:v1`), isPull(/^image .* holds no disk at \/disk/));
  }
  assert.equal((await parts()).length, 2);
  now += 25 * 3600_000;
  await openImageStore(join(dir, 'images'), { clock: later });
  assert.deepEqual(await parts(), []);
});

// S-066
test('a layer that does not match its digest is thrown away', async () => {
  const layer = await tarOf([{ name: 'disk/a', content: DISK }]);
  const digest = registry.addBlob(layer).digest;
  registry.addImage('x', 'v1', [layer]);
  registry.lies.set(digest, Buffer.from(layer).fill(7, 600, 700));
  await assert.rejects(ensure('x:v1'), isPull(/^image .*\/x:v1: a layer does not match its digest/));
  assert.deepEqual(await readdir(join(dir, 'images/parts')), []);
  registry.lies.set(digest, Buffer.concat([layer, layer]));
  await assert.rejects(ensure('x:v1'), isPull(/more than the \d+ bytes it announced/));
  registry.lies.clear();
  assert.deepEqual(await content(await ensure('x:v1')), DISK);
});

// S-109: Hostile layers and decompression bombs are refused and leave nothing behind.
test('evil and unusable layers are refused and leave nothing behind', async () => {
  const qcowWithBacking = Buffer.alloc(65536);
  qcowWithBacking.writeUInt32BE(0x514649fb, 0);
  qcowWithBacking.writeUInt32BE(3, 4);
  qcowWithBacking.writeBigUInt64BE(512n, 8);
  const cases: [Parameters<typeof tarOf>[0], RegExp][] = [
    [[{ name: 'disk/a', type: 'symlink', linkname: '/etc/passwd' }], /is a link/],
    [[{ name: 'disk/a', type: 'link', linkname: '/etc/passwd' }], /is a link/],
    [[{ name: '../disk/a', content: 'x' }], /no disk at/],
    [[{ name: 'disk/../../etc/a', content: 'x' }], /no disk at/],
    [[{ name: 'disk/a', type: 'character-device' }], /no disk at/],
    [
      [
        { name: 'disk/a', content: 'x' },
        { name: 'disk/b', content: 'y' },
      ],
      /exactly one file, it holds: \/disk\/a, \/disk\/b/,
    ],
    [Array.from({ length: 12 }, (_, i) => ({ name: `disk/${i}`, content: 'x' })), /more than 8 files/],
    [[{ name: 'other', content: 'x' }], /no disk at \/disk/],
    [[{ name: 'disk/a', content: qcowWithBacking }], /backing file/],
    [[{ name: 'disk/a', content: '' }], /empty/],
  ];
  for (const [i, [entries, why]] of cases.entries()) {
    registry.addImage('evil', `v${i}`, [gzipSync(await tarOf(entries))]);
    await assert.rejects(ensure(`evil:v${i}`), isPull(why), String(why));
  }
  assert.deepEqual([await readdir(join(dir, 'images/files')), await readdir(join(dir, 'images/scratch'))], [[], []]);
});

// S-109
test('a decompression bomb stops at the bound', async () => {
  store = await openImageStore(join(dir, 'small'), { clock, maxImageBytes: 1_000_000 });
  registry.addImage('bomb', 'v1', [gzipSync(await tarOf([{ name: 'junk', content: Buffer.alloc(5_000_000) }]))]);
  await assert.rejects(ensure('bomb:v1'), isPull(/unpacks to more than 1000000 bytes/));
});

// S-830: An image is not pulled where the node keeps the room that is left, nor to its end where the disk gets so full
//   meanwhile; what was pulled of it is given back, and the message names the directory.
test('a pull ends before the node has no room for itself, leaves nothing, and is made when there is room', async () => {
  const GIB = 1024 ** 3;
  let free = 50 * GIB;
  const space = async () => ({ free, total: 100 * GIB });
  store = await openImageStore(join(dir, 'short'), { clock, space });
  const layer = await tarOf([{ name: 'disk/a', content: DISK }]);
  registry.addImage('large', 'v1', [layer]);
  // The disk fills while the layer comes, whose end is held back until then.
  registry.cutBlobs.push(1000);
  registry.cutWhen = async () => {
    free = 1.9 * GIB;
    await new Promise(() => {});
  };
  const noRoom = isPull(
    /large:v1: the disk of \S+\/short has 1945 MiB free, of which the node keeps 2048; free some there$/,
  );
  await assert.rejects(ensure('large:v1'), noRoom);
  assert.deepEqual([await readdir(join(dir, 'short/parts')), await readdir(join(dir, 'short/scratch'))], [[], []]);
  // As it is, no connection is made for one.
  const asked = registry.requests.length;
  await assert.rejects(ensure('large:v1'), noRoom);
  assert.equal(registry.requests.length, asked);
  free = 50 * GIB;
  assert.deepEqual(await content(await ensure('large:v1')), DISK);
});

test('later layers replace and white out, paths pick one file, kernels come out too', async () => {
  registry.addImage('layers', 'v1', [
    await tarOf([
      { name: 'disk/old', content: 'old' },
      { name: 'boot/vmlinuz', content: 'k1' },
    ]),
    gzipSync(
      await tarOf([
        { name: 'disk/.wh.old' },
        { name: 'disk/new', content: 'new' },
        { name: 'boot/vmlinuz', content: 'k2' },
        { name: 'boot/initrd', content: 'i' },
      ]),
    ),
  ]);
  assert.equal((await content(await ensure('layers:v1'))).toString(), 'new');
  const boot = await ensure('layers:v1', { wanted: { kernel: '/boot/vmlinuz', initrd: '/boot/initrd' } });
  assert.equal((await readFile(boot.kernel?.path ?? '')).toString(), 'k2');
  assert.equal((await readFile(boot.initrd?.path ?? '')).toString(), 'i');
  for (const path of ['/', '/../etc/passwd', 'disk/new', '/a/../../b'])
    await assert.rejects(ensure('layers:v1', { wanted: { disk: path } }), isPull(/must be absolute|no disk at/));
});

// S-066
test('an index is walked to our architecture', async () => {
  const inner = registry.addImage('multi', 'inner', [await tarOf([{ name: 'disk/a', content: 'amd' }])]);
  const index = (architecture: string): unknown => ({
    manifests: [
      { digest: `sha256:${'0'.repeat(64)}`, platform: { architecture: 's390x', os: 'linux' } },
      { digest: inner, platform: { architecture, os: 'linux' } },
    ],
  });
  registry.addManifest('multi', 'v1', index('amd64'), 'application/vnd.oci.image.index.v1+json');
  registry.addManifest('multi', 'v2', index('arm64'), 'application/vnd.oci.image.index.v1+json');
  assert.equal((await ensure('multi:v1')).digest, inner);
  await assert.rejects(ensure('multi:v2'), isPull(/not offered for amd64/));
});

// S-066
test('the bearer challenge is answered, and the token does not follow a redirect to another host', async () => {
  registry.addImage('private', 'v1', [await tarOf([{ name: 'disk/a', content: 'secret' }])]);
  registry.auth = { token: 'tok-canary', basic: 'me:pw-canary' };
  registry.redirectBlobs = true;
  const error = await ensure('private:v1').then(
    () => undefined,
    (e: ImageError) => e,
  );
  assert.match(error?.message ?? '', /token service .* answered 401: it asks for credentials; name a Secret/);
  const image = await ensure('private:v1', { credentials: { username: 'me', password: 'pw-canary' } });
  assert.equal((await content(image)).toString(), 'secret');
  assert.deepEqual(registry.redirectedAuthorization, [undefined]);
  assert.doesNotMatch(String(error), /canary/);
});

// S-499: An image that was pulled with a credential is given to no Pod that cannot present one.
test('an image that was pulled with a credential is given to nobody who cannot present one', async () => {
  const layer = await tarOf([{ name: 'disk/a', content: 'secret' }]);
  registry.addImage('private', 'v1', [layer]);
  registry.auth = { token: 'tok', basic: 'me:pw' };
  const mine = { credentials: { username: 'me', password: 'pw' } };
  assert.equal((await ensure('private:v1', { ...mine, policy: 'IfNotPresent' })).pulled, true);
  const asked = registry.requests.length;
  for (const policy of ['IfNotPresent', 'Never'])
    assert.equal((await ensure('private:v1', { ...mine, policy })).pulled, false);
  assert.equal(registry.requests.length, asked, 'who has shown it before asks nobody');

  const never = {
    reason: 'ErrImageNeverPull',
    message: /present, but was pulled with a credential that this Pod does/,
  };
  const wrong = { credentials: { username: 'me', password: 'guess' } };
  for (const other of [{}, wrong]) {
    await assert.rejects(ensure('private:v1', { ...other, policy: 'Never' }), never);
    await assert.rejects(ensure('private:v1', { ...other, policy: 'IfNotPresent' }), isPull(/answered 401/));
    await assert.rejects(
      ensure(`private@${(await ensure('private:v1', mine)).digest}`, { ...other, policy: 'IfNotPresent' }),
      isPull(/answered 401/),
    );
  }
  // The hash of a credential stands on the disk, and the credential does not.
  const records = await Promise.all(
    (await readdir(join(dir, 'images/pulled'))).map((name) => readFile(join(dir, 'images/pulled', name), 'utf8')),
  );
  assert.ok(
    records.every((text) => !text.includes('pw') && /"access":\{"[^"]+\/private":\["[0-9a-f]{64}"\]\}/.test(text)),
  );

  // Another credential that the registry takes counts from then on, and what it gives to anybody is for all.
  registry.auth = { token: 'tok', basic: 'you:pw' };
  const yours = { credentials: { username: 'you', password: 'pw' } };
  assert.equal((await ensure('private:v1', { ...yours, policy: 'IfNotPresent' })).pulled, false);
  registry.auth = { token: 'tok', basic: 'nobody' };
  for (const known of [mine, yours])
    assert.equal((await ensure('private:v1', { ...known, policy: 'Never' })).pulled, false);
  registry.auth = undefined;
  assert.equal((await ensure('private:v1', { policy: 'IfNotPresent' })).pulled, false);
  assert.equal((await ensure('private:v1', { policy: 'Never' })).pulled, false);
});

// S-499
test('the manifest of a private image, shown by another repository, opens nothing', async () => {
  const layer = await tarOf([{ name: 'disk/a', content: 'secret' }]);
  const digest = registry.addImage('private', 'v1', [layer]);
  await ensure('private:v1');
  // The attacker knows the manifest and has none of its layers.
  const evil = await startRegistry();
  try {
    const { size } = registry.addBlob(layer);
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: sha256(layer), size }],
    };
    assert.equal(evil.addManifest('copy', 'v1', manifest, manifest.mediaType), digest);
    for (const policy of ['Always', 'IfNotPresent'] as const)
      await assert.rejects(
        store.ensure({ reference: `${evil.host}/copy:v1`, wanted: { disk: '/disk' }, signal, policy }),
        isPull(/not found in the registry/),
      );
  } finally {
    await evil.close();
  }
});

// S-693: A layer of a private image that is on its way, or was left, is given to no other repository that names it.
test('a layer that is on its way, or was left, serves the repository it came from and no other that names it', async () => {
  const layer = await tarOf([{ name: 'elsewhere/a', content: 'secret' }]);
  const digest = registry.addImage('private', 'v1', [layer]);
  await assert.rejects(ensure('private:v1'), isPull(/holds no disk at/));
  assert.equal((await readdir(join(dir, 'images/parts'))).length, 1, 'the whole layer lies there');
  const evil = await startRegistry();
  try {
    const { size } = registry.addBlob(layer);
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: sha256(layer), size }],
    };
    assert.equal(evil.addManifest('copy', 'v1', manifest, manifest.mediaType), digest);
    await assert.rejects(
      store.ensure({ reference: `${evil.host}/copy:v1`, wanted: { disk: '/elsewhere' }, signal, policy: 'Always' }),
      isPull(/not found in the registry/),
    );
  } finally {
    await evil.close();
  }
});

// S-499
test('a record of an older version is not believed: the registry is asked once, and then no more', async () => {
  registry.addImage('old', 'v1', [await tarOf([{ name: 'disk/a', content: 'x' }])]);
  await ensure('old:v1', { policy: 'IfNotPresent' });
  const [name] = await readdir(join(dir, 'images/pulled'));
  const path = join(dir, 'images/pulled', name!);
  const { access: _, ...before } = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify(before));
  await assert.rejects(ensure('old:v1', { policy: 'Never' }), { reason: 'ErrImageNeverPull' });
  await ensure('old:v1', { policy: 'IfNotPresent' });
  const asked = registry.requests.length;
  await ensure('old:v1', { policy: 'Never' });
  assert.equal(registry.requests.length, asked);
});

// S-067
test('the store stays within its bound by dropping what was used longest ago; imports stay', async () => {
  let now = systemClock.now();
  store = await openImageStore(join(dir, 'bounded'), { clock: { ...clock, now: () => now }, maxBytes: 700_000 });
  await writeFile(join(dir, 'raw'), Buffer.alloc(100_000, 7));
  await importImage(store, 'mine', join(dir, 'raw'), { signal });
  for (const name of ['a', 'b', 'c']) {
    now += 1000;
    registry.addImage(name, 'v1', [
      await tarOf([{ name: 'disk/a', content: Buffer.concat([DISK, Buffer.from(name)]) }]),
    ]);
    await ensure(`${name}:v1`);
  }
  assert.deepEqual(
    (await listImages(store)).map((i) => i.reference.replace(registry.host, 'r')),
    ['r/b:v1', 'r/c:v1', 'localhost/mine:latest'],
  );
  assert.equal((await readdir(join(dir, 'bounded/files'))).length, 3);
});

// S-067
test('importImage(), listImages() and removeImage() manage localhost/ images', async () => {
  await writeFile(join(dir, 'disk.raw'), DISK);
  await writeFile(join(dir, 'vmlinuz'), 'kernel');
  // S-1317: An import of a file (`coracle image import`, `coracle create --image FILE`) says its percent once it takes a second.
  const seen: number[] = [];
  const onPercent = (percent: number): void => void seen.push(percent);
  const options = { kernel: join(dir, 'vmlinuz'), onPercent, signal };
  const made = await importImage(store, 'tiny:v2', join(dir, 'disk.raw'), options);
  assert.deepEqual([seen.at(-1), new Set(seen).size], [100, seen.length]);
  assert.deepEqual([made.reference, made.format, made.kernel], ['localhost/tiny:v2', 'raw', true]);
  const image = await store.ensure({
    reference: 'localhost/tiny:v2',
    wanted: { disk: '/disk', kernel: '/boot/vmlinuz' },
    policy: 'Always',
    signal,
  });
  assert.deepEqual(await content(image), DISK);
  await assert.rejects(
    store.ensure({ reference: 'localhost/tiny', wanted: { disk: '/disk' }, signal }),
    isPull(/import it first/),
  );
  await assert.rejects(
    store.ensure({ reference: 'localhost/tiny:v2', wanted: { initrd: '/i' }, signal }),
    isPull(/without a initrd/),
  );
  await assert.rejects(importImage(store, 'quay.io/x', join(dir, 'disk.raw'), { signal }), /./);
  await assert.rejects(
    importImage(store, 'x', join(dir, 'nowhere'), { signal }),
    /cannot read disk \S+nowhere: no such file or directory$/,
  );
  assert.equal(await removeImage(store, 'tiny:v2'), true);
  assert.equal(await removeImage(store, 'tiny:v2'), false);
  assert.deepEqual(await listImages(store), []);
  assert.deepEqual(await readdir(join(dir, 'images/files')), []);
});

test('damaged records are as if absent', async () => {
  registry.addImage('x', 'v1', [await tarOf([{ name: 'disk/a', content: 'one' }])]);
  await ensure('x:v1');
  for (const folder of ['refs', 'pulled'])
    for (const name of await readdir(join(dir, 'images', folder)))
      await writeFile(join(dir, 'images', folder, name), '{"vers');
  assert.equal((await ensure('x:v1')).pulled, true);
});

test('plain http is for this machine only; challenges are parsed', () => {
  assert.equal(registryOrigin('127.0.0.1:5000'), 'http://127.0.0.1:5000');
  assert.equal(registryOrigin('localhost:5000'), 'http://localhost:5000');
  assert.equal(registryOrigin('localhost.example.com'), 'https://localhost.example.com');
  assert.equal(registryOrigin('127.0.0.1.example.com'), 'https://127.0.0.1.example.com');
  assert.equal(registryOrigin('docker.io'), 'https://registry-1.docker.io');
  assert.deepEqual(
    [...parseChallenge('Bearer realm="https://a/t",service=b, scope="c d"').parameters],
    [
      ['realm', 'https://a/t'],
      ['service', 'b'],
      ['scope', 'c d'],
    ],
  );
});
