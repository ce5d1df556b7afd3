/** `subresources.kubevirt.io` is given to another server by an APIService that names it, and is ours again afterwards. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ApiRequest } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const GROUP = 'subresources.kubevirt.io';
const SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const START = `/apis/${GROUP}/v1/namespaces/n/virtualmachines/vm/start`;
const NAME = `v1.${GROUP}`;
const json = (body: object) => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(JSON.stringify(body)),
});

let server: InProcessServer;
const passedOn: ApiRequest[] = [];
before(async () => {
  server = await startServer({
    aggregated: [
      {
        group: GROUP,
        versions: ['v1'],
        discovery: [{ name: 'ours', singularName: '', namespaced: true, kind: '', verbs: ['update'] }],
        operations: [{ method: 'put', path: 'namespaces/{namespace}/ours/{name}', id: 'Ours' }],
        handle: async () => json({ by: 'ours' }),
      },
    ],
    // Upstream's virt-api.
    connectOutbound: () => async (request) => {
      if (request.path === START) passedOn.push(request);
      if (request.path !== `/apis/${GROUP}/v1`) return json({ by: 'theirs' });
      const resources = [{ name: 'theirs', singularName: '', namespaced: true, kind: '', verbs: ['update'] }];
      return json({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: `${GROUP}/v1`, resources });
    },
  });
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } });
  const metadata = { name: 'virt-api', namespace: 'kubevirt' };
  await server.create('/api/v1/namespaces/kubevirt/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { ports: [{ port: 443 }] },
  });
  await server.create('/apis/discovery.k8s.io/v1/namespaces/kubevirt/endpointslices', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'virt-api-1', labels: { 'kubernetes.io/service-name': 'virt-api' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.9'] }],
    ports: [{ name: '', port: 8443, protocol: 'TCP' }],
  });
});
after(() => server.stop());

const by = async (): Promise<string> => (await server.request('PUT', START, { body: {} })).json?.by;
const listed = async (): Promise<string[]> =>
  (await server.request('GET', `/apis/${GROUP}/v1`)).json?.resources?.map(({ name }: { name: string }) => name) ?? [];
const isLocal = async (): Promise<boolean> => {
  const { json } = await server.request('GET', `${SERVICES}/${NAME}`);
  return json?.spec?.service === undefined && json?.status?.conditions?.[0]?.reason === 'Local';
};
/** As virt-operator does where the object is there. */
async function give(): Promise<void> {
  const { json: held } = await server.request('GET', `${SERVICES}/${NAME}`);
  const spec = { ...held.spec, service: { namespace: 'kubevirt', name: 'virt-api' }, insecureSkipTLSVerify: true };
  const put = await server.request('PUT', `${SERVICES}/${NAME}`, { body: { ...held, spec } });
  assert.equal(put.status, 200, JSON.stringify(put.json));
  await eventually(by, (answer) => answer === 'theirs');
}

// S-421: An APIService with a service gives `subresources.kubevirt.io` to another server; when it is deleted, ours
//   answers again.
test('an APIService with a service takes the group over, in discovery too, and it is not put back', async () => {
  await eventually(isLocal, (local) => local);
  assert.equal(await by(), 'ours');
  assert.deepEqual(await listed(), ['ours']);
  await give();
  assert.equal(passedOn.at(-1)?.method, 'PUT');
  await eventually(listed, (names) => names.join() === 'theirs');
  // Whatever has the objects kept anew leaves it as it is.
  await server.request('PATCH', `${SERVICES}/${NAME}`, { body: { metadata: { labels: { app: 'kubevirt' } } } });
  assert.equal(await by(), 'theirs');
  const { json: held } = await server.request('GET', `${SERVICES}/${NAME}`);
  assert.equal(held.spec.service.name, 'virt-api');
});

for (const [how, act] of [
  ['deleted', () => server.request('DELETE', `${SERVICES}/${NAME}`)],
  [
    'freed of its service',
    () =>
      server.request('PATCH', `${SERVICES}/${NAME}`, {
        body: { spec: { service: null, insecureSkipTLSVerify: null } },
      }),
  ],
] as const)
  test(`our own comes back when that APIService is ${how}`, async () => {
    if ((await by()) !== 'theirs') await give();
    assert.equal((await act()).status, 200);
    await eventually(isLocal, (local) => local);
    assert.equal(await by(), 'ours');
    await eventually(listed, (names) => names.join() === 'ours');
  });
