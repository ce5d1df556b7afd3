/** Threat 15: what is secret turns up in no log, no audit event, no Event, no metric and no error message. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compilePolicy } from '../../packages/apiserver/src/audit/policy.ts';
import { createLogger, formatRecord } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

const CANARY = 'CANARY-7f3a91';
const ENCODED = Buffer.from(CANARY).toString('base64');
let plane: TestPlane;
const written: string[] = [];
const audited: string[] = [];
before(async () => {
  plane = await startPlane({
    log: createLogger((record) => void written.push(formatRecord(record, 0)), 'debug'),
    audit: {
      policy: compilePolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }),
      sink: { write: (line) => void audited.push(line) },
    },
  });
});
after(() => plane.stop());

// S-215: What is secret turns up in no log, audit event, Event, metric or error message; a log line is one record
//   whatever is in it.
test('canaries in every place a secret stands: read back by who may, shown to nobody else', async () => {
  const admin = ['admin', 'system:masters'] as const;
  const secrets = '/api/v1/namespaces/default/secrets';
  const secret = (more: object) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, ...more });
  const refusedAnonymous: string[] = [];
  const ask = async (
    line: string,
    body?: unknown,
    headers = {},
    as: readonly [string, ...string[]] | undefined = admin,
  ): Promise<number> => {
    const { status, json } = await plane.ask(line, { ...(as && { as }), headers, ...(body !== undefined && { body }) });
    if (status >= 400 && !as) refusedAnonymous.push(JSON.stringify(json));
    return status;
  };
  assert.equal(
    await ask(`POST ${secrets}`, secret({ stringData: { password: CANARY }, data: { other: ENCODED } })),
    201,
  );
  const back = (await plane.ask(`GET ${secrets}/s`, { as: admin })).json;
  assert.equal(back.data.password, ENCODED, 'who may read it reads it');

  // Every way to be refused while holding one.
  assert.equal(await ask(`POST ${secrets}`, secret({ stringData: { password: CANARY } })), 409);
  await ask(`PATCH ${secrets}/s`, { type: 'Other', stringData: { password: CANARY } });
  await ask(`PATCH ${secrets}/s`, { data: { password: `!!${CANARY}` } });
  await ask(`PATCH ${secrets}/s`, { data: { password: [CANARY] } });
  await ask(`POST ${secrets}`, { ...secret({ data: { a: `!!${CANARY}` } }), metadata: { name: 'bad' } });
  await ask(`POST ${secrets}`, {
    ...secret({ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': `{${CANARY}` } }),
    metadata: { name: 'docker' },
  });
  await ask(`POST ${secrets}`, {
    ...secret({ type: 'kubernetes.io/tls', stringData: { 'tls.key': CANARY } }),
    metadata: { name: 'tls' },
  });
  await ask(`POST ${secrets}`, secret({ metadata: { name: 'UPPER' }, stringData: { password: CANARY } }));
  await ask(`POST ${secrets}`, { ...secret({ stringData: { 'a b': CANARY } }), metadata: { name: 'key' } });
  await ask(`GET ${secrets}/s`, undefined, { authorization: `Bearer ${CANARY}` }, undefined);
  await ask(`GET ${secrets}/s`, undefined, { authorization: `Bearer a.${ENCODED}.c` }, undefined);
  await ask('GET /api/v1/namespaces', undefined, { authorization: `Basic ${ENCODED}`, cookie: CANARY }, undefined);
  await ask('POST /apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token: CANARY },
  });
  const account = '/api/v1/namespaces/default/serviceaccounts';
  await ask(`POST ${account}`, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } });
  const { json: issued } = await plane.ask(`POST ${account}/robot/token`, {
    as: admin,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } },
  });
  const token: string = issued.status.token;
  assert.equal((await plane.ask('GET /api/v1/secrets', { headers: { authorization: `Bearer ${token}` } })).status, 403);
  await ask('GET /api/v1/secrets', undefined, { authorization: `Bearer ${token}x` }, undefined);

  const events = JSON.stringify(await plane.admin('GET /api/v1/events'));
  const metrics = (await plane.ask('GET /metrics', { as: admin })).response.body as Uint8Array;
  const everything: Record<string, string> = {
    logs: written.join(''),
    'audit log': audited.join('\n'),
    events,
    metrics: Buffer.from(metrics instanceof Uint8Array ? metrics : new Uint8Array()).toString(),
  };
  assert.ok(audited.length > 10);
  for (const [place, text] of Object.entries(everything)) {
    for (const value of [CANARY, ENCODED, token, token.split('.')[2]!]) {
      const at = text.indexOf(value);
      assert.equal(at, -1, `${place} hold ${value}: ${text.slice(Math.max(0, at - 200), at + 100)}`);
    }
  }
  // The asker gets to know what was wrong with what it sent; others get to know nothing.
  for (const text of refusedAnonymous) assert.doesNotMatch(text, new RegExp(`${CANARY}|${ENCODED}`), text);
});
