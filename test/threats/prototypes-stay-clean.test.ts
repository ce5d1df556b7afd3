/** Threat 23: `__proto__`, `constructor` and `prototype` are plain data or refused, wherever they stand and however they come. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { DEFINITIONS, definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const THINGS = '/apis/example.com/v1/namespaces/default/things';
let server: InProcessServer;
let clean: readonly string[];
before(async () => {
  clean = Object.getOwnPropertyNames(Object.prototype).sort();
  server = await startServer();
  await establish(server, definition({ name: 'thing' }));
});
after(() => server.stop());

const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'polluted', 'a'];
/** JSON text, since an object literal would set the prototype. */
const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('1', 'true', 'null', '"x"'),
    tie('object'),
    fc.array(tie('value'), { maxLength: 2 }).map((items) => `[${items.join(',')}]`),
  ),
  object: fc
    .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), tie('value')), { maxLength: 3, selector: ([key]) => key })
    .map((members) => `{${members.map(([key, value]) => `"${key}":${value}`).join(',')}}`),
})).object;

function assertClean(): void {
  assert.deepEqual(Object.getOwnPropertyNames(Object.prototype).sort(), clean);
  assert.deepEqual(Object.keys(Object.prototype), []);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.equal(([] as unknown as Record<string, unknown>)['polluted'], undefined);
}

// S-217: `__proto__` and its like are plain data or refused, wherever they stand; no pattern or nearly right text takes
//   more than linear time.
test('as a whole object, by every kind of patch, as JSON and as YAML', async () => {
  await server.create(THINGS, {
    apiVersion: 'example.com/v1',
    kind: 'Thing',
    metadata: { name: 'x' },
    spec: {},
  });
  await server.create(MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } });
  const ways = ['post', 'put', 'merge', 'strategic', 'json', 'apply', 'yaml'] as const;
  await fc.assert(
    fc.asyncProperty(jsonText, fc.constantFrom(...ways), fc.boolean(), async (text, way, custom) => {
      const path = custom ? THINGS : MAPS;
      const kind = custom ? '"apiVersion":"example.com/v1","kind":"Thing"' : '"apiVersion":"v1","kind":"ConfigMap"';
      const whole = `{${kind},"metadata":{"name":"x"},"${custom ? 'spec' : 'data'}":${text},"__proto__":${text}}`;
      const send = (method: string, target: string, type: string, body: string) =>
        server.request(method, target, { body, headers: { 'content-type': type } });
      const calls = {
        post: () => send('POST', `${path}?dryRun=All`, 'application/json', whole.replace('"x"', '"y"')),
        yaml: () => send('POST', `${path}?dryRun=All`, 'application/yaml', whole.replace('"x"', '"y"')),
        put: () => send('PUT', `${path}/x`, 'application/json', whole),
        merge: () =>
          send(
            'PATCH',
            `${path}/x`,
            'application/merge-patch+json',
            `{"spec":${text},"metadata":{"annotations":${text}},"__proto__":${text}}`,
          ),
        strategic: () =>
          send(
            'PATCH',
            `${path}/x`,
            'application/strategic-merge-patch+json',
            `{"data":${text},"metadata":{"labels":${text}}}`,
          ),
        json: () =>
          send(
            'PATCH',
            `${path}/x`,
            'application/json-patch+json',
            `[{"op":"add","path":"/spec","value":${text}},{"op":"add","path":"/__proto__/polluted","value":1}]`,
          ),
        apply: () => send('PATCH', `${path}/x?fieldManager=m&force=true`, 'application/apply-patch+yaml', whole),
      };
      const { status, text: reported } = await calls[way]();
      // Upstream's own answer to an apply with a field that no schema has.
      const undeclared = status === 500 && reported.includes('failed to create typed patch object');
      assert.ok(status < 500 || undeclared, `${way}: ${status} ${reported.slice(0, 300)}`);
      assertClean();
      if (way === 'post' && custom && status === 201) {
        const back = JSON.parse(reported).spec;
        assert.deepEqual(JSON.parse(JSON.stringify(back)), JSON.parse(text), 'the data came back as it was sent');
      }
    }),
    { numRuns: 500 },
  );
});

test('as the name of a property in a schema, a label, an annotation, a group and a user', async () => {
  const spec = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"integer"}}}',
  );
  await server.request('POST', DEFINITIONS, { body: definition({ name: 'proto', spec }) });
  for (const key of KEYS) {
    await server.request('POST', MAPS, {
      body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"l-","labels":{"${key}":"v"},"annotations":{"${key}":"v"}}}`,
    });
    const found = await server.request('GET', `${MAPS}?labelSelector=${key}`);
    // A label begins with a letter or a digit.
    if (key === '__proto__') assert.equal(found.status, 400);
    else assert.deepEqual([found.status, found.json.items.length], [200, 1], `label ${key}`);
    await server.request('GET', MAPS, { headers: { 'impersonate-user': key, 'impersonate-group': key } });
    await server.request('GET', `${MAPS}?fieldSelector=${key}%3Dx&${key}=1`);
    await server.request('GET', `/apis/${key}/${key}/namespaces/${key}/${key}/${key}`);
  }
  assertClean();
});

test('the program runs in a Node without __proto__', { timeout: 600_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-proto-'));
  const plane = await startProcess(dir, { controllers: '', nodeArguments: ['--disable-proto=delete'] });
  const admin = adminOf(dir);
  const maps = { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true };
  await admin.client.create(maps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'm', namespace: 'default' },
  });
  await admin.close();
  await plane.kill('SIGTERM');
  rmSync(dir, { recursive: true, force: true });
});
