import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject, UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import { parsePath, parseSubstitutions, sourceId, substitute } from './substitutions.ts';

const TARGET = { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'target' };
const target = (): UnstructuredObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'target', namespace: 'shop' },
  data: { url: 'http://%host%:%port%/%host%', plain: 'x', 'a.b': 'y' },
  items: [
    { name: 'first', value: 1 },
    { name: 'second', value: 2 },
  ],
});
const source: KubeObject & { spec: { clusterIP: string; ports: object[] } } = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'source', namespace: 'shop' },
  spec: {
    clusterIP: '10.0.0.1',
    ports: [
      { name: 'http', port: 80 },
      { name: 'tls', port: 443 },
    ],
  },
};
const SOURCE = { group: '', kind: 'Service', namespace: 'shop', name: 'source' };
const sources = new Map(['', 'v1'].map((sourceVersion) => [sourceId({ source: SOURCE, sourceVersion }), source]));
const item = (sourcePath: string, targetPath: string, token?: string): string =>
  JSON.stringify([{ sourceRef: { kind: 'Service', name: 'source' }, sourcePath, targetPath, ...(token && { token }) }]);
const read = (text: string) => parseSubstitutions(text, TARGET, () => undefined);
const run = (text: string): UnstructuredObject => substitute(target(), read(text), sources);

// S-962
for (const [what, text, changed] of [
  ['the whole value, of any type', item('$.spec.ports', '$.data.plain'), { plain: source.spec.ports }],
  [
    'every place of a token',
    item('$.spec.clusterIP', '$.data.url', '%host%'),
    { url: 'http://10.0.0.1:%port%/10.0.0.1' },
  ],
  [
    'a number in a text',
    item('$.spec.ports[?(@.name=="tls")].port', '$.data.url', '%port%'),
    { url: 'http://%host%:443/%host%' },
  ],
  ['a token that is not there', item('$.spec.clusterIP', '$.data.plain', '%host%'), {}],
  ['a name with a dot, the last item', item('$.spec.ports[-1].name', "$.data['a.b']"), { 'a.b': 'tls' }],
] as [string, string, object][])
  test(`fills in ${what}`, () => {
    const before = target();
    assert.deepEqual(run(text), { ...before, data: { ...(before['data'] as object), ...changed } });
  });

test('items are filled in by name and number, one after the other', () => {
  const text = `
- sourceRef: {apiVersion: v1, kind: Service, name: source, namespace: shop}
  sourcePath: $.spec.ports[0].port
  targetPath: $.items[?(@.name=="second")].value
- sourceRef: {group: "", kind: Service, name: source}
  sourcePath: $.spec.ports[1].port
  targetPath: $.items[0].value
`;
  assert.deepEqual(run(text)['items'], [
    { name: 'first', value: 443 },
    { name: 'second', value: 80 },
  ]);
  assert.deepEqual(
    read(text).map(({ sourceVersion }) => sourceVersion),
    ['v1', undefined],
  );
});

// S-962
for (const [text, problem] of [
  [
    item('$.spec.nothing', '$.data.plain'),
    /source field \(\$.spec.nothing\) not present in source object \(Service, shop\/source\)/,
  ],
  [item('$.spec.clusterIP', '$.data.nothing'), /target field \(\$.data.nothing\) not present/],
  [item('$.spec.clusterIP', '$.items[0].value', 'x'), /token is specified, but target field/],
  [item('$.spec.ports[7]', '$.data.plain'), /source field/],
  [item('$.spec', '$.metadata.constructor'), /target field/],
  [item('$.spec', '$.data.plain').replace('"source"', '"other"'), /source object \(Service, shop\/other\) not found/],
] as [string, RegExp][])
  test(`does not fill in ${text}`, () => {
    assert.throws(() => run(text), problem);
  });

for (const [text, problem] of [
  ['{}', /not a list/],
  ['- 1', /item 0 is not a map/],
  ['- {}', /no sourceRef/],
  ['[', /./],
  ['- {sourceRef: {kind: Service}}', /needs a kind and a name/],
  ['- {sourceRef: {kind: Service, name: 1}}', /sourceRef.name is not a string/],
  ['- {sourceRef: {kind: ConfigMap, name: target}, sourcePath: $.a, targetPath: $.b}', /refers to the object itself/],
  ['- {sourceRef: {kind: Service, name: a}, targetPath: $.b}', /does not begin with \$/],
  [item('$.a[*]', '$.b'), /cannot be read at "\[\*\]"/],
  [item('$', '$.b'), /names no field/],
  [item('$..a', '$.b'), /cannot be read/],
  [JSON.stringify(Array.from({ length: 101 }, () => ({}))), /101 items/],
] as [string, RegExp][])
  test(`refuses ${text.slice(0, 100)}`, () => {
    assert.throws(() => read(text), problem);
  });

test('without a namespace a source is where the object is, unless its kind is in none', () => {
  const [namespaced] = read(item('$.a', '$.b'));
  const [cluster] = parseSubstitutions(item('$.a', '$.b'), TARGET, () => false);
  assert.deepEqual([namespaced?.source.namespace, cluster?.source.namespace], ['shop', '']);
  assert.equal(parsePath('$.a').steps.length, 1);
});
