import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const MAPS = '/api/v1/namespaces/default/configmaps';
const APPLY = { 'content-type': 'application/apply-patch+yaml' };

const deployment = (name: string, spec: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    ...spec,
  },
});
const partial = (name: string, spec: object) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec,
});
const apply = (path: string, manager: string, body: unknown, query = ''): Promise<Answer> =>
  server.request('PATCH', `${path}?fieldManager=${manager}${query}`, { body, headers: APPLY });
const managers = ({ json }: Answer): string[] =>
  (json.metadata.managedFields ?? []).map(
    (entry: { manager: string; operation: string; subresource?: string }) =>
      `${entry.manager} ${entry.operation}${entry.subresource ? ` ${entry.subresource}` : ''}`,
  );

// S-013
test('apply creates what is missing and changes nothing the second time', async () => {
  const path = `${DEPLOYMENTS}/one`;
  const first = await apply(path, 'a', deployment('one'));
  assert.equal(first.status, 201, first.text);
  const again = await apply(path, 'a', deployment('one'));
  assert.equal(again.status, 200);
  assert.equal(again.json.metadata.resourceVersion, first.json.metadata.resourceVersion);
  assert.deepEqual(again.json.metadata.managedFields, first.json.metadata.managedFields);
});

// S-333: Applying the same configuration again never moves the generation.
// Compat Server-side apply, P1, yes: applying the same again moves no generation, also where defaults of an atomic list
//   are left out or a quantity is written otherwise
test('an apply that leaves defaults out of an atomic list, or writes a quantity otherwise, changes nothing', async () => {
  const labels = { app: 'db' };
  const container = { name: 'db', image: 'db', resources: { limits: { memory: '2048Mi' } } };
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } };
  const set = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db' },
    spec: {
      serviceName: 'db',
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
    },
  };
  const path = '/apis/apps/v1/namespaces/default/statefulsets/db';
  const first = await apply(path, 'a', set);
  assert.equal(first.status, 201, first.text);
  const { json: second } = await apply(path, 'a', set);
  assert.equal(second.metadata.generation, 1);
  assert.equal(second.metadata.resourceVersion, first.json.metadata.resourceVersion);
});

// S-013
test('a value somebody else owns is a conflict unless it is the same or forced', async () => {
  const path = `${DEPLOYMENTS}/two`;
  await apply(path, 'a', deployment('two'));
  const refused = await apply(path, 'b', partial('two', { replicas: 4 }));
  assert.equal(refused.status, 409);
  assert.equal(refused.json.message, 'Apply failed with 1 conflict: conflict with "a": .spec.replicas');
  assert.deepEqual(refused.json.details.causes, [
    { reason: 'FieldManagerConflict', message: 'conflict with "a"', field: '.spec.replicas' },
  ]);
  const shared = await apply(path, 'b', partial('two', { replicas: 3 }));
  // Who only joins has no time, and so comes first.
  assert.deepEqual(managers(shared), ['b Apply', 'a Apply']);
  const forced = await apply(path, 'b', partial('two', { replicas: 4 }), '&force=true');
  assert.equal(forced.json.spec.replicas, 4);
  const entries: { manager: string; fieldsV1: Record<string, object> }[] = forced.json.metadata.managedFields;
  assert.equal('f:replicas' in entries.find(({ manager }) => manager === 'a')!.fieldsV1['f:spec']!, false);
});

// S-013
// Compat Server-side apply, P0, yes: merge, removal, shared and forced ownership
test('what one leaves out stays while another owns it, and goes with the last', async () => {
  const path = `${MAPS}/shared`;
  const map = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'shared' }, data });
  await apply(path, 'a', map({ k: 'v', own: 'a' }));
  await apply(path, 'b', map({ k: 'v' }));
  assert.deepEqual((await apply(path, 'a', map({}))).json.data, { k: 'v' });
  assert.equal((await apply(path, 'b', map({}))).json.data?.k, undefined);
});

// Compat Server-side apply, P0, yes: every write is tracked; `[]` and `[{}]` forget
test('managedFields of [{}] or [] forget everybody, null and nothing do not', async (t) => {
  const path = `${DEPLOYMENTS}/reset`;
  await apply(path, 'a', deployment('reset'));
  const merge = (managedFields: unknown) => ({ metadata: { managedFields } });
  const cases: [string, Record<string, string>, unknown, boolean][] = [
    ['merge [{}]', { 'content-type': 'application/merge-patch+json' }, merge([{}]), true],
    ['strategic [{}]', { 'content-type': 'application/strategic-merge-patch+json' }, merge([{}]), true],
    ['merge []', { 'content-type': 'application/merge-patch+json' }, merge([]), true],
    [
      'JSON patch',
      { 'content-type': 'application/json-patch+json' },
      [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }],
      true,
    ],
    ['merge null', { 'content-type': 'application/merge-patch+json' }, merge(null), false],
  ];
  for (const [name, headers, body, cleared] of cases) {
    await t.test(name, async () => {
      await apply(path, 'a', deployment('reset'), '&force=true');
      const answer = await server.request('PATCH', path, { body, headers });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.json.metadata.managedFields === undefined, cleared);
    });
  }
  await t.test('PUT', async () => {
    await apply(path, 'a', deployment('reset'), '&force=true');
    const { json } = await server.request('GET', path);
    const body = { ...json, metadata: { ...json.metadata, managedFields: [{}] } };
    assert.equal((await server.request('PUT', path, { body })).json.metadata.managedFields, undefined);
    const next = await apply(path, 'a', deployment('reset', { replicas: 9 }));
    assert.match(next.json.message, /conflict with "before-first-apply" using apps\/v1/);
  });
});

// S-013
// Compat Server-side apply, P1, yes: subresources keep their own entries
test('writes through a subresource are kept apart', async () => {
  const path = `${DEPLOYMENTS}/subs`;
  await apply(path, 'a', deployment('subs', { replicas: undefined }));
  const status = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'subs' }, status: { replicas: 1 } };
  assert.deepEqual(managers(await apply(`${path}/status`, 'a', status)), ['a Apply', 'a Apply status']);
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'subs' }, spec: { replicas: 5 } };
  const scaled = await apply(`${path}/scale`, 'scaler', scale, '&force=true');
  assert.equal(scaled.status, 200, scaled.text);
  assert.deepEqual([scaled.json.kind, scaled.json.spec], ['Scale', { replicas: 5 }]);
  const after = await server.request('GET', path);
  assert.equal(after.json.spec.replicas, 5);
  assert.ok(managers(after).includes('scaler Apply scale'));
  const conflict = await apply(path, 'b', partial('subs', { replicas: 6 }));
  assert.match(conflict.json.message, /conflict with "scaler" with subresource "scale"/);
});

// S-357
test('an apply to the status owns the metadata that it writes: that of a definition, not that of other kinds', async () => {
  const schema = { openAPIV3Schema: { type: 'object' } };
  const spec = {
    group: 'example.com',
    scope: 'Cluster',
    names: { plural: 'marks', kind: 'Mark' },
    versions: [{ name: 'v1', served: true, storage: true, schema }],
  };
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'R',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const cidr = { spec: { cidrs: ['10.7.0.0/24'] }, status: { conditions: [condition] } };
  const claim = { spec: {}, status: { allocation: { nodeSelector: { nodeSelectorTerms: [{}] } } } };
  const kinds: readonly (readonly [
    kind: string,
    api: string,
    path: string,
    body: object,
    labels: object | undefined,
  ])[] = [
    [
      'CustomResourceDefinition',
      'apiextensions.k8s.io/v1',
      'customresourcedefinitions/marks.example.com',
      { spec, status: { conditions: [condition] } },
      { 'f:mark': {} },
    ],
    ['ServiceCIDR', 'networking.k8s.io/v1', 'servicecidrs/extra', cidr, undefined],
    ['ResourceClaim', 'resource.k8s.io/v1', 'namespaces/default/resourceclaims/extra', claim, undefined],
  ];
  for (const [kind, apiVersion, at, body, labels] of kinds) {
    const path = `/apis/${apiVersion}/${at}`;
    const metadata = { name: at.split('/').at(-1) };
    await apply(path, 'spec', { apiVersion, kind, metadata, ...body });
    const marked = { apiVersion, kind, metadata: { ...metadata, labels: { mark: 'yes' } }, ...body };
    const { json, text } = await apply(`${path}/status`, 'status', marked, '&force=true');
    // biome-ignore lint/suspicious/noExplicitAny: entries are looked into.
    const owned = json.metadata.managedFields?.find((entry: any) => entry.manager === 'status').fieldsV1;
    assert.deepEqual(owned?.['f:metadata']?.['f:labels'], labels, text);
    assert.equal(json.metadata.labels?.mark, labels && 'yes');
    assert.equal(owned['f:spec'], undefined);
  }
});

// S-013
test('nobody comes to own what admission adds', async () => {
  const adding = await startServer({
    admission: [
      {
        name: 'Adder',
        matches: (_operation, info) => info.resource === 'configmaps',
        mutate({ object }) {
          object!.metadata.annotations = { ...object!.metadata.annotations, added: 'yes' };
        },
      },
    ],
  });
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { a: 'b' } };
  await adding.request('POST', MAPS, { body });
  const { json } = await adding.request('PATCH', `${MAPS}/m`, { body: { data: { c: 'd' } } });
  assert.equal(json.metadata.annotations.added, 'yes');
  for (const entry of json.metadata.managedFields) assert.equal(entry.fieldsV1['f:metadata'], undefined);
  await adding.stop();
});

// Compat Server-side apply, P0, yes: the request: fieldManager, force, kinds, managedFields, uid
test('refused applies', async (t) => {
  const good = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'r' } };
  const cases: [string, string, unknown, number, RegExp][] = [
    ['no manager', '', good, 422, /fieldManager: Required value: is required for apply patch/],
    ['a manager that cannot be printed', 'fieldManager=a%07', good, 422, /invalid character U\+0007 \(at position 1\)/],
    [
      'another version',
      'fieldManager=m',
      { ...good, apiVersion: 'v2' },
      400,
      /^invalid object type: \/v2, Kind=ConfigMap$/,
    ],
    ['no kind', 'fieldManager=m', { apiVersion: 'v1' }, 400, /^invalid object type: \/v1, Kind=$/],
    ['nothing at all', 'fieldManager=m', {}, 400, /^invalid object type: \/, Kind=$/],
    ['another kind', 'fieldManager=m', { ...good, kind: 'Secret' }, 400, /^invalid object type: \/v1, Kind=Secret$/],
    [
      'managedFields',
      'fieldManager=m',
      { ...good, metadata: { name: 'r', managedFields: [{ manager: 'x' }] } },
      400,
      /metadata.managedFields must be nil/,
    ],
    [
      'a uid, and nothing there',
      'fieldManager=m',
      { ...good, metadata: { name: 'r', uid: 'u' } },
      409,
      /^Operation cannot be fulfilled on configmaps "r": uid mismatch: the provided object specified uid u, and no existing object was found$/,
    ],
    ['another name', 'fieldManager=m', { ...good, metadata: { name: 'q' } }, 400, /does not match the name on the URL/],
  ];
  for (const [name, query, body, status, message] of cases) {
    await t.test(name, async () => {
      const answer = await server.request('PATCH', `${MAPS}/r?${query}`, { body, headers: APPLY });
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.json.message, message);
    });
  }
});

// S-165: Ownership written down in one version of a kind is read in that version.
test('ownership written down in one version is read in that version', async () => {
  const [core, other] = ['v1', 'events.k8s.io/v1'];
  const path = (version: string) =>
    `/${version === core ? 'api' : 'apis'}/${version}/namespaces/default/events/two-versions`;
  const apply = (apiVersion: string, manager: string, fields: object, force = false) =>
    server.request('PATCH', `${path(apiVersion)}?fieldManager=${manager}&force=${force}`, {
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: { apiVersion, kind: 'Event', metadata: { name: 'two-versions' }, ...fields },
    });
  const regarding = { kind: 'Pod', namespace: 'default', name: 'p' };
  const reporter = { reportingController: 'example.com/tester', reportingInstance: 't', action: 'Do', reason: 'Test' };
  const event = { eventTime: '2026-01-02T03:04:05.000006Z', type: 'Normal', ...reporter, regarding, note: 'hello' };
  assert.equal((await apply(other, 'one', event)).status, 201);
  const same = await apply(core, 'two', { involvedObject: regarding, message: 'hello' });
  assert.equal(same.status, 200, 'the same, in other words');
  const refused = await apply(core, 'two', { involvedObject: regarding, message: 'goodbye' });
  assert.equal(refused.status, 409);
  assert.deepEqual(
    refused.json.details.causes.map(({ field }: { field: string }) => field),
    ['.note'],
  );
  const forced = await apply(core, 'two', { involvedObject: regarding, message: 'goodbye' }, true);
  assert.equal(forced.status, 200);
  const one = forced.json.metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'one');
  assert.ok(one.fieldsV1['f:regarding'] && !one.fieldsV1['f:note'], JSON.stringify(one.fieldsV1));
  assert.equal((await server.request('GET', path(other))).json.note, 'goodbye');
});

test('empty maps of built-in kinds are owned by who applies them, and not there', async () => {
  const path = '/api/v1/namespaces/default/serviceaccounts/hollow';
  const body = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'hollow', labels: {} },
    secrets: [],
    imagePullSecrets: [{ name: 'a' }],
  };
  const first = await apply(path, 'a', body);
  assert.equal(first.status, 201, first.text);
  assert.ok(!Object.hasOwn(first.json, 'secrets') && !Object.hasOwn(first.json.metadata, 'labels'), first.text);
  const { fieldsV1 } = first.json.metadata.managedFields[0];
  assert.deepEqual(fieldsV1['f:metadata'], { 'f:labels': {} });
  assert.equal(fieldsV1['f:secrets'], undefined, 'a list is owned by its items');
  const again = await apply(path, 'a', body);
  assert.equal(again.json.metadata.resourceVersion, first.json.metadata.resourceVersion, again.text);
});

// S-260
test('empty lists and maps of built-in kinds are not stored, whatever the verb', async () => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hollow' }, data: {}, binaryData: {} };
  const created = await server.request('POST', MAPS, { body });
  assert.equal(created.status, 201, created.text);
  assert.ok(!Object.hasOwn(created.json, 'data') && !Object.hasOwn(created.json, 'binaryData'), created.text);
  assert.equal(created.json.metadata.managedFields, undefined, created.text);
  const path = `${MAPS}/hollow`;
  const put = await server.request('PUT', path, { body });
  const headers = { 'content-type': 'application/merge-patch+json' };
  const patched = await server.request('PATCH', path, { body: { data: {} }, headers });
  for (const { json, text } of [put, patched, await server.request('GET', path)]) {
    assert.ok(!Object.hasOwn(json, 'data'), text);
    assert.equal(json.metadata.resourceVersion, created.json.metadata.resourceVersion, 'nothing was written');
  }
  const rules = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'hollow' }, rules: [] };
  const role = await server.request('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles', {
    body: rules,
  });
  assert.equal(role.json.rules, null, 'what Go always writes stays, and comes out of the store as null');
});
