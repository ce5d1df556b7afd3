import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const PODS = '/api/v1/namespaces/default/pods';
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };

let number = 0;
async function pod(...containers: string[]): Promise<string> {
  const name = `p${number++}`;
  await server.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: (containers.length > 0 ? containers : ['c']).map((one) => ({ name: one, image: 'i' })) },
  });
  return name;
}
const bind = (name: string, how: string = `${PODS}/${name}/binding`) =>
  server.request('POST', how, {
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: 'n1' } },
  });

// S-131: Pods are bound once; what needs a container runtime is refused at once, with the reason.
// Compat Pods, nodes, drain, P0, yes: binding, which moves no generation of the Pod
test('only a binding puts a pod on a node, once', async () => {
  const name = await pod();
  const patched = await server.request('PATCH', `${PODS}/${name}`, { body: { spec: { nodeName: 'n1' } } });
  assert.equal(patched.status, 422);
  assert.equal((await bind(name)).status, 201);
  const { json } = await server.request('GET', `${PODS}/${name}`);
  assert.equal(json.spec.nodeName, 'n1');
  const [{ type, observedGeneration }] = json.status.conditions;
  assert.deepEqual([type, observedGeneration], ['PodScheduled', 1]);
  assert.equal(json.metadata.generation, 1, 'a bound Pod is as it was made (e2e: pod generation should start at 1)');
  const again = await bind(name);
  assert.equal(again.status, 409);
  assert.equal(
    again.json.message,
    `Operation cannot be fulfilled on pods/binding "${name}": pod ${name} is already assigned to node "n1"`,
  );
  const other = await server.request('POST', `${PODS}/${await pod()}/binding`, { body: { target: { name: 'n1' } } });
  assert.deepEqual([other.status, other.json.message], [400, 'name in URL does not match name in Binding object']);
});

// S-272
// Compat Pods, nodes, drain, P1, yes: Bindings and Evictions name their Pod; conflicts name `pods/binding`; the uid is
//   a precondition
test('a binding that means another pod of that name is a conflict', async () => {
  const name = await pod();
  const { status, json } = await server.request('POST', `${PODS}/${name}/binding`, {
    body: { metadata: { name, uid: 'other' }, target: { name: 'n1' } },
  });
  assert.equal(status, 409);
  assert.match(json.message, /Precondition failed: UID in precondition: other, UID in object meta: /);
});

test('the legacy bindings collection binds as well', async () => {
  assert.equal((await bind(await pod(), '/api/v1/namespaces/default/bindings')).status, 201);
});

test('ephemeral containers are added through their subresource alone, and stay', async () => {
  const name = await pod();
  const add = (path: string, container: object) =>
    server.request('PATCH', path, { body: { spec: { ephemeralContainers: [container] } }, headers: STRATEGIC });
  const debug = { name: 'debug', image: 'b', targetContainerName: 'c' };
  assert.equal((await add(`${PODS}/${name}`, debug)).status, 422);
  const added = await add(`${PODS}/${name}/ephemeralcontainers`, debug);
  assert.equal(added.status, 200, added.text);
  assert.equal(added.json.spec.ephemeralContainers[0].name, 'debug');
  const second = await add(`${PODS}/${name}/ephemeralcontainers`, { name: 'debug2', image: 'b' });
  assert.equal(second.json.spec.ephemeralContainers.length, 2);
  const changed = await add(`${PODS}/${name}/ephemeralcontainers`, { ...debug, image: 'other' });
  assert.equal(changed.status, 422);
  assert.match(changed.json.message, /existing ephemeral containers "debug" may not be changed/);
  const live = (await server.request('GET', `${PODS}/${name}/ephemeralcontainers`)).json;
  const body = { ...live, spec: { ...live.spec, hostNetwork: true, ephemeralContainers: [] } };
  const removed = await server.request('PUT', `${PODS}/${name}/ephemeralcontainers`, { body });
  assert.match(removed.json.message, /may not be removed/);
});

// Compat Pods, nodes, drain, P2, yes: ephemeral containers, resize
test('resize changes amounts of cpu and memory and nothing else', async () => {
  const resize = async (before: object, after: object) => {
    const name = await pod();
    const made = await server.request('POST', PODS, {
      body: { metadata: { name: `${name}-r` }, spec: { containers: [{ name: 'c', image: 'i', resources: before }] } },
    });
    assert.equal(made.status, 201, made.text);
    const body = { spec: { containers: [{ name: 'c', image: 'other', resources: after }] } };
    return server.request('PATCH', `${PODS}/${name}-r/resize`, { body, headers: STRATEGIC });
  };
  const burstable = { requests: { cpu: '100m', memory: '1Mi' }, limits: { cpu: '200m' } };
  const { status, json, text } = await resize(burstable, { requests: { cpu: '150m' }, limits: { memory: '2Mi' } });
  assert.equal(status, 200, text);
  assert.deepEqual(json.spec.containers[0].resources, {
    requests: { cpu: '150m', memory: '1Mi' },
    limits: { cpu: '200m', memory: '2Mi' },
  });
  assert.equal(json.spec.containers[0].image, 'i');
  const same = { limits: { cpu: '1', memory: '1Mi' }, requests: { cpu: '1', memory: '1Mi' } };
  const cases: [object, object, RegExp][] = [
    [{}, { requests: { cpu: '1' } }, /spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of/],
    [same, { limits: { cpu: '2' } }, /spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of/],
    [
      burstable,
      { limits: { cpu: null } },
      /is invalid: spec.containers\[0\].resources.limits: Forbidden: resource limits cannot be removed$/,
    ],
    [burstable, { requests: { memory: null } }, /resources.requests: Forbidden: resource requests cannot be removed$/],
    [
      burstable,
      { limits: { 'a.io/b': '1' }, requests: { 'a.io/b': '1' } },
      /is invalid: spec: Forbidden: only cpu and memory resources for regular and sidecar containers are mutable$/,
    ],
  ];
  for (const [before, after, wanted] of cases) {
    const refused = await resize(before, after);
    assert.equal(refused.status, 422, refused.text);
    assert.match(refused.json.message, wanted);
  }
});

// S-131
// Compat Pods, nodes, drain, P0, yes: log, exec, attach, portforward: parameters are validated before the Pod is looked
//   for; refusals
test('without a runtime, log and exec answer at once and say why', async (t) => {
  const free = await pod();
  const two = await pod('a', 'b');
  const bound = await pod();
  await bind(bound);
  const cases: [string, string, string, number, RegExp][] = [
    ['log before there is a node', 'GET', `${free}/log`, 200, /^$/],
    ['log of a pod nobody runs', 'GET', `${bound}/log`, 400, /container "c" in pod ".*" is waiting to start/],
    [
      'log of one of two',
      'GET',
      `${two}/log`,
      400,
      /a container name must be specified for pod .*choose one of: \[a b\]/,
    ],
    ['log of an unknown container', 'GET', `${two}/log?container=x`, 400, /container x is not valid for pod/],
    ['log of no pod', 'GET', 'nobody/log', 404, /pods "nobody" not found/],
    [
      'log of half a line',
      'GET',
      `${free}/log?tailLines=some`,
      400,
      /^strconv.ParseInt: parsing "some": invalid syntax$/,
    ],
    [
      'log of less than no lines, of a pod nobody knows',
      'GET',
      'nobody/log?tailLines=-1&limitBytes=0&sinceSeconds=0',
      422,
      /^PodLogOptions "nobody" is invalid: \[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0\]$/,
    ],
    [
      'log since two times',
      'GET',
      `${free}/log?sinceSeconds=1&sinceTime=2030-01-01T00:00:00Z`,
      422,
      /^PodLogOptions ".*" is invalid: \[\]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified$/,
    ],
    ['exec before there is a node', 'POST', `${free}/exec?command=ls`, 400, /does not have a host assigned/],
    ['exec by GET', 'GET', `${bound}/exec?command=ls`, 500, /error dialing backend/],
    ['attach', 'POST', `${bound}/attach`, 500, /error dialing backend/],
    ['port-forward', 'POST', `${bound}/portforward`, 500, /error dialing backend/],
    ['proxy', 'GET', `${bound}/proxy/some/path`, 400, /address not allowed/],
  ];
  for (const [name, method, path, status, text] of cases) {
    await t.test(name, async () => {
      const answer = await server.request(method, `${PODS}/${path}`);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.json?.message ?? answer.text, text);
    });
  }
  const service = await server.request('GET', '/api/v1/namespaces/default/services/kubernetes/proxy/');
  assert.equal(service.status, 503);
  assert.match(service.json.message, /no endpoints available for service "kubernetes"/);
});

// Compat Authorisation, P0, yes: exec by GET takes the right to create
test('exec by GET takes the right to create', async () => {
  const careful = await startServer({
    authorize: (_user, attributes) => ({ allowed: attributes.verb === 'get', reason: '' }),
  });
  const { status, json } = await careful.request('GET', `${PODS}/p/exec?command=ls`);
  assert.equal(status, 403);
  assert.match(json.message, /cannot create resource "pods\/exec"/);
  await careful.stop();
});

// Compat Writing, P0, yes: metadata on `/status` by kind
test('labels of a Deployment and owners of a Pod do not change through /status', async () => {
  const name = await pod();
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }];
  const body = { metadata: { ownerReferences, labels: { a: 'b' } } };
  const { metadata } = (await server.request('PATCH', `${PODS}/${name}/status`, { body })).json;
  assert.equal(metadata.ownerReferences, undefined);
  assert.deepEqual(metadata.labels, { a: 'b' });
});
