import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';

before(async () => {
  server = await startServer();
});
after(() => server.stop());

const patch = (path: string, type: string, body: unknown) =>
  server.request('PATCH', path, { body, headers: { 'content-type': `application/${type}` } });

async function fresh(name: string): Promise<string> {
  await server.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { a: '1', b: '2' },
  });
  return `${CONFIG_MAPS}/${name}`;
}

// S-012: JSON, merge and strategic merge patches follow their standards and upstream's directives.
test('a JSON patch runs its operations in order', async () => {
  const path = await fresh('json');
  const { status, json } = await patch(path, 'json-patch+json', [
    { op: 'test', path: '/data/a', value: '1' },
    { op: 'replace', path: '/data/a', value: '3' },
    { op: 'remove', path: '/data/b' },
  ]);
  assert.equal(status, 200);
  assert.deepEqual(json.data, { a: '3' });
});

test('a JSON patch whose test fails is 422 and changes nothing', async () => {
  const path = await fresh('json-test');
  const { status, json } = await patch(path, 'json-patch+json', [{ op: 'test', path: '/data/a', value: 'no' }]);
  assert.equal(status, 422);
  assert.equal(json.reason, 'Invalid');
});

// S-012
test('a merge patch merges maps and removes what is null', async () => {
  const path = await fresh('merge');
  const { json } = await patch(path, 'merge-patch+json; charset=utf-8', { data: { a: null, c: '4' } });
  assert.deepEqual(json.data, { b: '2', c: '4' });
});

// S-012
test('a strategic merge patch merges containers by name', async () => {
  await server.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: {
      containers: [
        { name: 'a', image: 'one' },
        { name: 'b', image: 'two' },
      ],
    },
  });
  const { status, json } = await patch(`${PODS}/p`, 'strategic-merge-patch+json', {
    spec: {
      '$setElementOrder/containers': [{ name: 'a' }, { name: 'b' }],
      containers: [{ name: 'b', image: 'three' }],
    },
  });
  assert.equal(status, 200, JSON.stringify(json));
  const images = Object.fromEntries(
    json.spec.containers.map((c: { name: string; image: string }) => [c.name, c.image]),
  );
  assert.deepEqual(images, { a: 'one', b: 'three' });
});

test('a configuration that is no YAML map is refused in the words of the decoder', async (t) => {
  const path = `${await fresh('applied')}?fieldManager=one`;
  const unmarshal = 'error unmarshaling JSON: while decoding JSON: expected object, got';
  const cases: [string, RegExp][] = [
    ['"text"', new RegExp(`^error decoding YAML: ${unmarshal} string$`)],
    ['[]', new RegExp(`^error decoding YAML: ${unmarshal} array$`)],
    ['a: [1', /^error decoding YAML: error converting YAML to JSON: yaml: line /],
    ['null', /^invalid object type: /],
  ];
  for (const [body, message] of cases) {
    await t.test(body, async () => {
      const { status, json } = await server.request('PATCH', path, {
        headers: { 'content-type': 'application/apply-patch+yaml' },
        body,
      });
      assert.equal(status, 400, JSON.stringify(json));
      assert.match(json.message, message);
    });
  }
});

// S-267
// Compat Patch, P0, yes: content types; strategic merge is not for custom kinds (415)
test('refused patches', async (t) => {
  const path = await fresh('refused');
  const { json: current } = await server.request('GET', path);
  await server.request('PATCH', path, { body: { metadata: { labels: { moved: 'on' } } } });
  const stale = { metadata: { resourceVersion: current.metadata.resourceVersion }, data: { x: 'y' } };
  const cases: [string, string, string, unknown, number, RegExp][] = [
    ['missing object', `${CONFIG_MAPS}/none`, 'merge-patch+json', {}, 404, /configmaps "none" not found/],
    ['stale version', path, 'merge-patch+json', stale, 409, /the object has been modified/],
    ['renaming', path, 'merge-patch+json', { metadata: { name: 'other' } }, 400, /does not match the name on the URL/],
    ['media type', path, 'json', {}, 415, /application\/json-patch\+json/],
    ['no list', path, 'json-patch+json', {}, 400, /./],
    ['no object', path, 'merge-patch+json', [], 400, /^error decoding patch: expected object, got array$/],
    ['null', path, 'merge-patch+json', 'null', 400, /^Invalid JSON Patch$/],
    ['no JSON', path, 'strategic-merge-patch+json', '{', 400, /^unexpected end of JSON input$/],
    ['no JSON either', path, 'json-patch+json', '{', 400, /^error decoding patch: unexpected end of JSON input$/],
    [
      'a meaning nobody knows',
      `${path}?fieldValidation=Strict`,
      'json-patch+json',
      [{ op: 'test', path: '/kind', value: 'ConfigMap', foo: 1 }],
      422,
      /: strict decoding error: json patch unknown field "\[0\]\.foo"$/,
    ],
    [
      'a kind that is a number',
      path,
      'json-patch+json',
      [{ op: 'replace', path: '/kind', value: 1 }],
      422,
      /: couldn't get version\/kind; json parse error: kind: expected string, got number$/,
    ],
    [
      'an unknown kind',
      path,
      'merge-patch+json',
      { kind: 'Other' },
      422,
      /: it is of kind Other of v1, not ConfigMap of v1$/,
    ],
    ['wrong type after the patch', path, 'merge-patch+json', { data: { a: 1 } }, 422, /patch: Invalid value/],
    ['kind', path, 'merge-patch+json', { kind: 'Secret' }, 422, /: it is of kind Secret of v1, not ConfigMap of v1$/],
    [
      'wrong type after a strategic patch',
      path,
      'strategic-merge-patch+json',
      { metadata: { labels: 'invalid' } },
      422,
      /^ "" is invalid: patch: Invalid value: "{\\"metadata\\":{\\"labels\\":\\"invalid\\"}}": .*expected object, got string$/,
    ],
    [
      'unknown field after a strategic patch',
      `${path}?fieldValidation=Strict`,
      'strategic-merge-patch+json',
      { datum: { a: '1' } },
      422,
      /^ "" is invalid: patch: Invalid value: "{\\"datum\\":{\\"a\\":\\"1\\"}}": strict decoding error: unknown field "datum"$/,
    ],
  ];
  for (const [name, target, type, body, status, message] of cases) {
    await t.test(name, async () => {
      const answer = await patch(target, type, body);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.json.message, message);
    });
  }
});

test('a patch that changes nothing writes nothing', async () => {
  const path = await fresh('same');
  const before = server.store.revision();
  const { status } = await patch(path, 'merge-patch+json', { data: { a: '1' } });
  assert.equal(status, 200);
  assert.equal(server.store.revision(), before);
});

// S-114: Keys like `__proto__` are plain data everywhere.
test('a member named __proto__ is harmless', async () => {
  const path = await fresh('proto');
  const answer = await patch(path, 'merge-patch+json', '{"data":{"__proto__":"x"},"__proto__":{"polluted":true}}');
  assert.ok(answer.status === 200 || answer.status === 422, answer.text);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('a dry-run patch shows the result and keeps the object', async () => {
  const path = await fresh('dry');
  const { json } = await patch(`${path}?dryRun=All`, 'merge-patch+json', { data: { a: '9' } });
  assert.equal(json.data.a, '9');
  assert.equal((await server.request('GET', path)).json.data.a, '1');
});
