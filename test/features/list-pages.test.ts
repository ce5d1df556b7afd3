import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
const ALL = '/api/v1/configmaps';
const inNamespace = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

before(async () => {
  server = await startServer();
  for (const name of ['a', 'b']) {
    await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (let i = 0; i < 5; i++) {
      await server.create(inNamespace(name), {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `m${i}`, labels: { even: String(i % 2 === 0), index: String(i) } },
      });
    }
  }
});
after(() => server.stop());

const names = (list: { items: { metadata: { namespace: string; name: string } }[] }): string[] =>
  list.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);

// S-004: A list is one snapshot; its pages show that snapshot whatever is written meanwhile.
// Compat Reading, P0, yes: the list envelope, key order, revision of the snapshot
// Compat What is easily got wrong, P0, yes: 4, one resourceVersion for everything
test('a list holds every object in key order and the revision of its snapshot', async () => {
  const { json } = await server.request('GET', ALL);
  assert.equal(json.kind, 'ConfigMapList');
  assert.equal(json.apiVersion, 'v1');
  assert.equal(json.metadata.resourceVersion, String(server.store.revision()));
  assert.deepEqual(
    names(json),
    ['a', 'b'].flatMap((ns) => [0, 1, 2, 3, 4].map((i) => `${ns}/m${i}`)),
  );
  assert.equal(json.items[0].kind, undefined);
});

test('an empty list has an items array', async () => {
  const { json } = await server.request('GET', '/api/v1/namespaces/default/secrets');
  assert.deepEqual(json.items, []);
});

// S-004
// Compat Reading, P0, yes: continue tokens over one snapshot, exact remainingItemCount
// Compat What is easily got wrong, P0, yes: 12, continue tokens over live data
test('pages show the first page snapshot, whatever is written meanwhile', async () => {
  const first = await server.request('GET', `${ALL}?limit=4`);
  assert.equal(first.json.metadata.remainingItemCount, 6);
  await server.create(inNamespace('a'), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm9' } });
  await server.request('DELETE', `${inNamespace('b')}/m4`);
  const seen = names(first.json);
  let token = first.json.metadata.continue;
  while (token) {
    const { json, status } = await server.request('GET', `${ALL}?limit=4&continue=${token}`);
    assert.equal(status, 200);
    assert.equal(json.metadata.resourceVersion, first.json.metadata.resourceVersion);
    seen.push(...names(json));
    token = json.metadata.continue;
  }
  assert.deepEqual(
    seen,
    ['a', 'b'].flatMap((ns) => [0, 1, 2, 3, 4].map((i) => `${ns}/m${i}`)),
  );
  await server.request('DELETE', `${inNamespace('a')}/m9`);
});

// Compat Reading, P1, yes: resourceVersion=0 makes no pages, whatever the limit
test('where any state will do there are no pages', async () => {
  const { json } = await server.request('GET', `${ALL}?limit=4&resourceVersion=0`);
  assert.ok(json.items.length > 4);
  assert.deepEqual(Object.keys(json.metadata), ['resourceVersion']);
});

test('a page under a selector does not count what is left', async () => {
  const { json } = await server.request('GET', `${inNamespace('a')}?limit=1&labelSelector=even=true`);
  assert.deepEqual(names(json), ['a/m0']);
  assert.ok(json.metadata.continue);
  assert.equal(json.metadata.remainingItemCount, undefined);
});

// S-005: Label and field selectors choose what a list and a watch show.
test('selectors choose', async (t) => {
  const cases: [string, string[]][] = [
    ['labelSelector=even%3Dfalse', ['a/m1', 'a/m3']],
    ['labelSelector=even!%3Dtrue,index%20in%20(1,2)', ['a/m1']],
    ['labelSelector=!even', []],
    ['labelSelector=index%3E2', ['a/m3', 'a/m4']],
    ['fieldSelector=metadata.name%3Dm2', ['a/m2']],
    ['fieldSelector=metadata.namespace!%3Da', []],
  ];
  for (const [query, expected] of cases) {
    await t.test(query, async () => {
      assert.deepEqual(names((await server.request('GET', `${inNamespace('a')}?${query}`)).json), expected);
    });
  }
});

// S-272: Options of lists, reviews and token requests that make no sense are refused in upstream's words.
test('options that make no sense are refused', async (t) => {
  const token = (await server.request('GET', `${ALL}?limit=1`)).json.metadata.continue;
  const cases: [string, number, RegExp][] = [
    ['labelSelector=a%20b%20c', 400, /unable to parse requirement|found/],
    [
      'fieldSelector=spec.nope%3D1',
      400,
      /^"spec.nope" is not a known field selector: only "metadata.name", "metadata.namespace"$/,
    ],
    ['resourceVersionMatch=Exact', 422, /forbidden unless resourceVersion is provided/],
    ['resourceVersionMatch=Exact&resourceVersion=0', 422, /forbidden for resourceVersion "0"/],
    ['sendInitialEvents=true', 422, /sendInitialEvents is forbidden for list/],
    [
      'continue=invalidContinueToken',
      400,
      /^invalid continue token: continue key is not valid: invalid character '\ufffd' looking for beginning of value$/,
    ],
    ['continue=no%20token', 400, /^invalid continue token: continue key is not valid: illegal base64 data$/],
    [
      'continue=eyJ2IjoidjIifQ',
      400,
      /^invalid continue token: continue key is not valid: server does not recognize this encoded version v2$/,
    ],
    [`continue=${token}&resourceVersion=5`, 400, /not allowed when using continue/],
    ['limit=x', 400, /^strconv.ParseInt: parsing "x": invalid syntax$/],
    ['limit=', 400, /^strconv.ParseInt: parsing "": invalid syntax$/],
    ['limit=9223372036854775808', 400, /^strconv.ParseInt: parsing "9223372036854775808": value out of range$/],
    [
      'resourceVersion=x',
      400,
      /^invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax$/,
    ],
  ];
  for (const [query, status, message] of cases) {
    await t.test(query, async () => {
      const answer = await server.request('GET', `${ALL}?${query}`);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.json.message, message);
    });
  }
});

// S-272
// Compat Reading, P1, yes: wrong tokens, versions, numbers and selectors are refused in upstream's words, kind by kind
test('each kind words by itself what it cannot be selected by', async (t) => {
  const onlyNames = '"a.b" is not a known field selector: only "metadata.name", "metadata.namespace"';
  const cases: [string, string][] = [
    ['/api/v1/pods', 'field label not supported: a.b'],
    ['/api/v1/nodes', 'field label not supported: a.b'],
    ['/apis/apps/v1/deployments', onlyNames],
    ['/api/v1/persistentvolumes', onlyNames],
    ['/apis/batch/v1/jobs', 'field label "a.b" not supported for batchv1.Job'],
    [
      '/apis/resource.k8s.io/v1/resourceslices',
      'field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a.b',
    ],
  ];
  for (const [path, message] of cases) {
    await t.test(path, async () => {
      const { status, json } = await server.request('GET', `${path}?fieldSelector=a.b%3D1`);
      assert.deepEqual([status, json.message], [400, message]);
    });
  }
  const { json } = await server.request('GET', '/api/v1/persistentvolumes?fieldSelector=metadata.namespace%3Dx');
  assert.equal(json.kind, 'PersistentVolumeList', 'a namespace is a word of all kinds that declare none');
});

// S-004
test('an exact revision is shown as it was', async () => {
  const before = server.store.revision();
  const path = `${inNamespace('a')}/m0`;
  await server.request('PATCH', path, { body: { data: { changed: 'yes' } } });
  const old = await server.request('GET', `${ALL}?resourceVersion=${before}&resourceVersionMatch=Exact&limit=1`);
  assert.equal(old.json.metadata.resourceVersion, String(before));
  assert.equal(old.json.items[0].data, undefined);
  const fresh = await server.request('GET', `${ALL}?resourceVersion=${before}&resourceVersionMatch=NotOlderThan`);
  assert.deepEqual(fresh.json.items[0].data, { changed: 'yes' });
});
