import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '../../../../client/src/client.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { type ApiRequest, NEVER, NO_BYTES, type Peer } from '../../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { Launcher } from '../launcher/launcher.ts';
import { createNodeHandler, type HandlerOptions } from './handler.ts';
import { createServerAccess } from './server-access.ts';

const shown = (commonName: string, verified = true): Peer => ({
  address: '192.0.2.1',
  certificate: { verified, commonName, organizations: ['masters'], fingerprint: '' },
});
const asked = (path: string, more: Partial<ApiRequest> = {}): ApiRequest => ({
  method: 'GET',
  path,
  query: '',
  headers: {},
  body: NO_BYTES,
  peer: shown('apiserver'),
  signal: NEVER,
  ...more,
});

/** A cluster that lets `apiserver` do everything with this node, and everybody read its figures. */
function cluster() {
  const reviews: { user: string; groups: string[]; resourceAttributes: Record<string, string> }[] = [];
  const clock = createFakeClock();
  let answers = true;
  const raw = async (_method: string, path: string, { body }: { body: { spec: (typeof reviews)[number] } }) => {
    assert.equal(path, '/apis/authorization.k8s.io/v1/subjectaccessreviews');
    reviews.push(body.spec);
    if (!answers) throw new Error('connect ECONNREFUSED');
    const { user, resourceAttributes } = body.spec;
    return { status: { allowed: user === 'apiserver' || resourceAttributes['subresource'] === 'metrics' } };
  };
  const client = { raw } as unknown as Client;
  const may = createServerAccess({ client, nodeName: 'n1', clock, log: silentLogger });
  return { may, reviews, clock, fail: () => (answers = false) };
}

// S-319: An external API server reaches logs, ports and figures of a node as of a kubelet, if the cluster lets it.
test('the cluster is asked for the right a kubelet would ask for, in the name that the certificate proves', async () => {
  const { may, reviews } = cluster();
  assert.equal(await may(asked('/containerLogs/ns/p/compute')), true);
  assert.equal(await may(asked('/portForward/ns/p', { method: 'POST' })), true);
  assert.equal(await may(asked('/stats/summary', { peer: shown('somebody') })), false);
  assert.equal(await may(asked('/metrics/resource', { peer: shown('somebody') })), true);
  assert.equal(await may(asked('/metricsOfOthers', { peer: shown('somebody') })), false);
  assert.deepEqual(
    reviews.map(({ user, resourceAttributes: { verb, resource, subresource, name } }) =>
      [user, verb, resource, subresource, name].join(' '),
    ),
    [
      'apiserver get nodes proxy n1',
      'apiserver create nodes proxy n1',
      'somebody get nodes stats n1',
      'somebody get nodes metrics n1',
      'somebody get nodes proxy n1',
    ],
  );
  assert.deepEqual(reviews[0]?.groups, ['masters', 'system:authenticated']);
});

// S-319
test('nobody is asked about for whom no authority of the cluster vouches', async () => {
  const { may, reviews } = cluster();
  assert.equal(await may(asked('/pods', { peer: shown('apiserver', false) })), false);
  assert.equal(await may(asked('/pods', { peer: { address: '192.0.2.1' } })), false);
  assert.equal(await may(asked('/pods', { peer: shown('') })), false);
  assert.deepEqual(reviews, []);
});

test('answers are kept for a while; where there is none the caller is refused, and asked about anew', async () => {
  const { may, reviews, clock, fail } = cluster();
  const read = (peer?: Peer) => may(asked('/pods', peer && { peer }));
  for (let round = 0; round < 3; round++) assert.deepEqual([await read(), await read(shown('x'))], [true, false]);
  assert.equal(reviews.length, 2);
  await clock.advance(31_000);
  assert.deepEqual([await read(), await read(shown('x'))], [true, false]);
  assert.equal(reviews.length, 3, 'what was refused may have been granted since');
  fail();
  await clock.advance(300_000);
  assert.deepEqual([await read(), await read()], [false, false]);
  assert.equal(reviews.length, 5);
});

// S-319
test('an external API server is answered as by a kubelet: SPDY over bytes, pages under their own names', async () => {
  const launcher = {
    containers: [],
    record: {},
    guest: { forwarder: { endpoint: async () => ({ host: '127.0.0.1', port: 1 }) } },
  } as unknown as Launcher;
  const handler = createNodeHandler({
    find: () => undefined,
    findPod: (_, name) => (name === 'p' ? launcher : undefined),
    directoryOf: () => '',
    memoryDirectory: '',
    metrics: async () => [],
    node: { nodeName: 'n1', dataDir: '/', pods: () => [] },
    authorize: async ({ peer }) => peer.certificate?.commonName === 'apiserver',
    clock: createFakeClock(),
    log: silentLogger,
  } satisfies HandlerOptions);
  const spdy = (more: Partial<ApiRequest>) =>
    handler(
      asked('/portForward/ns/p', {
        method: 'POST',
        upgradeTo: 'SPDY/3.1',
        headers: { 'x-stream-protocol-version': 'portforward.k8s.io' },
        ...more,
      }),
    );
  const agreed = await spdy({});
  assert.deepEqual(
    [agreed.status, agreed.upgrade?.protocol, agreed.upgrade?.raw, agreed.headers],
    [101, 'SPDY/3.1', true, { 'x-stream-protocol-version': 'portforward.k8s.io' }],
  );
  assert.equal((await spdy({ headers: {} })).status, 400);
  assert.equal((await spdy({ upgradeTo: 'h2c' })).status, 400);
  assert.equal((await spdy({ path: '/portForward/ns/other' })).status, 404);
  assert.equal((await spdy({ peer: shown('somebody') })).status, 403);
  assert.equal((await handler(asked('/containerLogs/ns/p/compute', { method: 'POST' }))).status, 405);

  const text = async (path: string): Promise<[number, string]> => {
    const { status, body } = await handler(asked(path));
    return [status, new TextDecoder().decode(body as Uint8Array)];
  };
  assert.deepEqual(await text('/healthz'), [200, 'ok']);
  assert.equal(JSON.parse((await text('/pods'))[1]).kind, 'PodList');
  assert.equal((await text('/stats/nothing'))[0], 404);
  assert.equal((await text('/runningpods/'))[0], 404);
});
