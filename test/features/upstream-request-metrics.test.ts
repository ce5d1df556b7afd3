/** Requests in /metrics, under upstream's names, labels and buckets. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

/** The values of `apiserver_request_total` by verb, scope, subresource, dry run and code, for one resource. */
async function counted(resource: string): Promise<Record<string, number>> {
  const { text } = await server.request('GET', '/metrics');
  const found: Record<string, number> = {};
  for (const [, labels, value] of text.matchAll(/^apiserver_request_total\{(.*)\} (\d+)$/gm)) {
    const of = Object.fromEntries([...labels!.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]));
    if (of['resource'] !== resource) continue;
    found[[of['verb'], of['scope'], of['subresource'], of['dry_run'], of['code']].join(' ')] = Number(value);
  }
  return found;
}

// S-231: Metrics of requests and of admission have upstream's names, labels and buckets; what clients make up is no
//   label.
// Compat Priority and fairness, audit, health, metrics, P2, yes: metrics of requests: labels and buckets as upstream
test('verbs are upper case: of HTTP for writes, of the API for reads', async () => {
  const one = `${MAPS}/one`;
  await server.request('POST', `${MAPS}?dryRun=All`, { body: map('one') });
  await server.request('POST', MAPS, { body: map('one') });
  await server.request('GET', one);
  await server.request('GET', `${MAPS}/two`);
  await server.request('GET', MAPS);
  await server.request('GET', '/api/v1/configmaps');
  await server.request('PUT', one, { body: map('one') });
  await server.request('PATCH', one, { body: {} });
  const headers = { 'content-type': 'application/apply-patch+yaml' };
  await server.request('PATCH', `${one}?fieldManager=me`, { body: map('one'), headers });
  const watch = await server.watch(`${MAPS}?watch=1`);
  watch.close();
  await server.request('DELETE', one);
  await server.request('DELETE', MAPS);
  assert.deepEqual(await counted('configmaps'), {
    'POST resource  All 201': 1,
    'POST resource   201': 1,
    'GET resource   200': 1,
    'GET resource   404': 1,
    'LIST namespace   200': 1,
    'LIST cluster   200': 1,
    'PUT resource   200': 1,
    'PATCH resource   200': 1,
    'APPLY resource   200': 1,
    'WATCH namespace   200': 1,
    'DELETE resource   200': 1,
    'DELETECOLLECTION namespace   200': 1,
  });
});

test('subresources are distinguished, and those that are entered are CONNECT', async () => {
  const pod = '/api/v1/namespaces/default/pods/none';
  await server.request('GET', `${pod}/status`);
  await server.request('POST', `${pod}/exec`);
  const found = await counted('pods');
  assert.deepEqual(found, { 'GET resource status  404': 1, [Object.keys(found)[1]!]: 1 });
  assert.match(Object.keys(found)[1]!, /^CONNECT resource exec {2}\d+$/);
});

// S-231
test('what clients make up is no label', async () => {
  for (const [method, path] of [
    ['BREW', '/coffee'],
    ['GET', '/apis/not.there/v1/things'],
    ['GET', '/api/v1/namespaces/default/nothings/x/y'],
  ] as const) {
    await server.request(method, path);
  }
  assert.deepEqual(await counted('nothings'), {});
  const { text } = await server.request('GET', '/metrics');
  assert.doesNotMatch(text, /coffee|not\.there|BREW|brew/);
  assert.equal((await counted(''))['other    404'], 1);
});

// S-231
test('durations are sorted into the buckets of upstream', async () => {
  const { text } = await server.request('GET', '/metrics');
  const labels =
    'component="apiserver",dry_run="",group="",resource="configmaps",scope="namespace",subresource="",verb="LIST",version="v1"';
  const bounds = [...text.matchAll(/^apiserver_request_duration_seconds_bucket\{(.*),le="([^"]*)"\} (\d+)$/gm)]
    .filter(([, of]) => of === labels)
    .map(([, , le]) => le);
  assert.deepEqual(
    bounds.join(' '),
    '0.005 0.025 0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf',
  );
  assert.ok(text.includes(`apiserver_request_duration_seconds_count{${labels}} 1\n`));
});
