import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Declared } from './declared.ts';
import { type DeleteMode, dependentsOf, readDependents, withDependents } from './dependents.ts';

const declared = (kind: string, name: string, needs: readonly string[] = [], own?: string): Declared => {
  const namespace = kind === 'Namespace' ? '' : 'shop';
  const annotations = own === undefined ? {} : { 'coracle.dev/delete-with-dependents': own };
  return {
    ref: { group: '', kind, namespace, name },
    dependsOn: needs.map((need) => ({ group: '', kind: 'ConfigMap', namespace: 'shop', name: need })),
    type: { group: '', version: 'v1', resource: `${kind.toLowerCase()}s`, kind, namespaced: namespace !== '' },
    object: { apiVersion: 'v1', kind, metadata: { name, namespace, annotations } },
  };
};

const rows: [what: string, mode: DeleteMode, set: readonly Declared[], said: Record<string, string>][] = [
  ['nothing while nobody asks for it', 'allow', [declared('ConfigMap', 'a'), declared('ConfigMap', 'b', ['a'])], {}],
  [
    'who depends on it by depends-on, and who lies in it',
    'refuse',
    [declared('ConfigMap', 'b', ['a']), declared('ConfigMap', 'a'), declared('Namespace', 'shop')],
    { a: 'refuse: ConfigMap, shop/b', shop: 'refuse: ConfigMap, shop/a; ConfigMap, shop/b' },
  ],
  [
    'what the object says itself comes first',
    'warn',
    [
      declared('ConfigMap', 'a', [], 'allow'),
      declared('ConfigMap', 'b', ['a'], 'refuse'),
      declared('ConfigMap', 'c', ['b']),
      declared('ConfigMap', 'd', ['c']),
    ],
    { b: 'refuse: ConfigMap, shop/c', c: 'warn: ConfigMap, shop/d' },
  ],
  [
    'one object asks for it, the sync does not',
    'allow',
    [declared('ConfigMap', 'a', [], 'refuse'), declared('ConfigMap', 'b', ['a']), declared('ConfigMap', 'c', ['b'])],
    { a: 'refuse: ConfigMap, shop/b' },
  ],
  ['an object that is not declared is not there to say it', 'refuse', [declared('ConfigMap', 'b', ['outside'])], {}],
];
for (const [what, mode, set, said] of rows)
  test(`objects say ${what}`, () => {
    const found = withDependents(set, mode).flatMap((one) => {
      const read = readDependents(one.dependents);
      return read ? [[one.ref.name, `${read.mode}: ${dependentsOf(read)}`]] : [];
    });
    assert.deepEqual(Object.fromEntries(found), said);
  });

test('ten are named, however many there are, and the annotation does not change with those that are not', () => {
  const of = (count: number): Dependent => {
    const many = Array.from({ length: count }, (_, at) =>
      declared('ConfigMap', `m${String(at).padStart(4, '0')}`, ['a']),
    );
    const text = withDependents([declared('ConfigMap', 'a'), ...many], 'refuse')[0]?.dependents ?? '';
    return { text, read: readDependents(text)! };
  };
  assert.equal(of(10).read.hasMore, false);
  assert.equal(of(11).read.objects.length, 10);
  assert.match(dependentsOf(of(11).read), /; and more$/);
  assert.equal(of(11).text, of(1000).text);
});
interface Dependent {
  readonly text: string;
  readonly read: NonNullable<ReturnType<typeof readDependents>>;
}

test('an annotation that cannot be read says nothing', () => {
  for (const text of [
    '',
    '{',
    '[]',
    'null',
    '{"onDelete":"never","objects":[]}',
    '{"onDelete":"refuse"}',
    'x'.repeat(1e5),
  ])
    assert.equal(readDependents(text), undefined);
  assert.deepEqual(readDependents('{"onDelete":"warn","objects":["a",1]}'), {
    mode: 'warn',
    objects: ['a'],
    hasMore: false,
  });
});
