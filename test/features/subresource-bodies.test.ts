/** Bodies of subresources with a kind of their own: read as strictly as those of any built-in kind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonPatch, type Review } from '../testkit/webhook-server.ts';
import { GROUP, webhookSuite } from '../testkit/webhook-suite.ts';

const POD = '/api/v1/namespaces/default/pods/p';
const SCALE = '/apis/apps/v1/namespaces/default/deployments/d/scale';
const metadata = { name: 'p' };

const suite = webhookSuite({
  '/litter': () =>
    jsonPatch({ op: 'add', path: '/nonsense', value: 1 }, { op: 'add', path: '/metadata/odd', value: 1 }),
  '/mistype': () => jsonPatch({ op: 'replace', path: '/target/name', value: 7 }),
  '/move': () => jsonPatch({ op: 'replace', path: '/target/name', value: 'elsewhere' }),
  '/hurry': () => jsonPatch({ op: 'add', path: '/deleteOptions', value: { gracePeriodSeconds: 0 } }),
  '/rename': () => jsonPatch({ op: 'replace', path: '/metadata/name', value: 'q' }),
  '/allow': () => ({}),
});

async function prepare(): Promise<void> {
  await suite.server.request('POST', '/api/v1/namespaces/default/pods', {
    body: { metadata, spec: { containers: [{ name: 'c', image: 'i' }] } },
  });
  await suite.server.request('POST', '/apis/apps/v1/namespaces/default/deployments', {
    body: {
      metadata: { name: 'd' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    },
  });
}

// S-351: Bodies of subresources are read as strictly as objects, whoever wrote them.
// Compat Writing, P2, yes: the same of Scale, Binding, Eviction and TokenRequest, and of what webhooks patch into them
test('unknown fields are reported, or refused', async () => {
  await prepare();
  const cases: [method: string, path: string, kind: string, body: object][] = [
    ['POST', `${POD}/eviction`, 'Eviction', { metadata, deleteOptions: { odd: 1 } }],
    ['POST', `${POD}/binding`, 'Binding', { metadata, target: { name: 'n', odd: 1 } }],
    ['PUT', SCALE, 'Scale', { metadata: { name: 'd' }, spec: { replicas: 1, odd: 1 } }],
  ];
  for (const [method, path, kind, body] of cases) {
    const field = kind === 'Eviction' ? 'deleteOptions.odd' : kind === 'Binding' ? 'target.odd' : 'spec.odd';
    const refused = await suite.server.request(method, `${path}?fieldValidation=Strict`, { body });
    assert.deepEqual(
      [refused.status, refused.json.reason, refused.json.message],
      [
        400,
        'BadRequest',
        `${kind} in version "v1" cannot be handled as a ${kind}: strict decoding error: unknown field "${field}"`,
      ],
    );
    const response = await suite.server.request(method, `${path}?dryRun=All`, { body });
    assert.ok(response.status < 300, response.text);
    assert.equal(response.headers['warning'], `299 - "unknown field \\"${field}\\""`);
    const silent = await suite.server.request(method, `${path}?dryRun=All&fieldValidation=Ignore`, { body });
    assert.equal(silent.headers['warning'], undefined);
  }
});

// S-351
test('what is not of its kind is refused in the words of the decoder', async () => {
  await prepare();
  const of = (kind: string, why: string): string => `${kind} in version "v1" cannot be handled as a ${why}`;
  const cases: [method: string, path: string, body: unknown, message: string][] = [
    [
      'POST',
      `${POD}/binding`,
      { metadata, target: 'n' },
      of('Binding', 'Binding: target: expected object, got string'),
    ],
    [
      'PUT',
      SCALE,
      '{"metadata":{"name":"d"},"spec":{"replicas":1.0}}',
      of('Scale', 'Scale: spec.replicas: expected int32, got number 1.0'),
    ],
    [
      'POST',
      `${POD}/eviction`,
      { apiVersion: 'v1', kind: 'Pod', metadata },
      of('Pod', 'Eviction: it is of kind Pod of v1, not Eviction of policy/v1'),
    ],
    [
      'PUT',
      SCALE,
      { apiVersion: 'autoscaling/v2', kind: 'Scale', metadata: { name: 'd' } },
      'Scale in version "v2" cannot be handled as a Scale: it is of kind Scale of autoscaling/v2, not Scale of autoscaling/v1',
    ],
    [
      'POST',
      `${POD}/eviction`,
      '[]',
      "the object provided is unrecognized (must be of type Eviction): couldn't get version/kind; json parse error: expected object, got array",
    ],
  ];
  for (const [method, path, body, message] of cases) {
    const { status, json } = await suite.server.request(method, path, { body });
    assert.deepEqual([status, json.reason, json.message], [400, 'BadRequest', message]);
  }
});

test('a patched Scale is decoded as strictly as a patched object', async () => {
  await prepare();
  for (const type of ['merge-patch', 'strategic-merge-patch']) {
    const { status, json } = await suite.server.request('PATCH', `${SCALE}?fieldValidation=Strict`, {
      headers: { 'content-type': `application/${type}+json` },
      body: { spec: { odd: 1 } },
    });
    assert.equal(status, 422, type);
    assert.match(json.message, /patch: Invalid value: .*strict decoding error: unknown field "spec.odd"$/, type);
  }
  const { status, json } = await suite.server.request('PATCH', SCALE, { body: { spec: { replicas: 'many' } } });
  assert.equal(status, 422);
  assert.match(json.message, /spec\.replicas: expected int32, got string$/);
});

test('an applied Scale is typed', async () => {
  await prepare();
  const apply = (body: object) =>
    suite.server.request('PATCH', `${SCALE}?fieldManager=m&force=true`, {
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body,
    });
  const type = { apiVersion: 'autoscaling/v1', kind: 'Scale' };
  const cases: [body: object, status: number, message: string | undefined][] = [
    [{ ...type, metadata: { name: 'd' }, spec: { replicas: 3 } }, 200, undefined],
    [{ spec: { replicas: 3 } }, 400, 'invalid object type: /, Kind='],
    [
      { ...type, spec: { replicas: 3, odd: 1 } },
      500,
      'failed to create typed patch object (/; autoscaling/v1, Kind=Scale): .spec.odd: field not declared in schema',
    ],
    [
      { ...type, metadata: { name: 'e' }, spec: { replicas: 3 } },
      400,
      'the name of the object (e) does not match the name on the URL (d)',
    ],
  ];
  for (const [body, status, message] of cases) {
    const answer = await apply(body);
    assert.deepEqual([answer.status, answer.json.message], [status, message]);
  }
});

// S-351
test('what a webhook puts into them is pruned, and must decode', async () => {
  await prepare();
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods/binding'], operations: ['CREATE'] }];
  await suite.configure('Mutating', 'm', { path: '/litter', rules });
  await suite.configure('Validating', 'v', { path: '/allow', rules });
  const body = { metadata, target: { name: 'n' } };
  const bind = (): ReturnType<typeof suite.server.request> =>
    suite.server.request('POST', `${POD}/binding?dryRun=All`, { body });
  assert.equal((await bind()).status, 201);
  const { object }: Review = suite.hooks.calls[1]!.body.request;
  assert.deepEqual([object.nonsense, object.metadata.odd, object.target.name], [undefined, undefined, 'n']);
  await suite.configure('Mutating', 'n', { path: '/mistype', rules });
  const { status, json } = await bind();
  assert.equal(status, 500);
  assert.equal(json.message, 'Internal error occurred: target.name: expected string, got number 7');
});

test('an Eviction of the beta version is shown to webhooks in v1', async () => {
  await prepare();
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods/eviction'], operations: ['CREATE'] }];
  await suite.configure('Validating', 'v', { path: '/allow', rules });
  const body = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata };
  assert.equal((await suite.server.request('POST', `${POD}/eviction?dryRun=All`, { body })).status, 201);
  assert.equal(suite.hooks.calls[0]!.body.request.object.apiVersion, 'policy/v1');
});

// S-351
test('a webhook decides where a Pod is bound, and how it is evicted', async () => {
  await prepare();
  const rule = (resource: string) => [
    { apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE'] },
  ];
  const post = (part: string, body: object) => suite.server.request('POST', `${POD}/${part}`, { body });
  const binding = { metadata, target: { name: 'n' } };
  await suite.configure('Mutating', 'r', {
    path: '/rename',
    rules: [...rule('pods/binding'), ...rule('pods/eviction')],
  });
  for (const [part, kind] of [
    ['binding', 'Binding'],
    ['eviction', 'Eviction'],
  ] as const) {
    const { status, json } = await post(part, part === 'binding' ? binding : { metadata });
    assert.deepEqual([status, json.message], [400, `name in URL does not match name in ${kind} object`]);
  }
  await suite.server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/r`);
  await suite.configure('Mutating', 'b', { path: '/move', rules: rule('pods/binding') });
  await suite.configure('Mutating', 'e', { path: '/hurry', rules: rule('pods/eviction') });
  assert.equal((await post('binding', binding)).status, 201);
  assert.equal((await suite.server.request('GET', POD)).json.spec.nodeName, 'elsewhere');
  assert.equal((await post('eviction', { metadata })).status, 201);
  assert.equal((await suite.server.request('GET', POD)).status, 404, 'gone at once, though it was bound');
});
