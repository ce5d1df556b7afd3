import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { renderResources, renderTypes } from './derive.ts';
import { encodeTypes } from './encode-types.ts';

/** Folder with `builtin-types.json` and `builtin-resources.json`; the facts are not part of this repository. */
const FACTS = process.env['CORACLE_DESCRIPTOR_FACTS'] ?? '';
const PACKAGES = join(import.meta.dirname, '../../packages');
const TYPES = join(PACKAGES, 'apimachinery/src/types/types.generated.json');
const RESOURCES = join(PACKAGES, 'apiserver/src/kinds/builtin/resources.generated.json');
const skip =
  FACTS !== '' && existsSync(join(FACTS, 'builtin-types.json'))
    ? false
    : 'CORACLE_DESCRIPTOR_FACTS names no folder with builtin-types.json and builtin-resources.json';

const fact = async (name: string): Promise<never> => JSON.parse(await readFile(join(FACTS, name), 'utf8')) as never;

// S-021
test('the committed tables are what derive.ts makes of the facts', { skip }, async () => {
  const types = await readFile(TYPES, 'utf8');
  const resources = await readFile(RESOURCES, 'utf8');
  assert.equal(renderTypes(await fact('builtin-types.json')), types);
  assert.equal(renderResources(await fact('builtin-resources.json')), resources);
});

test('the committed tables stay small', async () => {
  const sizes = await Promise.all([TYPES, RESOURCES].map(async (file) => (await readFile(file)).length));
  assert.ok(sizes.reduce((a, b) => a + b) < 200_000);
});

test('encodeTypes() writes fields, keys and inlined numbers', () => {
  const { types, packages } = encodeTypes({
    'io.example.api.core.v1.Volume': {
      type: 'object',
      protobufInline: 2,
      required: ['name'],
      properties: {
        secret: { $ref: '#/definitions/io.example.api.core.v1.Secret' },
        name: { type: 'string', protobuf: 1 },
      },
    },
    'io.example.api.core.v1.Secret': {
      type: 'object',
      'x-kubernetes-map-type': 'atomic',
      'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Secret' }],
      properties: {
        data: { type: 'object', additionalProperties: { type: 'string', format: 'byte' }, protobuf: 2 },
        items: {
          type: 'array',
          items: { $ref: '#/definitions/io.example.api.core.v1.Volume' },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          'x-kubernetes-patch-merge-key': 'name',
          'x-kubernetes-patch-strategy': 'merge',
          protobuf: 3,
        },
      },
    },
  });
  assert.deepEqual(packages, { core: 'io.example.api.core.v1' });
  assert.deepEqual(types['core'], {
    Secret: 't#/v1/Secret|data:{y=2 items:[@Volume;m:name;k:name;p:merge=3',
    Volume: '|name!:s=1 secret:@Secret=2.6',
  });
});

test('encodeTypes() refuses what it cannot encode', () => {
  assert.throws(
    () => encodeTypes({ 'a.v1.B': { type: 'object', protobufInline: 1, properties: { x: { type: 'string' } } } }),
    /a\.v1\.B\.x: no number inside the inlined message/,
  );
});
