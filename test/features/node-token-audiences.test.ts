/** For whom a node may ask for tokens of its Pods' accounts, and for whom for certificates (upstream's test/integration/auth). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeBase64 } from '../../packages/apimachinery/src/meta/base64.ts';
import { createSigningRequest } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

const CORE = '/api/v1/namespaces/default';
const NODE = ['system:node:node1', 'system:nodes'] as const;
let plane: TestPlane;

before(async () => {
  plane = await startPlane();
  const make = (path: string, kind: string, name: string, more: object = {}) =>
    plane.admin(`POST ${path}`, { apiVersion: 'v1', kind, metadata: { name }, ...more });
  for (const name of ['default', 'other']) await make(`${CORE}/serviceaccounts`, 'ServiceAccount', name);
  await make('/api/v1/nodes', 'Node', 'node1');
});
after(() => plane.stop());

/** What a node gets that asks for tokens of these audiences; '' where it gets one. */
async function asked(audiences: readonly string[], volume?: object, account = 'default'): Promise<string> {
  const { metadata } = await plane.admin(`POST ${CORE}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod1' },
    spec: {
      nodeName: 'node1',
      serviceAccountName: account,
      automountServiceAccountToken: false,
      containers: [{ name: 'image', image: 'busybox' }],
      ...(volume && { volumes: [{ name: 'foo', ...volume }] }),
    },
  });
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'pod1', uid: metadata.uid };
  const { status, json } = await plane.ask(`POST ${CORE}/serviceaccounts/${account}/token`, {
    as: NODE,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences, boundObjectRef } },
  });
  await plane.admin(`DELETE ${CORE}/pods/pod1?gracePeriodSeconds=0`);
  return status === 201 ? '' : `${status} ${json.message}`;
}

const FORBIDDEN = '403 serviceaccounts "default" is forbidden: ';
const notNamed = (audience: string): string =>
  `${FORBIDDEN}audience "${audience}" not found in pod spec volume, system:node:node1 is not authorized to request tokens for this audience`;
const projected = (audience: string) => ({
  projected: { sources: [{ serviceAccountToken: { audience, path: 'path' } }] },
});

const CASES: readonly [title: string, audience: string, volume: object | undefined, answer: string][] = [
  ['a projected token for the API', '', projected(''), ''],
  ['a projected token for somebody else', 'vault', projected('vault'), ''],
  ['another one than the projected', 'bank', projected('vault'), notNamed('bank')],
  ['no volume', 'a', undefined, notNamed('a')],
];

// S-346: A node gets tokens for the audiences its Pods' volumes name, and certificates in its own name.
// Compat Authorisation, P1, yes: tokens that nodes ask for: audiences named by projected volumes or RBAC; kubelet
//   certificates in the node's own name
test('a node asks for the audiences that volumes of its Pods name', async (t) => {
  for (const [title, audience, volume, answer] of CASES)
    await t.test(title, async () => assert.equal(await asked([audience], volume), answer));
  assert.equal(await asked(['a', 'b']), `${FORBIDDEN}node may only request 0 or 1 audiences`);
});

// S-346
test('for other audiences it takes a right, by audience and by account', async () => {
  const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
  const grant = async (resource: string, resourceNames: readonly string[]) => {
    const rule = { apiGroups: [''], resources: [resource], verbs: ['request-serviceaccounts-token-audience'] };
    await plane.admin(`POST ${RBAC}/roles`, { metadata: { name: 'r' }, rules: [{ ...rule, resourceNames }] });
    await plane.admin(`POST ${RBAC}/rolebindings`, {
      metadata: { name: 'r' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
    });
    return async () => {
      for (const kind of ['roles', 'rolebindings']) await plane.admin(`DELETE ${RBAC}/${kind}/r`);
    };
  };
  for (const [resource, names, allowed, refused] of [
    ['audience1', ['default'], 'audience1', 'audience2'],
    ['*', [], 'whatever', undefined],
    ['', [], '', 'audience1'],
    ['myaud://audience1/audience2.com', [], 'myaud://audience1/audience2.com', 'audience1'],
  ] as const) {
    assert.equal(await asked([allowed]), notNamed(allowed));
    const takeBack = await grant(resource, names);
    assert.equal(await asked([allowed]), '');
    if (refused !== undefined) assert.equal(await asked([refused]), notNamed(refused));
    if (names.length > 0) assert.notEqual(await asked([allowed], undefined, 'other'), '');
    await takeBack();
  }
});

// S-346
test('a node asks for certificates of kubelets in its own name', async () => {
  const ask = async (commonName: string, signerName: string) => {
    const { request } = await createSigningRequest({ commonName, organizations: ['system:nodes'] });
    const { status, json } = await plane.ask(
      'POST /apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All',
      {
        as: NODE,
        body: {
          apiVersion: 'certificates.k8s.io/v1',
          kind: 'CertificateSigningRequest',
          metadata: { name: 'csr' },
          spec: { request: encodeBase64(new TextEncoder().encode(request)), signerName, usages: ['client auth'] },
        },
      },
    );
    return status === 201 ? '' : json.message;
  };
  const refusal =
    'certificatesigningrequests.certificates.k8s.io "csr" is forbidden: can only create a node CSR with CN=system:node:node1';
  for (const signer of ['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving']) {
    assert.equal(await ask('system:node:node1', signer), '');
    assert.equal(await ask('system:node:node2', signer), refusal);
  }
  assert.equal(await ask('system:node:node2', 'example.com/signer'), '');
});
