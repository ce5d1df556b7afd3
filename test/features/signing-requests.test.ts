import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
const CSR = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
before(async () => {
  server = await startServer({ defaultAdmission: true });
});
after(() => server.stop());

const patch = async (path: string, body: object) => (await server.request('PATCH', `${CSR}/one${path}`, { body })).json;
const types = (json: { status?: { conditions?: { type: string }[] } }): string[] =>
  (json.status?.conditions ?? []).map(({ type }) => type);

// S-134: A signing request says who made it, is decided in one place and signed in another.
test('a signing request says who made it, is decided in one place and signed in another', async () => {
  const body = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'one' },
    spec: { request: 'Yg==', signerName: 'example.com/s', usages: ['client auth'], username: 'somebody else' },
  };
  const created = await server.request('POST', CSR, { body });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.json.spec.username, 'tester');
  assert.deepEqual(created.json.spec.groups, ['system:masters', 'system:authenticated']);

  assert.equal((await patch('', { spec: { signerName: 'example.com/t' } })).spec.signerName, 'example.com/s');
  const approved = { type: 'Approved', status: 'True', reason: 'R', message: 'm' };
  assert.deepEqual(types(await patch('', { status: { conditions: [approved] } })), []);
  const decided = await patch('/approval', { status: { certificate: 'Zm9v', conditions: [approved] } });
  assert.deepEqual(types(decided), ['Approved']);
  assert.equal(decided.status.certificate, undefined);
  const seen = { type: 'Seen', status: 'True' };
  const signed = await patch('/status', { status: { certificate: 'Zm9v', conditions: [approved, seen] } });
  assert.deepEqual([types(signed), signed.status.certificate], [['Approved', 'Seen'], 'Zm9v']);
});
