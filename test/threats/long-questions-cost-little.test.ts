/** Threats 20 and 24: a long path, query or selector costs the server little, and of nobody it is not even parsed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { matchesLabels, parseLabelSelector } from '../../packages/apimachinery/src/selector/label-selector.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let plane: TestPlane;
let server: InProcessServer;
before(async () => {
  plane = await startPlane();
  server = await startServer();
});
after(async () => {
  await plane.stop();
  await server.stop();
});

const PODS = '/api/v1/namespaces/default/pods';

const ask = (path: string, query: string, headers: Record<string, string>) =>
  plane.plane.handler({
    method: 'GET',
    path,
    query,
    headers,
    body: NO_BYTES,
    peer: { address: '192.0.2.1' },
    signal: NEVER,
  });

const selector = (bytes: number): string => `labelSelector=a+notin+(${'v,'.repeat(bytes / 2)}v)`;

// S-477: Long paths, queries and selectors cost the server little, and of nobody they are not parsed.
test('a long target of nobody is refused, and with a wrong credential it is 401', async () => {
  for (const [path, query] of [
    [PODS, selector(900_000)],
    [PODS, `fieldSelector=${'a=b,'.repeat(2000)}`],
    [`/${'a'.repeat(5000)}`, ''],
  ] as const) {
    assert.equal((await ask(path, query, {})).status, 414);
    assert.equal((await ask(path, query, { authorization: 'Bearer wrong' })).status, 401);
  }
  assert.equal((await ask(PODS, selector(1000), {})).status, 403);
  assert.equal((await ask('/version', '', {})).status, 200);
});

test('a selector has a bound for everybody, the last character within it counts', async () => {
  const text = (length: number): string => `a notin (${'v,'.repeat(length)}`.slice(0, length - 2).concat('v)');
  assert.equal(parseLabelSelector(text(65_536)).requirements.length, 1);
  assert.throws(() => parseLabelSelector(text(65_538)), /a selector may have 65536 characters/);
  const { status } = await server.request('GET', `${PODS}?${selector(70_000)}`);
  assert.equal(status, 400);
});

// S-477
test('thousands of values are looked up, not looked through', () => {
  const values = Array.from({ length: 10_000 }, (_, at) => `v${at}`);
  const looked = new Set<string>();
  const requirement = { key: 'a', operator: 'notin' as const, values };
  // Whoever walks over the values for each object reads them all each time.
  const watched = new Proxy(values, {
    get(target, name, receiver) {
      if (typeof name === 'string' && /^\d+$/.test(name)) looked.add(name);
      return Reflect.get(target, name, receiver);
    },
  });
  const watching = { requirements: [{ ...requirement, values: watched }] };
  assert.equal(matchesLabels(watching, { a: 'v9999' }), false);
  looked.clear();
  for (let at = 0; at < 1000; at++) assert.equal(matchesLabels(watching, { a: `w${at}` }), true);
  assert.equal(looked.size, 0);
});
