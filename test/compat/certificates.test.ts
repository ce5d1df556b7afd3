/** `kubectl certificate`, `kubectl create token` and `kubectl auth` with the newest kubectl: a certificate asked for, approved, and used. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createSigningRequest } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { findKubectls, type Outcome, runKubectl } from './kubectl.ts';

const kubectl = findKubectls().at(-1);
const skip = kubectl === undefined ? 'there is no kubectl on PATH' : kubectl.minor < 28 && 'kubectl is older than 1.28';
let folder = '';
let server: ControlPlaneProcess | undefined;

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'coracle-certificates-'));
  server = await startProcess(join(folder, 'data'));
});
after(async () => {
  await server?.kill('SIGTERM');
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

const run = (args: readonly string[], input?: string): Promise<Outcome> =>
  runKubectl(kubectl!, args, {
    env: { HOME: folder, PATH: process.env['PATH'] ?? '', KUBECONFIG: join(folder, 'data', 'kubeconfig') },
    cwd: folder,
    ...(input !== undefined && { input }),
  });
async function say(line: string, input?: string): Promise<string> {
  const { code, stdout, stderr } = await run(line.split(' '), input);
  assert.equal(code, 0, `kubectl ${line}: ${stderr}`);
  return stdout;
}
const request = (name: string, pem: string): string =>
  JSON.stringify({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client',
      expirationSeconds: 86_400,
      usages: ['client auth'],
    },
  });

// S-186
test('an approved request becomes a certificate that kubectl logs in with; a denied one does not', {
  skip,
}, async () => {
  const { request: pem, key } = await createSigningRequest({ commonName: 'jane', organizations: ['devs'] });
  await say('create -f -', request('jane', pem));
  await say('create -f -', request('joe', pem));
  assert.match(await say('get csr jane --no-headers'), /kube-apiserver-client\s+kubernetes-admin\s+24h\s+Pending/);
  assert.equal(await say('certificate approve jane'), 'certificatesigningrequest.certificates.k8s.io/jane approved\n');
  assert.equal(await say('certificate deny joe'), 'certificatesigningrequest.certificates.k8s.io/joe denied\n');
  await say('wait --for=jsonpath={.status.certificate} csr/jane --timeout=60s');
  assert.match(await say('get csr jane --no-headers'), /Approved,Issued/);
  assert.match(await say('get csr joe --no-headers'), /Denied/);
  const certificate = Buffer.from(await say('get csr jane -o jsonpath={.status.certificate}'), 'base64');
  writeFileSync(join(folder, 'jane.crt'), certificate);
  writeFileSync(join(folder, 'jane.key'), key, { mode: 0o600 });
  writeFileSync(join(folder, 'ca.crt'), readFileSync(join(folder, 'data', 'pki', 'ca.crt')));
  const as = `--kubeconfig=/dev/null --server=${server!.url} --certificate-authority=ca.crt --client-certificate=jane.crt --client-key=jane.key`;
  assert.match(await say(`auth whoami ${as}`), /Username\s+jane\nGroups\s+\[devs system:authenticated\]/);
  const refused = await run(`get pods ${as}`.split(' '));
  assert.match(refused.stderr, /User "jane" cannot list resource "pods"/);
  await say('create rolebinding devs-view --clusterrole=view --group=devs');
  await say(`get pods ${as}`);
});

test('a token bound to an object ends with the object', { skip: skip || kubectl!.minor < 31 }, async () => {
  await say('create secret generic bound');
  const token = (await say('create token default --bound-object-kind=Secret --bound-object-name=bound')).trim();
  const as = `--kubeconfig=/dev/null --server=${server!.url} --insecure-skip-tls-verify --token=${token}`;
  assert.match(await say(`auth whoami ${as}`), /Username\s+system:serviceaccount:default:default/);
  await say('delete secret bound');
  assert.match((await run(`auth whoami ${as}`.split(' '))).stderr, /You must be logged in to the server/);
});

// S-172
test('audit flags of coracle up write a file that only its owner reads', { skip }, async () => {
  const path = join(folder, 'audit.log');
  const policy = join(folder, 'policy.yaml');
  writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, verbs: [create]}]\n');
  const audited = await startProcess(join(folder, 'audited'), {
    more: ['--audit-log-path', path, '--audit-policy-file', policy],
  });
  const env = { HOME: folder, PATH: process.env['PATH'] ?? '', KUBECONFIG: join(folder, 'audited', 'kubeconfig') };
  const made = await runKubectl(kubectl!, ['create', 'configmap', 'seen', '--from-literal=a=b'], { env, cwd: folder });
  assert.equal(made.code, 0, made.stderr);
  await audited.kill('SIGTERM');
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const events = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const mine = events.filter(({ objectRef }) => objectRef?.name === 'seen');
  assert.equal(mine.at(-1)?.stage, 'ResponseComplete');
  assert.deepEqual(mine.at(-1)?.requestObject.data, { a: 'b' });
  writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n');
  await assert.rejects(
    startProcess(join(folder, 'audited'), { more: ['--audit-log-path', path, '--audit-policy-file', policy] }),
    /--audit-policy-file: .*rules\[0\]\.level: takes one of None, Metadata, Request, RequestResponse/,
  );
});
