import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { findJsonPath, JsonPathError, readJsonPath } from './json-path.ts';

const OBJECT = {
  metadata: { name: 'vm-1', labels: { 'kubernetes.io/os': 'linux', 'a.b': 'dotted' } },
  spec: { replicas: 3, ports: [{ port: 80 }, { port: 443, name: 'tls' }], empty: [] },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', weight: 1 },
      { type: 'Paused', status: 'False', weight: 5 },
    ],
  },
};

test('readJsonPath() gives the first value of a path', () => {
  const cases: [string, unknown][] = [
    ['.metadata.name', 'vm-1'],
    ['{.metadata.name}', 'vm-1'],
    ['$.metadata.name', 'vm-1'],
    ['.spec.replicas', 3],
    ['.spec.ports[0].port', 80],
    ['.spec.ports[-1].port', 443],
    ['.spec.ports[5].port', undefined],
    ['.spec.ports[*].name', 'tls'],
    ['.spec.empty[0]', undefined],
    [".metadata.labels['a.b']", 'dotted'],
    ['.metadata.labels["kubernetes.io/os"]', 'linux'],
    ['.metadata.labels.kubernetes\\.io/os', 'linux'],
    ['.metadata.labels.*', 'linux'],
    ['.status.conditions[?(@.type=="Ready")].status', 'True'],
    [".status.conditions[?(@.type=='Paused')].status", 'False'],
    ['.status.conditions[?(@.weight > 2)].type', 'Paused'],
    ['.status.conditions[?(@.type != "Ready")].type', 'Paused'],
    ['.status.conditions[?(@.missing)].type', undefined],
    ['.status.conditions[?(@.type=="]")].status', undefined],
    ['.status.absent.deeper', undefined],
    ['.metadata.constructor', undefined],
    ['.__proto__', undefined],
  ];
  for (const [path, expected] of cases) assert.deepEqual(readJsonPath(OBJECT, path), expected, path);
});

test('findJsonPath() gives every value', () => {
  assert.deepEqual(findJsonPath(OBJECT, '.spec.ports[*].port'), [80, 443]);
  assert.deepEqual(findJsonPath(OBJECT, '.spec.ports[1:].port'), [443]);
  assert.deepEqual(findJsonPath(OBJECT, '.'), [OBJECT]);
  assert.deepEqual(findJsonPath(OBJECT, '..type'), ['Ready', 'Paused']);
  assert.deepEqual(findJsonPath(OBJECT, '.spec..port'), [80, 443]);
  assert.deepEqual(findJsonPath(OBJECT, '.spec.ports..name'), ['tls']);
  assert.deepEqual(findJsonPath(OBJECT, ".metadata['name','absent','name']"), ['vm-1', 'vm-1']);
  assert.deepEqual(findJsonPath(OBJECT, '.spec.ports[1,0].port'), [443, 80]);
});

test('a path that descends again and again ends', () => {
  let deep: unknown = 1;
  for (let level = 0; level < 900; level++) deep = { a: deep, b: [deep] };
  assert.ok(findJsonPath({ a: [1, { b: 2 }] }, '..*').length === 4);
  const path = `${'..*'.repeat(20)}.nowhere`;
  assert.deepEqual(findJsonPath(deep, path), []);
});

test('a path outside the language is refused with its text', () => {
  for (const path of ['spec', '..', '.a[', '.a[b]', '.a[?(@.x==)]', '.a[?(@.x==y)]', '.a..', '.a[0,b]']) {
    assert.throws(() => readJsonPath(OBJECT, path), JsonPathError, path);
  }
});

test('a quoted name reads the member of that name, whatever it is', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer(), (name, value) => {
      const object = Object.create(null) as Record<string, unknown>;
      object[name] = value;
      const quoted = name.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
      assert.equal(readJsonPath({ o: JSON.parse(JSON.stringify(object)) }, `.o['${quoted}']`), value);
    }),
  );
});
