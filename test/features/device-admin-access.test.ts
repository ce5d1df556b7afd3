import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true });
});
after(() => server.stop());

const GROUP = '/apis/resource.k8s.io/v1/namespaces/default';
const LABEL = 'resource.kubernetes.io/admin-access';
const devices = { requests: [{ name: 'r', exactly: { deviceClassName: 'c', adminAccess: true } }] };
const claim = (name: string): object => ({ metadata: { name }, spec: { devices } });
const template = (name: string): object => ({ metadata: { name }, spec: { spec: { devices } } });
const label = (value: string): Promise<Answer> =>
  server.request('PATCH', '/api/v1/namespaces/default', { body: { metadata: { labels: { [LABEL]: value } } } });

// S-264: Admin access to devices is for namespaces that are marked for it.
// Compat Admission and quota, P2, yes: DeviceAdminAccess: the namespace label `resource.kubernetes.io/admin-access`
test('admin access to devices is for namespaces that are marked for it', async () => {
  const refused = `spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the \`${LABEL}: true\` label on the containing namespace`;
  for (const value of [undefined, 'false']) {
    if (value !== undefined) await label(value);
    const one = await server.request('POST', `${GROUP}/resourceclaims`, { body: claim('a') });
    assert.equal(one.status, 422, one.text);
    assert.equal(one.json.message, `ResourceClaim.resource.k8s.io "a" is invalid: ${refused}`);
    const other = await server.request('POST', `${GROUP}/resourceclaimtemplates`, { body: template('a') });
    assert.equal(other.json.message, `ResourceClaimTemplate.resource.k8s.io "a" is invalid: ${refused}`);
  }
  await label('true');
  const made = await server.request('POST', `${GROUP}/resourceclaims`, { body: claim('a') });
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(made.json.spec.devices.requests[0].exactly, {
    deviceClassName: 'c',
    adminAccess: true,
    allocationMode: 'ExactCount',
    count: 1,
  });
  assert.equal((await server.request('POST', `${GROUP}/resourceclaimtemplates`, { body: template('a') })).status, 201);

  // Taken away again, the claim stays, but nothing is handed out for it any more.
  await label('false');
  const allocation = {
    devices: { results: [{ request: 'r', driver: 'd.io', pool: 'p', device: 'd', adminAccess: true }] },
  };
  const allocate = (): Promise<Answer> =>
    server.request('PATCH', `${GROUP}/resourceclaims/a/status`, {
      body: { status: { allocation } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
  const denied = await allocate();
  assert.equal(denied.status, 422, denied.text);
  assert.match(denied.json.message, /status\.allocation\.devices\.results\[0\]\.adminAccess: Forbidden: admin access/);
  await label('true');
  assert.equal((await allocate()).status, 200);
});
