import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, crc32, deflateRawSync, gunzipSync, gzipSync } from 'node:zlib';
import type { ResourceInfo } from '../../../apimachinery/src/types/resource.ts';
import { createFakeClock, type FakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { type Compressor, gzipBlock } from '../../../runtime/src/http/gzip-blocks.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import type { StoredObject } from '../cache/object-store.ts';
import { createParsedObjects, stampObject } from '../cache/stored-object.ts';
import { builtinResources } from '../kinds/builtin/builtin-resources.ts';
import { MAX_UNUSED_MS, type PackableList, PackedLists } from './packed-lists.ts';

const CONFIG_MAPS = builtinResources().find(({ group, resource }) => group === '' && resource === 'configmaps')!;
const memory = { parsed: createParsedObjects(1024 * 1024) };

/** One stored state of a ConfigMap; its data do not compress to nothing. */
function stored(name: string, revision: number, bytes = 2000): StoredObject {
  let text = '';
  for (let n = revision + 1; text.length < bytes; n = Math.imul(n, 48271) % 0x7fffffff) text += n.toString(36);
  return stampObject(
    { prefix: '/configmaps', namespace: 'a', name, key: `a/${name}` },
    revision,
    { object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'a', name }, data: { text } } },
    memory,
  );
}

const many = (count: number, first = 1): StoredObject[] =>
  Array.from({ length: count }, (_, i) => stored(`m${String(i).padStart(4, '0')}`, first + i));

const listOf = (items: readonly StoredObject[], more: Partial<PackableList> = {}): PackableList => ({
  info: CONFIG_MAPS as ResourceInfo,
  items,
  head: '{"items":[',
  tail: ']}\n',
  signal: NEVER,
  ...more,
});

const textOf = (parts: readonly Uint8Array[]): string => gunzipSync(Buffer.concat(parts)).toString();

/** What the list is without compression, made of the objects and not of their bytes. */
const plain = (items: readonly StoredObject[]): string =>
  `{"items":[${items
    .map(({ object }) => {
      const { kind: _kind, apiVersion: _version, ...rest } = object;
      return JSON.stringify(rest);
    })
    .join(',')}]}\n`;

/** Compresses at once or when it is asked to, and counts. */
class CountingCompressor implements Compressor {
  blocks = 0;
  running = 0;
  most = 0;
  /** Resolvers of blocks that wait; undefined = nothing waits. */
  held: (() => void)[] | undefined;

  gzip(bytes: Uint8Array): Promise<Uint8Array> {
    return Promise.resolve(gzipSync(bytes));
  }

  async block(bytes: Uint8Array) {
    this.blocks++;
    this.running++;
    this.most = Math.max(this.most, this.running);
    if (this.held) await new Promise<void>((go) => this.held?.push(go));
    this.running--;
    const deflated = deflateRawSync(bytes, { level: 1, finishFlush: constants.Z_SYNC_FLUSH });
    return gzipBlock({ bytes: new Uint8Array(deflated), size: bytes.length, crc: crc32(bytes) });
  }

  /** Lets all go that wait, and those who come until the promise is settled. */
  async releaseUntil(done: Promise<unknown>): Promise<void> {
    let settled = false;
    const end = (): void => {
      settled = true;
    };
    done.then(end, end);
    while (!settled) {
      for (const go of this.held!.splice(0)) go();
      await new Promise((next) => setImmediate(next));
    }
  }
}

const begin = (maxBytes?: number): { lists: PackedLists; compressor: CountingCompressor; clock: FakeClock } => {
  const compressor = new CountingCompressor();
  const clock = createFakeClock();
  return { lists: new PackedLists(compressor, clock, maxBytes), compressor, clock };
};

test('pack() gives the same text as the list has, for the first reader and from what was kept', async () => {
  const { lists, compressor } = begin();
  for (const count of [0, 1, 2, 500]) {
    const items = many(count);
    assert.equal(textOf(await lists.pack(listOf(items))), plain(items));
    const { blocks } = compressor;
    const again = lists.pack(listOf(items));
    assert.ok(!(again instanceof Promise), 'what is kept is there at once');
    assert.equal(textOf(again), plain(items));
    assert.equal(compressor.blocks, blocks);
  }
});

test('a write compresses the run it falls into and nothing else', async () => {
  const { lists, compressor } = begin();
  const items = many(1000);
  await lists.pack(listOf(items));
  const all = compressor.blocks;
  assert.ok(all > 8, `${all} runs`);
  const changed = items.with(500, stored('m0500', 5000));
  assert.equal(textOf(await lists.pack(listOf(changed))), plain(changed));
  // Its revision may end a run, or no longer end one.
  assert.ok(compressor.blocks - all <= 2, `${compressor.blocks - all} runs were compressed`);
  const less = changed.toSpliced(200, 1);
  const before = compressor.blocks;
  assert.equal(textOf(await lists.pack(listOf(less))), plain(less));
  assert.ok(compressor.blocks - before <= 2, `${compressor.blocks - before} runs after a deletion`);
  const old = await lists.pack(listOf(items));
  assert.equal(textOf(old), plain(items), 'the state before, for a reader of pages');
});

test('other metadata around the same objects costs no compression', async () => {
  const { lists, compressor } = begin();
  const items = many(300);
  await lists.pack(listOf(items));
  const { blocks } = compressor;
  const head = '{"metadata":{"resourceVersion":"9999"},"items":[';
  const text = textOf(await lists.pack(listOf(items, { head })));
  assert.equal(text, plain(items).replace('{"items":[', head));
  assert.equal(compressor.blocks, blocks);
});

test('two resources that show the same stored objects do not share runs', async () => {
  const { lists, compressor } = begin();
  const items = many(100);
  await lists.pack(listOf(items));
  const { blocks } = compressor;
  await lists.pack(listOf(items, { info: { ...CONFIG_MAPS } as ResourceInfo }));
  assert.equal(compressor.blocks, 2 * blocks);
});

// S-302
test('readers who ask at the same time share one compression', async () => {
  const { lists, compressor } = begin();
  compressor.held = [];
  const items = many(500);
  const readers = Promise.all(Array.from({ length: 20 }, async () => lists.pack(listOf(items))));
  await compressor.releaseUntil(readers);
  const bodies = await readers;
  for (const body of bodies) assert.equal(textOf(body), plain(items));
  const shared = compressor.blocks;
  compressor.held = undefined;
  const alone = begin();
  await alone.lists.pack(listOf(items));
  assert.equal(shared, alone.compressor.blocks);
});

test('at most four runs are compressed at a time, whoever asks', async () => {
  const { lists, compressor } = begin();
  compressor.held = [];
  const all = Promise.all([0, 1, 2].map(async (n) => lists.pack(listOf(many(400, 1 + n * 1000)))));
  await compressor.releaseUntil(all);
  assert.equal(compressor.most, 4);
});

// S-302
test('a first reader who goes away ends his own list and spoils nobody else’s', async () => {
  const { lists, compressor } = begin();
  compressor.held = [];
  const items = many(1000);
  const gone = new AbortController();
  const first = Promise.resolve(lists.pack(listOf(items, { signal: gone.signal })));
  const refused = assert.rejects(first, { code: 504 });
  gone.abort(new Error('the connection is closed'));
  const second = Promise.resolve(lists.pack(listOf(items)));
  await compressor.releaseUntil(second);
  await refused;
  assert.equal(textOf(await second), plain(items));
});

test('a reader who goes away begins no further runs', async () => {
  const { lists, compressor } = begin();
  compressor.held = [];
  const gone = new AbortController();
  const first = Promise.resolve(lists.pack(listOf(many(2000), { signal: gone.signal })));
  const refused = assert.rejects(first, { code: 504 });
  gone.abort(new Error('the connection is closed'));
  await compressor.releaseUntil(first);
  await refused;
  assert.equal(compressor.blocks, 4);
});

test('a compression that failed is not kept', async () => {
  const { lists, compressor } = begin();
  const items = many(3);
  const { block } = compressor;
  compressor.block = () => Promise.reject(new Error('no memory'));
  await assert.rejects(Promise.resolve(lists.pack(listOf(items))), /no memory/);
  compressor.block = block;
  assert.equal(textOf(await lists.pack(listOf(items))), plain(items));
});

// S-302
test('what is kept stays below its bound, and the longest unused goes first', async () => {
  const bound = 400_000;
  const { lists, compressor } = begin(bound);
  const wanted = many(100);
  await lists.pack(listOf(wanted));
  for (let n = 0; n < 20; n++) {
    await lists.pack(listOf(many(100, 1000 * (n + 1))));
    assert.ok(lists.keptBytes <= bound, `${lists.keptBytes} bytes`);
    const { blocks } = compressor;
    await lists.pack(listOf(wanted));
    assert.equal(compressor.blocks, blocks, 'what is asked for all the time stays');
  }
  assert.ok(lists.keptBytes > bound / 2, 'the bound is made use of');
});

test('what nobody asks for any more goes after a minute', async () => {
  const { lists, clock } = begin();
  const [used, unused] = [many(100), many(100, 1000)];
  await lists.pack(listOf(used));
  const one = lists.keptBytes;
  await lists.pack(listOf(unused));
  await clock.advance(MAX_UNUSED_MS / 2);
  await lists.pack(listOf(used));
  await clock.advance(MAX_UNUSED_MS / 2);
  assert.equal(lists.keptBytes, one);
  await clock.advance(2 * MAX_UNUSED_MS);
  assert.equal(lists.keptBytes, 0);
});
