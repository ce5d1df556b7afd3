import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeSwagger } from './merge-swagger.ts';

const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const own = () => ({
  swagger: '2.0',
  paths: { '/api/v1/pods': { get: ref('Pod') } },
  definitions: { Pod: { type: 'object' }, Meta: { type: 'object', description: 'ours' } },
});

test('paths of the group version come with the definitions they need, and no others', () => {
  const merged = mergeSwagger(own(), [
    {
      path: '/apis/g/v1',
      document: {
        paths: {
          '/apis/g/v1/things': { get: ref('Thing') },
          '/apis/g/v10/things': { get: ref('Other') },
          '/healthz': { get: {} },
        },
        definitions: { Thing: { properties: { part: ref('Part') } }, Part: { type: 'string' }, Other: {}, Unused: {} },
      },
    },
  ]);
  assert.deepEqual(Object.keys(merged['paths'] as object), ['/api/v1/pods', '/apis/g/v1/things']);
  assert.deepEqual(Object.keys(merged['definitions'] as object), ['Pod', 'Meta', 'Thing', 'Part']);
});

test('a definition of the same name is shared when it is the same, and renamed when it is not', () => {
  const before = own();
  const merged = mergeSwagger(before, [
    {
      path: '/apis/g/v1',
      document: {
        paths: { '/apis/g/v1/things': { get: [ref('Pod'), ref('Meta')] } },
        definitions: { Pod: { type: 'object' }, Meta: { type: 'object', description: 'theirs', self: ref('Meta') } },
      },
    },
  ]);
  const paths = merged['paths'] as Record<string, unknown>;
  assert.deepEqual(paths['/apis/g/v1/things'], { get: [ref('Pod'), ref('Meta_v2')] });
  const definitions = merged['definitions'] as Record<string, unknown>;
  assert.deepEqual(definitions['Meta_v2'], { type: 'object', description: 'theirs', self: ref('Meta_v2') });
  assert.deepEqual(before, own(), 'what was merged into is not changed');
});

test('definitions that hold themselves end', () => {
  const document = { paths: { '/apis/g/v1': ref('A') }, definitions: { A: { b: ref('B') }, B: { a: ref('A') } } };
  assert.deepEqual(Object.keys(mergeSwagger(own(), [{ path: '/apis/g/v1', document }])['definitions'] as object), [
    'Pod',
    'Meta',
    'A',
    'B',
  ]);
});
