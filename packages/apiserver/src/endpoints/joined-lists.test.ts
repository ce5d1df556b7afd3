import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceInfo } from '../../../apimachinery/src/types/resource.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { StoredObject } from '../cache/object-store.ts';
import { createParsedObjects, stampObject } from '../cache/stored-object.ts';
import { builtinResources } from '../kinds/builtin/builtin-resources.ts';
import { createJoinedLists, type JoinedLists, MAX_JOINED_BYTES, MAX_UNUSED_MS } from './joined-lists.ts';

const CONFIG_MAPS: ResourceInfo = builtinResources().find(
  ({ group, resource }) => group === '' && resource === 'configmaps',
)!;
const memory = { parsed: createParsedObjects(1024 * 1024) };

const stored = (name: string, revision: number, bytes = 2000): StoredObject =>
  stampObject(
    { prefix: '/configmaps', namespace: 'a', name, key: `a/${name}` },
    revision,
    {
      object: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace: 'a', name },
        data: { text: String(revision).padEnd(bytes, 'x') },
      },
    },
    memory,
  );

const many = (count: number, first = 1): StoredObject[] =>
  Array.from({ length: count }, (_, i) => stored(`m${String(i).padStart(4, '0')}`, first + i));

const ask = (lists: JoinedLists, items: readonly StoredObject[], info = CONFIG_MAPS): readonly Uint8Array[] =>
  lists.parts({ info, items, head: '{"items":[', tail: ']}\n' });

const textOf = (parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString();

/** What the list is, made of the objects and not of their bytes. */
const plain = (items: readonly StoredObject[]): string =>
  `{"items":[${items
    .map(({ object }) => {
      const { kind: _kind, apiVersion: _version, ...rest } = object;
      return JSON.stringify(rest);
    })
    .join(',')}]}\n`;

const sizeOf = (items: readonly StoredObject[]): number => items.reduce((sum, { bytes }) => sum + bytes.length, 0);

// S-331: Every reader of a plain list gets the same text; what is kept of it stays within its bound and goes after a
//   minute.
test('every reader gets the same text, whether its runs are joined or not', () => {
  const lists = createJoinedLists(createFakeClock());
  for (const count of [0, 1, 2, 30, 500])
    for (let reader = 1; reader <= 3; reader++) {
      const items = many(count);
      assert.equal(textOf(ask(lists, items)), plain(items), `${count} objects, reader ${reader}`);
    }
});

test('the first reader leaves no copy, the second one does, the third is sent it', () => {
  const lists = createJoinedLists(createFakeClock());
  const items = many(500);
  assert.ok(ask(lists, items).length > 500);
  assert.ok(lists.keptBytes < sizeOf(items) / 20, `${lists.keptBytes} bytes after one reader`);
  const second = ask(lists, items);
  assert.ok(lists.keptBytes > sizeOf(items) / 2);
  const third = ask(lists, items);
  assert.ok(third.length < 100, `${third.length} parts`);
  for (const [i, part] of third.entries()) if (part.length > 64 * 1024) assert.equal(part, second[i]);
});

test('a write is seen by the next reader, and costs the run it falls into', () => {
  const lists = createJoinedLists(createFakeClock());
  const before = many(500);
  for (let reader = 1; reader <= 3; reader++) ask(lists, before);
  const after = before.with(250, stored('m0250', 1000));
  const parts = ask(lists, after);
  assert.equal(textOf(parts), plain(after));
  const shared = ask(lists, before).filter((part) => part.length > 64 * 1024 && parts.includes(part));
  assert.ok(shared.length >= 2, `${shared.length} runs are shared`);
});

test('two resources that show the same stored objects do not share runs', () => {
  const lists = createJoinedLists(createFakeClock());
  const items = many(100);
  const custom = { ...CONFIG_MAPS, strategy: { ...CONFIG_MAPS.strategy, custom: true } };
  for (let reader = 1; reader <= 3; reader++) {
    assert.match(textOf(ask(lists, items)), /^\{"items":\[\{"metadata":/);
    assert.match(textOf(ask(lists, items, custom)), /^\{"items":\[\{"kind":"ConfigMap"/);
  }
});

test('what a webhook shows is not kept: it is asked anew for each list', () => {
  const lists = createJoinedLists(createFakeClock());
  const items = many(100);
  const remote = { ...CONFIG_MAPS, remote: {} } as unknown as ResourceInfo;
  for (let reader = 1; reader <= 3; reader++) assert.equal(textOf(ask(lists, items, remote)), plain(items));
  assert.equal(lists.keptBytes, 0);
});

// S-331
test('very large lists are left as they lie, and all that is kept stays below its bound', () => {
  const lists = createJoinedLists(createFakeClock());
  const large = many(2500);
  assert.ok(sizeOf(large) > MAX_JOINED_BYTES / 4);
  for (let reader = 1; reader <= 3; reader++) assert.equal(textOf(ask(lists, large)), plain(large));
  assert.equal(lists.keptBytes, 0);
  for (let list = 0; list < 25; list++)
    for (let reader = 1; reader <= 2; reader++) {
      ask(lists, many(500, 10_000 + 500 * list));
      assert.ok(lists.keptBytes <= MAX_JOINED_BYTES);
    }
  assert.ok(lists.keptBytes > MAX_JOINED_BYTES / 2);
});

// S-331
test('what nobody asks for any more goes after a minute', async () => {
  const clock = createFakeClock();
  const lists = createJoinedLists(clock);
  for (let reader = 1; reader <= 2; reader++) ask(lists, many(500));
  assert.ok(lists.keptBytes > 0);
  await clock.advance(2 * MAX_UNUSED_MS);
  assert.equal(lists.keptBytes, 0);
});
