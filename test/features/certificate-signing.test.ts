/** CertificateSigningRequests from asking to signing, and everything that is refused on the way. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { after, before, test } from 'node:test';
import { encodeBase64 } from '../../packages/apimachinery/src/meta/base64.ts';
import {
  type CertificateAuthority,
  createAuthority,
  createSigningRequest,
  openAuthority,
} from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const CSR = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const CLIENT = 'kubernetes.io/kube-apiserver-client';
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet';
const NODE_USAGES = ['digital signature', 'client auth'];

let test_: TestPlane;
let authority: CertificateAuthority;
before(async () => {
  authority = await openAuthority(await createAuthority(systemClock), systemClock);
  test_ = await startPlane();
  await test_.run(['certificatesigningrequest-approving-controller', 'certificatesigningrequest-signing-controller'], {
    rootCa: '',
    keys: { sign: authority.sign, signToken: test_.plane.signLegacyToken },
  });
});
after(() => test_.stop());

const pem = (text: string): string => encodeBase64(new TextEncoder().encode(text));

async function requestFor(
  name: string,
  subject: { commonName: string; organizations?: string[] },
  spec: object = {},
): Promise<object> {
  const { request } = await createSigningRequest({ organizations: [], ...subject });
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { request: pem(request), signerName: CLIENT, usages: ['client auth'], ...spec },
  };
}
const approval = (type: 'Approved' | 'Denied', status = 'True') => ({
  status: { conditions: [{ type, status, reason: 'Test', message: 'm' }] },
});
const settled = (name: string) =>
  eventually(
    () => test_.admin(`GET ${CSR}/${name}`),
    ({ status }) =>
      status?.certificate !== undefined || status?.conditions?.some((c: { type: string }) => c.type === 'Failed'),
  );

test('a user’s request is approved by hand and signed; the certificate is the user', async () => {
  const body = await requestFor(
    'jane',
    { commonName: 'jane', organizations: ['devs', 'ops'] },
    { expirationSeconds: 3600 },
  );
  await test_.admin(`POST ${CSR}`, body);
  const decided = await test_.admin(`PATCH ${CSR}/jane/approval`, approval('Approved'));
  const [condition] = decided.status.conditions;
  assert.ok(condition.lastUpdateTime && condition.lastTransitionTime);
  const { status } = await settled('jane');
  const certificate = new X509Certificate(Buffer.from(status.certificate, 'base64'));
  assert.match(certificate.subject, /O=devs\nO=ops\nCN=jane/);
  assert.ok(certificate.verify(new X509Certificate(authority.certificate).publicKey));
  const minutes = (Date.parse(certificate.validTo) - Date.now()) / 60_000;
  assert.ok(minutes > 58 && minutes <= 60, `${minutes} minutes`);
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2']);
});

test('what a signer does not sign becomes Failed, with the reason', async () => {
  for (const [name, subject, spec, message] of [
    ['server', { commonName: 'x' }, { usages: ['server auth'] }, 'invalid usage for client certificate: server auth'],
    [
      'none',
      { commonName: 'x' },
      { usages: ['digital signature'] },
      'missing required usage for client certificate: client auth',
    ],
    [
      'org',
      { commonName: 'system:node:a' },
      { signerName: KUBELET, usages: NODE_USAGES },
      'subject organization is not system:nodes',
    ],
    [
      'cn',
      { commonName: 'a', organizations: ['system:nodes'] },
      { signerName: KUBELET, usages: NODE_USAGES },
      'subject common name does not begin with system:node:',
    ],
    [
      'usages',
      { commonName: 'system:node:a', organizations: ['system:nodes'] },
      { signerName: KUBELET, usages: ['client auth'] },
      'usages did not match [client auth digital signature key encipherment]',
    ],
    [
      'san',
      { commonName: 'system:node:a', organizations: ['system:nodes'] },
      { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] },
      'DNS or IP subjectAltName is required',
    ],
  ] as const) {
    await test_.admin(`POST ${CSR}`, await requestFor(name, subject as never, spec));
    await test_.admin(`PATCH ${CSR}/${name}/approval`, approval('Approved'));
    const { status } = await settled(name);
    const failed = status.conditions.find(({ type }: { type: string }) => type === 'Failed');
    assert.deepEqual([failed.reason, failed.message], ['SignerValidationFailure', message], name);
    assert.equal(status.certificate, undefined);
  }
});

// S-186
test('nodes are approved by themselves: a first time by a bootstrapper, later by the node, never for another node', async () => {
  const subject = (node: string) => ({ commonName: `system:node:${node}`, organizations: ['system:nodes'] });
  const spec = { signerName: KUBELET, usages: NODE_USAGES };
  const post = async (name: string, node: string, as: readonly [string, ...string[]]) =>
    (await test_.ask(`POST ${CSR}`, { as, body: await requestFor(name, subject(node), spec) })).status;
  assert.equal(await post('boot', 'n1', ['system:bootstrap:abcdef', 'system:bootstrappers']), 201);
  const boot = await settled('boot');
  assert.equal(
    boot.status.conditions[0].message,
    'Auto approving kubelet client certificate after SubjectAccessReview.',
  );
  assert.equal(await post('again', 'n1', ['system:node:n1', 'system:nodes']), 201);
  const again = await settled('again');
  assert.equal(
    again.status.conditions[0].message,
    'Auto approving self kubelet client certificate after SubjectAccessReview.',
  );
  assert.equal(await post('other', 'n2', ['system:node:n1', 'system:nodes']), 403);
  // Who is no node may ask, and is not answered.
  await test_.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'askers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-bootstrapper' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'asker' }],
  });
  assert.equal(await post('asked', 'n2', ['asker']), 201);
  assert.equal(await post('last', 'n1', ['system:node:n1', 'system:nodes']), 201);
  await settled('last');
  assert.equal((await test_.admin(`GET ${CSR}/asked`)).status?.conditions, undefined);
});

test('malformed and forbidden requests are refused when they are made', async () => {
  const good = (await requestFor('x', { commonName: 'x' })) as { spec: Record<string, unknown> };
  const refused = async (spec: object): Promise<string> => {
    const { status, json } = await test_.ask(`POST ${CSR}`, {
      as: ['admin', 'system:masters'],
      body: { ...good, spec: { ...good.spec, ...spec } },
    });
    assert.ok(status === 422 || status === 403, `${status}`);
    return json.message;
  };
  const { publicKey } = generateKeyPairSync('ed25519');
  const notRequest = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  assert.match(
    await refused({ request: pem(notRequest) }),
    /spec\.request: .*PEM block type must be CERTIFICATE REQUEST/,
  );
  const [head, body = '', end] = (await createSigningRequest({ commonName: 'x', organizations: [] })).request.split(
    /\n([\s\S]*)\n(?=-----END)/,
  );
  const der = Buffer.from(body, 'base64');
  der[der.length - 1]! ^= 1;
  assert.match(
    await refused({ request: pem(`${head}\n${der.toString('base64')}\n${end}`) }),
    /x509: ECDSA verification failure/,
  );
  assert.match(await refused({ usages: [] }), /spec\.usages: Required value/);
  assert.match(
    await refused({ usages: ['client auth', 'client auth'] }),
    /spec\.usages\[1\]: Duplicate value: "client auth"/,
  );
  const atLeast = 'should be a domain with at least two segments separated by dots';
  assert.ok((await refused({ signerName: 'a/b' })).endsWith(`spec.signerName: Invalid value: "a": ${atLeast}`));
  assert.match(
    await refused({ signerName: 'A.b/C' }),
    /signerName: Invalid value: "A\.b": validating label "A": .*signerName: Invalid value: "C": validating label "C": /,
  );
  assert.match(await refused({ usages: ['fly'] }), /spec\.usages\[0\]: Unsupported value: "fly"/);
  assert.match(
    await refused({ expirationSeconds: 599 }),
    /may not specify a duration less than 600 seconds \(10 minutes\)/,
  );
  assert.match(
    await refused({ signerName: 'kubernetes.io/legacy-unknown' }),
    /the legacy signerName is not allowed via this API version/,
  );
  const masters = (await requestFor('m', { commonName: 'x', organizations: ['system:masters'] })) as { spec: object };
  assert.match(
    await refused(masters.spec),
    /is forbidden: use of kubernetes\.io\/kube-apiserver-client signer with system:masters group is not allowed$/,
  );
});

// S-186: Certificate requests: a right on the signer is needed beside the one on the subresource; an approved one
//   becomes a certificate that logs in.
// Compat Admission and quota, P1, yes: certificate approval and signing
test('approving and signing take a right on the signer beside the one on the subresource', async () => {
  await test_.admin(`POST ${CSR}`, await requestFor('guarded', { commonName: 'x' }, { signerName: 'example.com/s' }));
  const RBAC = '/apis/rbac.authorization.k8s.io/v1';
  const role = (name: string, rules: object[]) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules,
  });
  const bind = (name: string, user: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
  const apiGroups = ['certificates.k8s.io'];
  const subresources = ['certificatesigningrequests/approval', 'certificatesigningrequests/status'];
  await test_.admin(
    `POST ${RBAC}/clusterroles`,
    role('writer', [{ apiGroups, resources: subresources, verbs: ['patch'] }]),
  );
  await test_.admin(`POST ${RBAC}/clusterrolebindings`, bind('writer', 'carl'));
  const as = ['carl'] as const;
  const approve = () => test_.ask(`PATCH ${CSR}/guarded/approval`, { as, body: approval('Approved') });
  const { certificate } = await createAuthority(systemClock);
  const sign = (issued = certificate) =>
    test_.ask(`PATCH ${CSR}/guarded/status`, { as, body: { status: { certificate: pem(issued) } } });
  assert.match(
    (await approve()).json.message,
    /user not permitted to approve requests with signerName "example\.com\/s"$/,
  );
  assert.match((await sign()).json.message, /user not permitted to sign requests with signerName "example\.com\/s"$/);
  await test_.admin(
    `POST ${RBAC}/clusterroles`,
    role('signer', [
      { apiGroups, resources: ['signers'], resourceNames: ['example.com/*'], verbs: ['approve', 'sign'] },
    ]),
  );
  await test_.admin(`POST ${RBAC}/clusterrolebindings`, bind('signer', 'carl'));
  assert.equal((await approve()).status, 200);
  assert.match(
    (await sign('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')).json.message,
    /status\.certificate: Invalid value: "<certificate data>": x509: malformed certificate$/,
  );
  assert.equal((await sign()).status, 200);
  // Decided once and for all, signed once and for all.
  const admin = ['admin', 'system:masters'] as const;
  const undo = await test_.ask(`PATCH ${CSR}/guarded/approval`, { as: admin, body: { status: { conditions: [] } } });
  assert.match(undo.json.message, /updates may not remove a condition of type "Approved"/);
  const both = await test_.ask(`PATCH ${CSR}/guarded/approval`, {
    as: admin,
    body: {
      status: { conditions: [...approval('Approved').status.conditions, ...approval('Denied').status.conditions] },
    },
  });
  assert.match(both.json.message, /Approved and Denied conditions are mutually exclusive/);
  const maybe = await test_.ask(`PATCH ${CSR}/guarded/approval`, { as: admin, body: approval('Approved', 'False') });
  assert.match(maybe.json.message, /status\.conditions\[0\]\.status: Unsupported value: "False"/);
});

// Compat Admission and quota, P1, yes: decisions on CertificateSigningRequests through `/approval` alone; a certificate
//   that was issued stays
test('a decision is given through approval alone and stays as it was given, and a certificate stays', async () => {
  await test_.admin(`POST ${CSR}`, await requestFor('kept', { commonName: 'x' }, { signerName: 'example.com/s' }));
  const put = async (subresource: string, status: object) => {
    const body = { ...(await test_.admin(`GET ${CSR}/kept`)), status };
    const { json } = await test_.ask(`PUT ${CSR}/kept/${subresource}`, { as: ['admin', 'system:masters'], body });
    const causes: { field: string; message: string }[] = json.details?.causes ?? [];
    return { json, fieldCauses: causes.map(({ field, message }) => `${field}: ${message}`) };
  };
  const [approved] = approval('Approved').status.conditions;
  const [denied] = approval('Denied').status.conditions;
  const certificate = pem((await createAuthority(systemClock)).certificate);
  for (const [subresource, status, wanted] of [
    [
      'status',
      { conditions: [approved] },
      'status.conditions: Forbidden: updates may not add a condition of type "Approved"',
    ],
    ['approval', { conditions: [{ type: 'X' }] }, 'status.conditions[0].status: Required value'],
    [
      'approval',
      { conditions: [{ type: 'X', status: 'x' }] },
      'status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"',
    ],
    [
      'approval',
      { conditions: [denied, approved] },
      'status.conditions[1].type: Invalid value: "Approved": Approved and Denied conditions are mutually exclusive',
    ],
    ['approval', { conditions: [approved] }, undefined],
    ['status', { certificate, conditions: [{ ...approved, reason: 'Other' }] }, undefined],
    ['status', { certificate }, 'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
    [
      'status',
      { conditions: [approved] },
      'status.certificate: Forbidden: updates may not modify existing certificate content',
    ],
  ] as const) {
    assert.deepEqual((await put(subresource, status)).fieldCauses, wanted === undefined ? [] : [wanted]);
  }
  const { status } = await test_.admin(`GET ${CSR}/kept`);
  assert.deepEqual([status.conditions[0].reason, status.certificate], ['Test', certificate]);
});

// Compat Admission and quota, P2, yes: `/metrics` counts certificates issued to requests for a certain duration, and
//   those that have about that (`csr_requested_duration_total`, `csr_honored_duration_total`)
test('/metrics counts the certificates asked for with a duration, and those that have about that', async () => {
  const counted = async (signerName: string): Promise<[requested: number, honored: number]> => {
    const { response } = await test_.ask('GET /metrics', { as: ['admin', 'system:masters'] });
    const text = new TextDecoder().decode(response.body as Uint8Array);
    const value = (which: string): number =>
      Number(
        text
          .split(`apiserver_certificates_registry_csr_${which}_duration_total{signerName="${signerName}"} `)[1]
          ?.split('\n')[0] ?? 0,
      );
    return [value('requested'), value('honored')];
  };
  // Good for years.
  const certificate = pem((await createAuthority(systemClock)).certificate);
  const make = async (name: string, spec: object) => {
    await test_.admin(`POST ${CSR}`, await requestFor(name, { commonName: name }, spec));
    await test_.admin(`PATCH ${CSR}/${name}/approval`, approval('Approved'));
  };
  const [requested, honored] = await counted(CLIENT);
  await make('hour', { expirationSeconds: 3600 });
  await settled('hour');
  await make('as-long-as-may-be', {});
  await settled('as-long-as-may-be');
  assert.deepEqual(await counted(CLIENT), [requested + 1, honored + 1]);

  for (const [name, spec, [more, kept]] of [
    ['short', { expirationSeconds: 3600 }, [1, 0]],
    ['any', {}, [0, 0]],
  ] as const) {
    const [before, good] = await counted('other');
    await make(name, { signerName: 'example.com/metrics', ...spec });
    const status = { status: { certificate } };
    await test_.admin(`PATCH ${CSR}/${name}/status?dryRun=All`, status);
    assert.deepEqual(await counted('other'), [before, good]);
    await test_.admin(`PATCH ${CSR}/${name}/status`, status);
    await test_.admin(`PATCH ${CSR}/${name}`, { metadata: { labels: { a: 'b' } } });
    assert.deepEqual(await counted('other'), [before + more, good + kept]);
  }
});
