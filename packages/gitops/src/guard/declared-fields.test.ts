import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../apimachinery/src/meta/object.ts';
import { changedFields, declaredFieldsOf } from './declared-fields.ts';

const fields = {
  'f:metadata': {
    'f:annotations': { 'f:goodbye': {}, 'f:configmanagement.gke.io/managed': {} },
    'f:labels': { 'f:app.kubernetes.io/managed-by': {} },
  },
  'f:spec': {
    'f:empty': {},
    'f:whole': {},
    'f:items': { 'k:{"name":"a"}': { '.': {}, 'f:name': {}, 'f:image': {} } },
    'f:set': { 'v:"x"': {} },
  },
};
interface Thing extends KubeObject {
  spec: {
    empty?: Record<string, string>;
    whole: Record<string, string>;
    items: { name: string; image: string; more?: number }[];
    set: string[];
  };
}
const declared: Thing = {
  apiVersion: 'example.org/v1',
  kind: 'Thing',
  metadata: { name: 'a', annotations: { goodbye: 'moon' } },
  spec: { empty: {}, whole: { k: '1' }, items: [{ name: 'a', image: 'i' }], set: ['x'] },
};
const managed = (fieldsV1: Record<string, unknown>, more: object = {}): KubeObject => ({
  ...declared,
  metadata: {
    ...declared.metadata,
    managedFields: [
      { manager: 'kubectl', operation: 'Update', apiVersion: 'example.org/v1', fieldsV1: { 'f:data': {} } },
      { manager: 'configsync.gke.io', operation: 'Apply', apiVersion: 'example.org/v1', fieldsV1, ...more },
    ],
  },
});
const annotation = declaredFieldsOf(managed(fields), declared)!;

test('the annotation is what our apply owns, without metadata of management', () => {
  assert.deepEqual(JSON.parse(annotation), {
    'f:metadata': { 'f:annotations': { 'f:goodbye': {} } },
    'f:spec': { ...fields['f:spec'], 'f:empty': { '.': {} } },
  });
  assert.equal(declaredFieldsOf(managed(fields, { operation: 'Update' }), declared), undefined);
  assert.equal(
    declaredFieldsOf(managed({ 'f:metadata': { 'f:labels': fields['f:metadata']['f:labels'] } }), declared),
    undefined,
  );
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`f:key-${at}`, {}]));
  assert.equal(declaredFieldsOf(managed({ 'f:data': many }), declared), undefined);
});

const with_ = (change: (copy: Thing) => void): KubeObject => {
  const copy = structuredClone(declared);
  change(copy);
  return copy;
};
// S-960
for (const [what, change, paths] of [
  ['nothing', () => {}, []],
  ['a declared value', (o) => (o.metadata.annotations!['goodbye'] = 'world'), ['.metadata.annotations.goodbye']],
  [
    'a declared value that is removed',
    (o) => delete o.metadata.annotations!['goodbye'],
    ['.metadata.annotations.goodbye'],
  ],
  ['another annotation', (o) => (o.metadata.annotations!['more'] = '1'), []],
  ['what is put into an empty map', (o) => (o.spec.empty!['k'] = '1'), []],
  ['an empty map that is removed', (o) => delete o.spec.empty, ['.spec.empty']],
  ['a map that is declared whole', (o) => (o.spec.whole['more'] = '1'), ['.spec.whole']],
  ['another item before it', (o) => o.spec.items.unshift({ name: 'b', image: 'j' }), []],
  ['a field of an item that is not declared', (o) => (o.spec.items[0]!.more = 1), []],
  ['a declared field of an item', (o) => (o.spec.items[0]!.image = 'j'), ['.spec.items[name="a"].image']],
  ['an item that is removed', (o) => (o.spec.items = []), ['.spec.items[name="a"]']],
  ['another member of a set', (o) => o.spec.set.push('y'), []],
  ['a member that is removed', (o) => (o.spec.set = ['y']), ['.spec.set[="x"]']],
] as [string, (object: Thing) => unknown, string[]][])
  test(`changed fields: ${what}`, () => {
    assert.deepEqual(changedFields(annotation, declared, with_(change)), paths);
    assert.deepEqual(changedFields(annotation, with_(change), declared).length > 0, paths.length > 0);
  });

test('an annotation that cannot be read guards nothing', () => {
  for (const text of ['', '{', '[]', '{"f:spec":{"k:{":{}}}', '{"x":1}'])
    assert.deepEqual(
      changedFields(
        text,
        declared,
        with_((o) => (o.spec.set = [])),
      ),
      [],
    );
});
