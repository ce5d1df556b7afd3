/** Threat 18: whoever has no identity is refused on every route, with whatever body, and never makes the server stumble. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { bombs } from '../fuzz/bombs.ts';
import { oddHeaders, oddQuery, oddValue } from '../fuzz/odd-values.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { randomFrom, seed } from '../testkit/seed.ts';

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
});
after(() => plane.stop());

/** What upstream shows to everybody, and the reviews that only speak of the asker. */
const PUBLIC = /^\/(version|healthz|livez|readyz)(\/|$)|^\/apis\/(authentication\.k8s\.io\/v1\/selfsubjectreviews)$/;

test('a thousand strange requests from nobody: refused, and no bomb is even read', async (t) => {
  t.diagnostic(`CORACLE_SEED=${seed}`);
  const random = randomFrom(seed);
  const groups = await plane.admin('GET /apis');
  const roots: string[] = [
    '/api/v1',
    ...groups.groups.flatMap((g: { versions: { groupVersion: string }[] }) =>
      g.versions.map((v) => `/apis/${v.groupVersion}`),
    ),
  ];
  const paths = [
    '/',
    '/api',
    '/apis',
    '/version',
    '/healthz',
    '/livez',
    '/readyz',
    '/readyz/ping',
    '/metrics',
    '/logs',
    '/openapi/v2',
    '/openapi/v3',
    '/debug/pprof',
    '/.well-known/openid-configuration',
    '/openid/v1/jwks',
  ];
  for (const root of roots) {
    paths.push(root);
    for (const { name, namespaced } of (await plane.admin(`GET ${root}`)).resources) {
      const [resource, ...sub] = name.split('/');
      const base = `${root}${namespaced ? '/namespaces/default' : ''}/${resource}`;
      paths.push(...(sub.length ? [`${base}/x/${sub.join('/')}`] : [base, `${base}/x`]));
    }
  }
  const large = bombs();
  let count = 0;
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'FROB']) {
      const bomb = large[count % large.length]!;
      const [bytes, type] =
        random() < 0.1
          ? [bomb.bytes, bomb.type]
          : [Buffer.from(JSON.stringify(oddValue(random)) ?? ''), 'application/json'];
      const odd = oddHeaders(random);
      const response = await plane.plane.handler({
        method,
        path,
        query: random() < 0.5 ? oddQuery(random) : '',
        headers: { ...odd, ...(method !== 'GET' && { 'content-type': type }) },
        body: method === 'GET' ? NO_BYTES : bytes,
        peer: { address: '192.0.2.9' },
        signal: NEVER,
      });
      count++;
      const where = `${method} ${path} ${JSON.stringify(odd)}: ${response.status}`;
      assert.ok(response.status < 500 || response.status === 503, where);
      if (!PUBLIC.test(path)) assert.ok([400, 401, 403, 404, 405, 406, 414].includes(response.status), where);
    }
  }
  assert.ok(count > 1000);
});
