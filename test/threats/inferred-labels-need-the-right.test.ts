/** A tenant names another tenant's claim in inferFromVolume, to have its labels written into a machine of theirs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
  for (const name of ['mine', 'theirs'])
    await made('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const namespace of ['mine', 'theirs'])
    await made(`/api/v1/namespaces/${namespace}/persistentvolumeclaims`, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'golden',
        labels: { 'instancetype.kubevirt.io/default-instancetype': `type-of-${namespace}` },
      },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
  await made('/apis/rbac.authorization.k8s.io/v1/namespaces/mine/rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'tenant' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'tenant' }],
  });
});
after(() => board.stop());

async function made(path: string, body: object): Promise<void> {
  const { status, json } = await board.send('POST', path, body);
  assert.equal(status, 201, JSON.stringify(json));
}

/** A request of the tenant. */
async function asTenant(body: object): Promise<{ status: number; text: string }> {
  const response = await board.plane.handler({
    method: 'POST',
    path: '/apis/kubevirt.io/v1/namespaces/mine/virtualmachines',
    query: '',
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
    peer: {
      address: '192.0.2.1',
      certificate: { verified: true, commonName: 'tenant', organizations: [], fingerprint: 'tenant' },
    },
    signal: NEVER,
  });
  return { status: response.status, text: new TextDecoder().decode(response.body as Uint8Array) };
}

/** A machine whose disk is a copy of a claim, and whose instance type is that of the claim. */
const machine = (name: string, namespace: string, policy?: string) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name },
  spec: {
    runStrategy: 'Halted',
    instancetype: { inferFromVolume: 'disk', ...(policy && { inferFromVolumeFailurePolicy: policy }) },
    dataVolumeTemplates: [
      {
        metadata: { name: 'copy' },
        spec: {
          source: { pvc: { namespace, name: 'golden' } },
          storage: { resources: { requests: { storage: '1Gi' } } },
        },
      },
    ],
    template: { spec: { domain: { devices: {} }, volumes: [{ name: 'disk', dataVolume: { name: 'copy' } }] } },
  },
});

// S-442: What `inferFromVolume` reads labels of must be readable by who asks, in its namespace.
test("the labels of a claim are read only for those who may read it, whatever the machine's failure policy says", async () => {
  const own = await asTenant(machine('own', 'mine'));
  assert.equal(own.status, 201, own.text);
  assert.match(own.text, /type-of-mine/);
  for (const policy of [undefined, 'Ignore', 'Reject']) {
    const refused = await asTenant(machine('spy', 'theirs', policy));
    assert.equal(refused.status, 403, refused.text);
    assert.match(refused.text, /needs the right to get persistentvolumeclaims \\"golden\\" in namespace \\"theirs\\"/);
    assert.doesNotMatch(refused.text, /type-of-theirs/);
  }
  // What is not there is answered alike.
  const absent = machine('spy', 'nowhere');
  assert.equal((await asTenant(absent)).status, 403);
});
