import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import { createParsedObjects, loadedObject, stampObject } from './stored-object.ts';

const PLACE = { prefix: 'core/things', namespace: 'n', name: 'x', key: 'n/x' };

const load = (text: string) =>
  loadedObject(
    PLACE,
    { revision: 7, bytes: new TextEncoder().encode(text), isOnDisk: true },
    { parsed: createParsedObjects(1_000_000) },
  );

test('the metadata read from the bytes is that of the object but for managedFields, in any order and with any text', () => {
  const text = fc.string({ unit: 'binary' });
  const fields = fc.record({ managedFields: fc.array(fc.record({ manager: text, fieldsV1: fc.json() })) });
  const metadata = fc
    .tuple(
      fc.dictionary(text, fc.oneof(text, fc.dictionary(text, text), fc.array(text))),
      fc.option(fields),
      fc.boolean(),
    )
    .map(([others, managed, first]) => (first ? { ...managed, ...others } : { ...others, ...managed }));
  fc.assert(
    fc.property(metadata, text, (found, data) => {
      const object = { kind: 'Thing', apiVersion: 'v1', metadata: found, data: { '}': data } };
      const { managedFields: _, ...expected } = JSON.parse(JSON.stringify(found)) as UnstructuredObject['metadata'];
      const stored = load(JSON.stringify(object));
      assert.deepEqual(stored.metadata, expected);
      assert.ok(Object.isFrozen(stored.metadata));
    }),
  );
});

test('an object whose metadata does not follow its kind and version is parsed whole', () => {
  const stored = load('{"kind":"Thing","apiVersion":"v1","spec":{},"metadata":{"name":"x","managedFields":[]}}');
  assert.deepEqual(stored.metadata, { name: 'x' });
});

test('an integer that only an int64 holds is read back from the bytes as it was written', () => {
  const text = '{"kind":"Thing","apiVersion":"v1","metadata":{"name":"x"},"spec":{"n":[9223372036854775807,7]}}';
  assert.deepEqual(load(text).object['spec'], { n: [9223372036854775807n, 7] });
});

test('the metadata of an object that was just written is that of its bytes, whether or not it is still parsed', () => {
  const metadata = { name: 'x', labels: { a: 'b' }, managedFields: [{ manager: 'm' }] };
  const object: UnstructuredObject = { kind: 'Thing', apiVersion: 'v1', metadata };
  const stored = stampObject(PLACE, 7, { object }, { parsed: createParsedObjects(1_000_000) });
  const expected = { name: 'x', labels: { a: 'b' }, resourceVersion: '7' };
  assert.ok(stored.isParsed);
  assert.deepEqual(stored.metadata, expected);
  assert.ok(Object.isFrozen(stored.metadata));
  stored.forget();
  assert.deepEqual(stored.metadata, expected);
});
