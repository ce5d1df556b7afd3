/**
 * Large writes, whose stages another thread does: their answers, what they leave in the store and their warnings are those of
 * the same writes on the thread that serves.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeProtobuf, PROTOBUF } from '../../packages/apiserver/src/kinds/protobuf/documents.ts';
import type { Answer, InProcessServer } from '../testkit/in-process-server.ts';
import {
  type Ask,
  both,
  CUSTOM,
  changing,
  DEFINITION,
  elsewhere,
  here,
  KEYS,
  keys,
  kindOf,
  large,
  many,
  pathOf,
  spec,
  stages,
  useLargeServers,
  views,
  written,
} from '../testkit/large-servers.ts';

useLargeServers();

// S-257
test('creates of thousands of containers, also of wrong ones', async () => {
  const wrong = many((at) => ({ name: `C ${at}`, ports: [{}], x: 1 }));
  for (const [name, containers, status] of [
    ['right', many((at) => ({ name: `c${at}`, image: 'a' })), 201],
    ['wrong', wrong, 422],
  ] as const) {
    const body = { ...kindOf('deployments'), metadata: { name }, ...spec(containers) };
    assert.equal((await large({ method: 'POST', path: pathOf('deployments'), body })).status, status);
  }
});

test('a large create with a generated name, as YAML, as protobuf, and with a number that a double does not hold', async () => {
  const data = keys((at) => [`k${at}`, 'v']);
  const map = { ...kindOf('configmaps'), metadata: { generateName: 'made-' }, data };
  for (const server of [here, elsewhere]) {
    const { status, json } = await server.request('POST', pathOf('configmaps'), { body: map });
    assert.deepEqual([status, Object.keys(json.data).length], [201, KEYS]);
    assert.match(json.metadata.name, /^made-.....$/);
  }
  const lines = many((at) => `  k${at}: v`, KEYS).join('\n');
  const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n${lines}\n  k1: w\n`;
  await large({ method: 'POST', path: pathOf('configmaps'), body: yaml, type: 'application/yaml' });
  const named = { ...map, metadata: { name: 'protobuf' } };
  await large({ method: 'POST', path: pathOf('configmaps'), body: encodeProtobuf(named)!, type: PROTOBUF });
  const wide = JSON.stringify({
    ...kindOf('things'),
    metadata: { name: 'wide' },
    spec: { open: { a: 1, ...data } },
  }).replace('"a":1', '"a":9007199254740993');
  assert.match((await large({ method: 'POST', path: CUSTOM, body: wide })).text, /"a":9007199254740993/);
  await large({ method: 'POST', path: pathOf('configmaps'), body: `${JSON.stringify(named)}x` });
  await large({ method: 'POST', path: pathOf('configmaps'), body: named });
});

// S-257
test('updates, patches and applies of large objects, and of their subresources', async () => {
  const containers = (image: string) => many((at) => ({ name: `c${at}`, image }));
  const path = `${pathOf('deployments')}/large`;
  const object = { ...kindOf('deployments'), metadata: { name: 'large' }, ...spec(containers('a')) };
  const patch = (type: string, body: unknown, query = ''): Promise<Answer> =>
    large({ method: 'PATCH', path: `${path}${query}`, type: `application/${type}`, body: body as object });
  await large({ method: 'POST', path: pathOf('deployments'), body: object });
  await large({ method: 'PUT', path, body: { ...object, ...spec(containers('b')) } });
  await large({ method: 'PUT', path, body: { ...object, metadata: { name: 'other' } } });
  await large({ method: 'PUT', path, body: { ...object, metadata: { name: 'large', resourceVersion: '1' } } });
  await patch('merge-patch+json', { metadata: { labels: { a: 'b' } } });
  await patch('strategic-merge-patch+json', {
    spec: {
      template: {
        spec: {
          containers: [
            { name: 'c7', image: 'z' },
            { name: 'c8', $patch: 'delete' },
          ],
        },
      },
    },
  });
  await patch('strategic-merge-patch+json', { spec: { template: { spec: { containers: [{ name: 'C 7' }] } } } });
  await patch('json-patch+json', [{ op: 'remove', path: '/spec/template/spec/containers/3' }]);
  await patch('json-patch+json', [{ op: 'test', path: '/spec/replicas', value: 7 }]);
  await both({ method: 'PATCH', path, type: 'application/json-patch+json', body: '[{"op":' });
  await patch('apply-patch+yaml', { ...object, ...spec(containers('b').slice(0, 5)) }, '?fieldManager=me');
  await patch('apply-patch+yaml', { ...object, ...spec(containers('d')) }, '?fieldManager=me&force=true');
  await patch('merge-patch+json', { status: { replicas: 3 } }, '/status');
  await patch('merge-patch+json', { spec: { x: 1 } }, '?fieldValidation=Strict');
  await patch('merge-patch+json', { metadata: { finalizers: ['a.b/c'] } });
  await both({ method: 'DELETE', path });
  const { json } = await patch('merge-patch+json', { metadata: { finalizers: null } });
  assert.ok(json.metadata.deletionTimestamp);
  await both({ method: 'GET', path });
});

test('applies and updates that make a large object', async () => {
  const data = keys((at) => [`k${at}`, 'v']);
  const map = (name: string) => ({ ...kindOf('configmaps'), metadata: { name }, data });
  const to = (name: string, query = '?fieldManager=me'): string => `${pathOf('configmaps')}/${name}${query}`;
  const apply = { method: 'PATCH', type: 'application/apply-patch+yaml' };
  await large({ ...apply, path: to('applied'), body: map('applied') });
  await large({ ...apply, path: to('applied'), body: map('applied') });
  await large({
    ...apply,
    path: to('applied', '?fieldManager=you'),
    body: { ...map('applied'), data: { ...data, k1: 'w' } },
  });
  await large({ ...apply, path: to('misnamed'), body: map('other') });
  await large({ ...apply, path: to('broken'), body: `a: [${'1, '.repeat(9000)}` });
  await both({ method: 'PATCH', path: to('absent'), type: 'application/merge-patch+json', body: map('absent') });
  const lease = { ...kindOf('leases'), metadata: { name: 'put', annotations: data } };
  await large({ method: 'PUT', path: `${pathOf('leases')}/put`, body: lease });
});

test('the other version of a large custom object, its status, and a definition of many fields', async () => {
  const v2 = CUSTOM.replace('/v1/', '/v2/');
  const thing = { apiVersion: 'large.example/v2', kind: 'Thing', metadata: { name: 'two' } };
  const open = keys((at) => [`k${at}`, at]);
  await large({ method: 'POST', path: v2, body: { ...thing, spec: { open, more: 'z' } } });
  const merge = 'application/merge-patch+json';
  await large({ method: 'PATCH', path: `${CUSTOM}/two`, type: merge, body: { spec: { list: [{}] } } });
  await large({ method: 'PATCH', path: `${v2}/two/status`, type: merge, body: { status: { open } } });
  await both({ method: 'GET', path: `${v2}/two` });
  const properties = Object.fromEntries(many((at) => [`f${at}`, { type: at === 7 ? 'strin' : 'string' }]));
  const wide = { type: 'object', properties: { spec: { type: 'object', properties } } };
  const [version] = DEFINITION.spec.versions;
  const versions = [{ ...version, schema: { openAPIV3Schema: wide } }];
  const names = { plural: 'wides', singular: 'wide', kind: 'Wide' };
  const body = {
    ...DEFINITION,
    metadata: { name: 'wides.large.example' },
    spec: { ...DEFINITION.spec, names, versions },
  };
  await large({ method: 'POST', path: pathOf('customresourcedefinitions'), body });
});

// S-1040: Large answers in YAML, protobuf and indented JSON, and large objects of older shapes, are made by the thread of
//   large writes, and say what a server without one says.
test('large objects and lists in other forms, alone and in the other version', async () => {
  const object = {
    ...kindOf('configmaps'),
    metadata: { name: 'shown' },
    data: keys((at) => [`k${at}`, 'a longer text']),
  };
  await large({ method: 'POST', path: pathOf('configmaps'), body: object });
  const thing = { apiVersion: 'large.example/v1', kind: 'Thing', metadata: { name: 'shown' } };
  await large({ method: 'POST', path: CUSTOM, body: { ...thing, spec: { list: many(() => ({}), 40_000) } } });
  const path = pathOf('configmaps');
  const selected = `${path}?fieldSelector=metadata.name=shown`;
  for (const accept of ['application/yaml', PROTOBUF, 'application/json;pretty=1']) {
    for (const read of [`${path}/shown`, selected, `${CUSTOM}/shown`, `${CUSTOM.replace('/v1/', '/v2/')}/shown`]) {
      const before = written;
      const ask = async (server: InProcessServer) => server.request('GET', read, { headers: { accept } });
      const [there, locally] = [await ask(elsewhere), await ask(here)];
      assert.deepEqual(
        [there.status, there.headers['content-type']],
        [locally.status, locally.headers['content-type']],
      );
      assert.ok(changing(there.text) === changing(locally.text), `${accept} ${read}`);
      const isMade = there.status === 200 && (read.startsWith(path) || !accept.startsWith(PROTOBUF));
      if (isMade) assert.ok(written > before, `${accept} ${read}`);
    }
  }
  assert.ok(views > 0, 'nothing was shown by the other thread');
});

// S-1482: A large write that no admission changes goes to the other thread once; a refused one is answered as on this thread.
test('one way to the other thread and back for a write that nobody changes', async () => {
  const path = pathOf('configmaps');
  const waysOf = async (ask: Ask, status: number): Promise<number> => {
    const before = stages;
    assert.equal((await large(ask)).status, status);
    return stages - before;
  };
  const data = keys((at) => [`k${at}`, 'v']);
  const map = { ...kindOf('configmaps'), metadata: { name: 'once' }, data };
  const one = `${path}/once`;
  assert.equal(await waysOf({ method: 'POST', path, body: map }, 201), 1);
  assert.equal(await waysOf({ method: 'PUT', path: one, body: { ...map, data: { ...data, k1: 'w' } } }, 200), 1);
  const type = 'application/merge-patch+json';
  assert.equal(await waysOf({ method: 'PATCH', path: one, type, body: { data: { k2: 'w' } } }, 200), 1);
  assert.equal((await both({ method: 'GET', path: one })).json.data.k1, 'w');
  // Where there is no such namespace, that is said first, whatever else is wrong.
  const nowhere = path.replace('default', 'nowhere');
  await waysOf({ method: 'POST', path: nowhere, body: { ...map, metadata: { name: 'nowhere' } } }, 404);
  await waysOf({ method: 'POST', path: nowhere, body: { ...map, data: { ...data, ' ': 'v' } } }, 404);
});

// S-257
test('a policy that changes large objects, and one that refuses them', async () => {
  const bind = (policyName: string, more: object = {}) => ({ policyName, ...more });
  const rules = {
    resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
  };
  const api = 'admissionregistration.k8s.io';
  for (const server of [here, elsewhere]) {
    const base = `/apis/${api}/v1`;
    const of = (kind: string, name: string, spec: object) => ({
      apiVersion: `${api}/v1`,
      kind,
      metadata: { name },
      spec,
    });
    const refusing = {
      matchConstraints: rules,
      validations: [{ expression: "!('k5' in object.data) || object.data.k5 != 'no'", message: 'no k5' }],
    };
    await server.create(`${base}/validatingadmissionpolicies`, of('ValidatingAdmissionPolicy', 'p', refusing));
    const binding = of('ValidatingAdmissionPolicyBinding', 'p', bind('p', { validationActions: ['Deny'] }));
    await server.create(`${base}/validatingadmissionpolicybindings`, binding);
    const expression = 'Object{metadata: Object.metadata{labels: {"changed": "yes"}}}';
    const changing = {
      matchConstraints: rules,
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
    };
    await server.create(`${base}/mutatingadmissionpolicies`, of('MutatingAdmissionPolicy', 'm', changing));
    await server.create(
      `${base}/mutatingadmissionpolicybindings`,
      of('MutatingAdmissionPolicyBinding', 'm', bind('m')),
    );
  }
  const data = keys((at) => [`k${at}`, 'v']);
  const map = (name: string, more: object) => ({
    ...kindOf('configmaps'),
    metadata: { name },
    data: { ...data, ...more },
  });
  const path = pathOf('configmaps');
  const before = stages;
  const { json } = await large({ method: 'POST', path, body: map('changed', {}) });
  assert.equal(json.metadata.labels.changed, 'yes');
  assert.equal(stages - before, 2);
  const { status } = await large({ method: 'POST', path, body: map('refused', { k5: 'no' }) });
  assert.equal(status, 422);
});

test('somebody else writes in between: a patch is made anew, an update of a revision is a conflict', async () => {
  const path = `${pathOf('configmaps')}/raced`;
  const data = keys((at) => [`k${at}`, 'v']);
  const object = { ...kindOf('configmaps'), metadata: { name: 'raced' }, data };
  const { json } = await elsewhere.request('POST', pathOf('configmaps'), { body: object });
  const patch = (key: string) =>
    elsewhere.request('PATCH', path, {
      body: { data: { [key]: 'w' } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
  const answers = await Promise.all(['k1', 'k2', 'k3'].map(patch));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  const now = (await elsewhere.request('GET', path)).json;
  assert.deepEqual(
    ['k1', 'k2', 'k3', 'k4'].map((key) => now.data[key]),
    ['w', 'w', 'w', 'v'],
  );
  const body = { ...object, metadata: json.metadata };
  assert.equal((await elsewhere.request('PUT', path, { body })).status, 409);
});
