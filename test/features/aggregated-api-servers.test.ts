/**
 * API groups of another server: a second Coracle, over real HTTPS, serves `wardle.example.com`; the first one registers,
 * proxies, probes and describes it. The back server believes X-Remote-* headers from the front proxy's certificate only.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { unauthorized } from '../../packages/apimachinery/src/meta/status.ts';
import type { ResourceInfo } from '../../packages/apimachinery/src/types/resource.ts';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { builtinResources } from '../../packages/apiserver/src/kinds/builtin/builtin-resources.ts';
import { readWhole } from '../../packages/apiserver/src/outbound/read-whole.ts';
import { createOutbound, type Outbound } from '../../packages/coracle/src/compose/outbound.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createHttpsTransport, type HttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { createMessagePair } from '../../packages/runtime/src/http/message-pair.ts';
import {
  type ApiHandler,
  type ApiRequest,
  type ApiResponse,
  NEVER,
  NO_BYTES,
  redirected,
} from '../../packages/runtime/src/http/seam.ts';
import { startTlsServer, type TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const GROUP = 'wardle.example.com';
const FLUNDERS = `/apis/${GROUP}/v1alpha1/namespaces/default/flunders`;
const SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

const configMaps = builtinResources().find((info) => info.resource === 'configmaps')!;
const flunders: ResourceInfo = {
  ...configMaps,
  group: GROUP,
  version: 'v1alpha1',
  resource: 'flunders',
  singular: 'flunder',
  kind: 'Flunder',
  listKind: 'FlunderList',
  shortNames: ['fl'],
  schema: { type: 'object', properties: { spec: { type: 'object', properties: { reference: { type: 'string' } } } } },
  strategy: { ...configMaps.strategy, custom: true },
};

let back: InProcessServer;
let backTls: TlsServer;
let front: InProcessServer;
let frontTls: TlsServer;
let outbound: Outbound;
let client: HttpsTransport;
let backCa: string;
/** What reached the back server, newest last. */
const seen: ApiRequest[] = [];

const headersOf = (request: ApiRequest, name: string): string[] => {
  const raw = request.rawHeaders ?? [];
  return raw.flatMap((value, i) => (i % 2 === 1 && raw[i - 1]!.toLowerCase() === name ? [value] : []));
};

before(async () => {
  const authority = await openAuthority(await createAuthority(systemClock), systemClock);
  const proxyAuthority = await openAuthority(await createAuthority(systemClock, 'front-proxy-ca'), systemClock);
  const frontProxy = await proxyAuthority.issue({ commonName: 'front-proxy-client', usage: 'client', days: 1 });
  const serving = await authority.issue({
    commonName: 'wardle',
    dnsNames: ['api.wardle.svc'],
    ipAddresses: ['127.0.0.1'],
    usage: 'server',
    days: 1,
  });
  backCa = authority.certificate;

  back = await startServer({
    resources: [flunders],
    authenticate: async (request) => {
      const { certificate } = request.peer;
      if (!certificate?.verified || certificate.commonName !== 'front-proxy-client') throw unauthorized();
      return { username: request.headers['x-remote-user'] ?? '', groups: headersOf(request, 'x-remote-group') };
    },
  });
  const handler: ApiHandler = async (request) => {
    // As it came: the handshake of a WebSocket takes out what it has used.
    seen.push(redirected(request, { headers: { ...request.headers } }));
    if (request.path.endsWith('/echo') && request.upgradable) {
      return {
        status: 101,
        headers: {},
        upgrade: {
          protocol: 'echo.example.com',
          accept: (socket) => socket.onMessage((data) => socket.send(new TextDecoder().decode(data).toUpperCase())),
        },
      };
    }
    return back.handler(request);
  };
  backTls = await startTlsServer({
    handler,
    host: '127.0.0.1',
    port: 0,
    tls: { ...serving, clientCa: proxyAuthority.certificate },
    log: silentLogger,
  });

  front = await startServer({
    authenticate: async (request) => ({
      username: 'jane',
      uid: 'u-1',
      groups: ['dev, ops', 'system:masters'],
      extra: { 'example.com/Team': ['a', 'b'] },
      ...(request.headers['authorization'] === 'Bearer none' && { username: 'none', groups: [] }),
    }),
    authorize: (user) => ({ allowed: user.username !== 'none', reason: '' }),
    connectOutbound: (target) => (request) => outbound.connect(target)(request),
  });
  outbound = createOutbound({ store: front.store, frontProxy });
  frontTls = await startTlsServer({
    handler: front.handler,
    host: '127.0.0.1',
    port: 0,
    tls: serving,
    log: silentLogger,
  });
  client = createHttpsTransport({ server: `https://127.0.0.1:${frontTls.port}`, ca: backCa });

  await front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'wardle' } });
});

after(async () => {
  client.close();
  outbound.close();
  await front.stop();
  await frontTls.close();
  await back.stop();
  await backTls.close();
});

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** A request to the front server, over the wire. */
async function send(pathAndQuery: string, { method = 'GET', headers = {}, body }: Sent = {}) {
  const [path = '', query = ''] = pathAndQuery.split('?');
  const response = await client({
    method,
    path,
    query,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    body: body === undefined ? NO_BYTES : new TextEncoder().encode(JSON.stringify(body)),
    peer: { address: '' },
    signal: NEVER,
  });
  const text = new TextDecoder().decode(await readWhole(response, { limit: 1e8, signal: NEVER }));
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  const json: any = response.headers['content-type']?.startsWith('application/json') ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, json };
}

const apiService = {
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: `v1alpha1.${GROUP}` },
  spec: {
    group: GROUP,
    version: 'v1alpha1',
    service: { namespace: 'wardle', name: 'api' },
    caBundle: '',
    groupPriorityMinimum: 2000,
    versionPriority: 200,
  },
};

/** Waits until the APIService has this condition; its message. */
async function untilReason(reason: string): Promise<string> {
  const watch = await front.watch(`${SERVICES}?watch=1&fieldSelector=metadata.name=v1alpha1.${GROUP}`);
  for (;;) {
    const event = await watch.next();
    const condition = event?.object.status?.conditions?.[0];
    if (condition?.reason !== reason) continue;
    watch.close();
    return condition.message;
  }
}

const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'api' }, spec: { ports: [{ port: 443 }] } };
const slice = () => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'api-1', labels: { 'kubernetes.io/service-name': 'api' } },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['127.0.0.1'] }],
  ports: [{ name: '', port: backTls.port, protocol: 'TCP' }],
});

// S-160
// Compat Aggregation, P1, yes: availability: reasons in upstream's order, 503 `service unavailable`
test('an APIService becomes available step by step, and says why it is not', async () => {
  const made = await send(SERVICES, {
    method: 'POST',
    body: { ...apiService, spec: { ...apiService.spec, caBundle: btoa(backCa) } },
  });
  assert.equal(made.status, 201, made.text);
  assert.equal(made.json.spec.service.port, 443);
  assert.equal(await untilReason('ServiceNotFound'), 'service/api in "wardle" is not present');

  const refused = await send(FLUNDERS);
  assert.deepEqual([refused.status, refused.text], [503, 'service unavailable\n']);
  assert.equal(refused.headers['content-type'], 'text/plain; charset=utf-8');

  await front.create('/api/v1/namespaces/wardle/services', service);
  assert.equal(await untilReason('EndpointsNotFound'), 'cannot find endpointslices for service/api in "wardle"');

  await front.create('/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices', {
    ...slice(),
    endpoints: [],
  });
  assert.match(await untilReason('MissingEndpoints'), /^endpointslices for service\/api in "wardle" have no addresses/);

  await front.request('PATCH', '/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices/api-1', {
    body: { endpoints: slice().endpoints },
  });
  assert.equal(await untilReason('Passed'), 'all checks passed');
});

// S-160: Groups of other servers are served through APIServices, in the name of the user and without their credentials;
//   what is not available says why.
// Compat Aggregation, P1, yes: proxying with X-Remote-* and a client certificate of its own, without the caller's
//   credentials
// Compat Authentication and impersonation, P0, yes: credentials go no further than authentication
test('requests go through in the name of their user, without his credentials', async () => {
  const created = await send(FLUNDERS, {
    method: 'POST',
    headers: {
      authorization: 'Bearer secret',
      'x-remote-user': 'admin',
      'x-remote-group': 'system:masters',
      'x-remote-extra-scopes': 'all',
      'user-agent': 'tester/1',
      'audit-id': 'audit-1',
    },
    body: { apiVersion: `${GROUP}/v1alpha1`, kind: 'Flunder', metadata: { name: 'f1' }, spec: { reference: 'x' } },
  });
  assert.equal(created.status, 201, created.text);
  const request = seen.findLast(({ method }) => method === 'POST')!;
  assert.equal(request.headers['authorization'], undefined);
  assert.deepEqual(headersOf(request, 'x-remote-user'), ['jane']);
  assert.deepEqual(headersOf(request, 'x-remote-uid'), ['u-1']);
  assert.deepEqual(headersOf(request, 'x-remote-group'), ['dev, ops', 'system:masters']);
  assert.deepEqual(headersOf(request, 'x-remote-extra-example.com%2fteam'), ['a', 'b']);
  assert.equal(request.headers['x-remote-extra-scopes'], undefined);
  assert.equal(request.headers['user-agent'], 'tester/1');
  assert.equal(request.headers['audit-id'], 'audit-1');
  assert.equal(created.headers['audit-id'], 'audit-1');
  assert.equal((await send(`${FLUNDERS}/f1`)).json.spec.reference, 'x');
  assert.equal((await send(`${FLUNDERS}/nobody`)).json.reason, 'NotFound');
});

// Compat Aggregation, P1, yes: authorisation comes before the proxy
test('who may not is refused before anything is passed on', async () => {
  const before = seen.length;
  const refused = await send(FLUNDERS, { headers: { authorization: 'Bearer none' } });
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /^flunders.wardle.example.com is forbidden: User "none" cannot list/);
  assert.equal(seen.length, before);
});

test('a body that was too large to be read whole is not passed on', async () => {
  const before = seen.length;
  const body = { metadata: { name: 'big' }, spec: { reference: 'x'.repeat(3 * 1024 * 1024) } };
  assert.equal((await send(FLUNDERS, { method: 'POST', body })).status, 413);
  assert.equal(seen.length, before);
});

// Compat Aggregation, P1, yes: streams pass through
test('a watch streams', async () => {
  const stop = new AbortController();
  const response: ApiResponse = await client({
    method: 'GET',
    path: FLUNDERS,
    query: 'watch=1',
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal: stop.signal,
  });
  assert.equal(response.status, 200);
  const { body } = response;
  assert.equal(typeof body, 'function');
  const text = await new Promise<string>((resolve) => {
    let all = '';
    if (typeof body !== 'function') return;
    body({
      buffered: 0,
      signal: stop.signal,
      drained: () => Promise.resolve(),
      end: () => {},
      write(chunk) {
        all += new TextDecoder().decode(chunk);
        if (all.includes('\n')) resolve(all);
        return true;
      },
    });
  });
  const event = JSON.parse(text.split('\n')[0]!);
  assert.deepEqual([event.type, event.object.metadata.name], ['ADDED', 'f1']);
  stop.abort();
});

// Compat Aggregation, P1, yes: upgrades pass through
test('an upgrade passes through, its bearer protocol does not', async () => {
  const response = await client({
    method: 'GET',
    path: `${FLUNDERS}/f1/echo`,
    query: '',
    headers: { 'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io.eA, echo.example.com' },
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
    upgradable: true,
  });
  assert.equal(response.status, 101);
  assert.equal(response.upgrade?.protocol, 'echo.example.com');
  const [near, far] = createMessagePair('echo.example.com');
  const answered = new Promise<string>((resolve) =>
    near.onMessage((data) => resolve(typeof data === 'string' ? data : new TextDecoder().decode(data))),
  );
  response.upgrade!.accept(far);
  near.send('hello');
  assert.equal(await answered, 'HELLO');
  near.close();
  const request = seen.findLast(({ upgradable }) => upgradable)!;
  assert.equal(request.headers['sec-websocket-protocol'], 'echo.example.com');
  assert.deepEqual(headersOf(request, 'x-remote-user'), ['jane']);
});

// Compat Aggregation, P1, yes: OpenAPI v2 merged, v3 passed on
test('discovery and OpenAPI show the group', async () => {
  assert.equal((await send(`/apis/${GROUP}/v1alpha1`)).json.resources[0].name, 'flunders');
  assert.equal((await send(`/apis/${GROUP}`)).json.preferredVersion.groupVersion, `${GROUP}/v1alpha1`);
  const { json } = await send('/apis', { headers: { accept: AGGREGATED } });
  const names: string[] = json.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  const item = json.items[names.indexOf(GROUP)];
  assert.equal(item.versions[0].freshness, 'Current');
  assert.equal(item.versions[0].resources[0].resource, 'flunders');
  assert.deepEqual(item.versions[0].resources[0].shortNames, ['fl']);
  const last = (await send('/apis')).json.groups.map(({ name }: { name: string }) => name);
  assert.ok(last.includes(GROUP));

  // Both documents are read beside the rest; one that there was no time for, with the next look.
  const { serverRelativeURL } = await eventually(
    'the OpenAPI v3 document',
    async () => (await send('/openapi/v3')).json.paths[`apis/${GROUP}/v1alpha1`],
  );
  const page = await send(serverRelativeURL);
  assert.equal(page.status, 200, page.text.slice(0, 200));
  assert.ok(page.json.components.schemas['com.example.wardle.v1alpha1.Flunder']);
  assert.equal(page.headers['cache-control'], 'public, immutable');
  const swagger = await eventually('the OpenAPI v2 document', async () => {
    const { json } = await send('/openapi/v2');
    return json.paths[`/apis/${GROUP}/v1alpha1/namespaces/{namespace}/flunders`] !== undefined && json;
  });
  assert.ok(swagger.definitions['com.example.wardle.v1alpha1.Flunder']);
  assert.ok(swagger.definitions['io.k8s.api.core.v1.Pod'], 'ours stay');
});

// S-160
// Compat Aggregation, P1, yes: discovery merged, Stale when the far end is gone
test('a far end that is gone is unavailable, and its discovery is stale', async () => {
  await front.request('PATCH', '/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices/api-1', {
    body: { ports: [{ name: '', port: 9, protocol: 'TCP' }] },
  });
  assert.match(
    await untilReason('FailedDiscoveryCheck'),
    /^failing or missing response from https:\/\/10\.96\.\d+\.\d+:443\/apis\/wardle\.example\.com\/v1alpha1: |^failing or missing response from https:\/\/api\.wardle\.svc:443/,
  );
  const { json } = await send('/apis', { headers: { accept: AGGREGATED } });
  const item = json.items.find(({ metadata }: { metadata: { name: string } }) => metadata.name === GROUP);
  assert.equal(item.versions[0].freshness, 'Stale');
  assert.equal(item.versions[0].resources[0].resource, 'flunders', 'what was known stays');
  assert.equal((await send(FLUNDERS)).status, 503);
});

test('a deleted APIService takes its group out of discovery', async () => {
  assert.equal((await send(`${SERVICES}/v1alpha1.${GROUP}`, { method: 'DELETE' })).status, 200);
  assert.equal((await send(`/apis/${GROUP}`)).status, 404);
  assert.equal((await send(FLUNDERS)).text, '404 page not found\n');
  const groups = (await send('/apis')).json.groups.map(({ name }: { name: string }) => name);
  assert.ok(!groups.includes(GROUP));
});

// S-160
// Compat Aggregation, P1, yes: an APIService for each group version served here, made and removed with it
test('APIServices of run-time kinds come and go with them', async () => {
  const own = await startServer();
  const name = `v2.${GROUP}`;
  const watch = await own.watch(`${SERVICES}?watch=1&fieldSelector=metadata.name=${name}`);
  const until = async (matches: (type: string, versionPriority: number) => boolean) => {
    for (;;) {
      const event = await watch.next();
      if (event && matches(event.type, event.object.spec.versionPriority)) return event.object;
    }
  };
  own.catalog.add({ ...flunders, version: 'v2' });
  const made = await until((type) => type === 'ADDED');
  assert.equal(made.metadata.labels['kube-aggregator.kubernetes.io/automanaged'], 'true');
  assert.deepEqual([made.spec.groupPriorityMinimum, made.spec.versionPriority], [1000, 100]);
  assert.equal(made.status.conditions[0].reason, 'Local');

  // Kept as it should be while the kind is served, and gone with it.
  await own.request('PATCH', `${SERVICES}/${name}`, { body: { spec: { versionPriority: 7 } } });
  await until((type, versionPriority) => type === 'MODIFIED' && versionPriority === 7);
  await until((type, versionPriority) => type === 'MODIFIED' && versionPriority === 100);
  await own.request('DELETE', `${SERVICES}/${name}`);
  await until((type) => type === 'ADDED');
  own.catalog.remove({ ...flunders, version: 'v2' });
  await until((type) => type === 'DELETED');
  watch.close();

  const core = await own.request('GET', `${SERVICES}/v1.`);
  assert.equal(core.json.metadata.labels['kube-aggregator.kubernetes.io/automanaged'], 'onstart');
  assert.deepEqual([core.json.spec.groupPriorityMinimum, core.json.spec.versionPriority], [18000, 1]);
  await own.stop();
});
