/** Threat 14: a stolen node reads the guests of its node and no others, and a bootstrap token makes no certificate of a node that exists. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, test } from 'node:test';
import { decodeBase64, encodeBase64 } from '../../packages/apimachinery/src/meta/base64.ts';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { createSigningRequest } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { isOfOthers } from '../../packages/node-agent/src/agent/launcher/own-instance.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { newAuthority } from '../testkit/listen-tls.ts';

let plane: TestPlane;
const GROUP = '/apis/kubevirt.io/v1';
const instances = (namespace = 'default') => `${GROUP}/namespaces/${namespace}/virtualmachineinstances`;
const N1 = ['system:node:n1', 'system:nodes'] as const;

before(async () => {
  plane = await startPlane();
  await plane.admin('POST /api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  for (const [name, labels] of [
    ['here', { 'kubevirt.io/nodeName': 'n1' }],
    ['coming', { 'kubevirt.io/nodeName': 'n2', 'kubevirt.io/migrationTargetNodeName': 'n1' }],
    ['starting', {}],
    ['elsewhere', { 'kubevirt.io/nodeName': 'n2' }],
  ] as const) {
    const { metadata } = await plane.admin(`POST ${instances()}`, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name },
      spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
    });
    // These labels are KubeVirt's own to set.
    const as = ['system:serviceaccount:kubevirt:kubevirt-controller', 'system:masters'] as const;
    assert.equal((await plane.ask(`PATCH ${instances()}/${name}`, { as, body: { metadata: { labels } } })).status, 200);
    if (name === 'here' || name === 'coming') continue;
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid: metadata.uid };
    await plane.admin('POST /api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `launcher-${name}`, ownerReferences: [{ ...owner, controller: true }] },
      spec: {
        nodeName: name === 'starting' ? 'n1' : 'n2',
        containers: [{ name: 'c', image: 'i' }],
        volumes: [{ name: 'v', secret: { secretName: `secret-${name}` } }],
      },
    });
    await plane.admin('POST /api/v1/namespaces/default/secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `secret-${name}` },
    });
  }
});
after(() => plane.stop());

const status = async (line: string, body?: object): Promise<number> =>
  (await plane.ask(line, { as: N1, ...(body && { body }) })).status;

// S-460: A node reads the instances that run on it, move to or from it, or whose launcher is bound to it; lists and
//   watches are narrowed to it.
test('instances: those of the node, those on their way to it, those whose launcher is bound to it, and no others', async () => {
  for (const [name, expected] of [
    ['here', 200],
    ['coming', 200],
    ['starting', 200],
    ['elsewhere', 403],
    ['nowhere', 404],
  ] as const)
    assert.equal(await status(`GET ${instances()}/${name}`), expected, name);
  // By these words an agent knows that a guest is another node's by now.
  const { json } = await plane.ask(`GET ${instances()}/elsewhere`, { as: N1 });
  assert.ok(isOfOthers(new ApiError({ code: 403, reason: 'Forbidden', message: json.message })), json.message);
  assert.equal(await status(`PATCH ${instances()}/elsewhere`, { status: { phase: 'Failed' } }), 403);
  assert.equal(await status(`DELETE ${instances()}/here`), 403);
});

// S-460
test('lists and watches of instances are narrowed to the node by its label', async () => {
  const all = `${GROUP}/virtualmachineinstances`;
  for (const [selector, expected] of [
    ['', 403],
    ['?labelSelector=kubevirt.io/nodeName', 403],
    ['?labelSelector=kubevirt.io/nodeName%3Dn2', 403],
    ['?labelSelector=kubevirt.io/nodeName!%3Dn1', 403],
    ['?labelSelector=kubevirt.io/nodeName+in+(n1,n2)', 403],
    ['?fieldSelector=metadata.name%3Delsewhere', 403],
    ['?labelSelector=kubevirt.io/nodeName%3Dn1', 200],
    ['?labelSelector=kubevirt.io/migrationTargetNodeName%3Dn1', 200],
  ] as const) {
    assert.equal(await status(`GET ${all}${selector}`), expected, selector);
    if (expected === 403) assert.equal(await status(`GET ${all}${selector || '?'}&watch=true`), 403, selector);
  }
});

// S-460
test('Secrets of guests of the node, and of no others', async () => {
  assert.equal(await status('GET /api/v1/namespaces/default/secrets/secret-starting'), 200);
  assert.equal(await status('GET /api/v1/namespaces/default/secrets/secret-elsewhere'), 403);
  assert.equal(await status('GET /api/v1/namespaces/default/secrets'), 403);
});

// S-461: Who may bring nodes in gets no certificate of a node that exists; certificates of nodes last a day at most,
//   whatever was asked for.
test('who may bring nodes in gets a certificate of a new one, for a day at most, and none of one that exists', async () => {
  const authority = await newAuthority();
  const rbac = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
  for (const name of ['system:node-bootstrapper', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'])
    await plane.admin(`POST ${rbac}`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `joins-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:bootstrappers' }],
    });
  await plane.run(['certificatesigningrequest-approving-controller', 'certificatesigningrequest-signing-controller'], {
    rootCa: '',
    keys: { sign: authority.sign, signToken: () => Promise.reject(new Error('none')) },
  });
  const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  const ask = async (nodeName: string, expirationSeconds?: number): Promise<string> => {
    const subject = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] };
    const { request } = await createSigningRequest(subject);
    const { status: code, json } = await plane.ask(`POST ${CSRS}`, {
      as: ['system:bootstrap:abcdef', 'system:bootstrappers', 'system:authenticated'],
      body: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { generateName: 'csr-' },
        spec: {
          request: encodeBase64(new TextEncoder().encode(request)),
          signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
          usages: ['digital signature', 'client auth'],
          ...(expirationSeconds && { expirationSeconds }),
        },
      },
    });
    assert.equal(code, 201, JSON.stringify(json));
    return json.metadata.name;
  };
  const statusOf = async (name: string) => (await plane.admin(`GET ${CSRS}/${name}`)).status ?? {};
  await plane.admin('POST /api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'old' } });
  const taken = await ask('old');
  for (const [node, seconds] of [
    ['new', undefined],
    ['newer', 365 * 86_400],
  ] as const) {
    const name = await ask(node, seconds);
    await eventually(async () => (await statusOf(name)).certificate !== undefined);
    const pem = new TextDecoder().decode(decodeBase64((await statusOf(name)).certificate));
    const { validTo, subject } = new X509Certificate(pem);
    assert.match(subject, new RegExp(`CN=system:node:${node}$`, 'm'));
    assert.ok(Date.parse(validTo) - Date.now() <= 86_400_000, validTo);
  }
  assert.deepEqual(await statusOf(taken), {});
  // Of those who race for one name before its Node exists, one gets it.
  const racers = await Promise.all([1, 2, 3].map(() => ask('raced')));
  const last = await ask('after-them');
  await eventually(async () => (await statusOf(last)).certificate !== undefined);
  await eventually(async () => (await Promise.all(racers.map(statusOf))).some(({ certificate }) => certificate));
  const answers = await Promise.all(racers.map(statusOf));
  assert.equal(answers.filter(({ conditions }) => conditions !== undefined).length, 1);
});
