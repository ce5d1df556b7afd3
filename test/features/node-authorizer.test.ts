/** What a node reads and writes: the objects of the Pods bound to it and its own, asked of a whole control plane. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ControlPlane } from '../../packages/coracle/src/compose/control-plane.ts';
import { NEVER, NO_BYTES, type Peer } from '../../packages/runtime/src/http/seam.ts';
import { openPlane } from '../testkit/control-plane.ts';

let plane: ControlPlane;
const stop = new AbortController();
const peerOf = (commonName: string, organization: string): Peer => ({
  address: '192.0.2.1',
  certificate: {
    verified: true,
    commonName,
    organizations: [organization],
    fingerprint: `${commonName} ${organization}`,
  },
});
const ADMIN = peerOf('admin', 'system:masters');
const N1 = peerOf('system:node:n1', 'system:nodes');
const N2 = peerOf('system:node:n2', 'system:nodes');

async function ask(peer: Peer, line: string, body?: unknown, type = 'application/merge-patch+json') {
  const [method = '', target = ''] = line.split(' ');
  const [path = '', query = ''] = target.split('?');
  const response = await plane.handler({
    method,
    path,
    query,
    headers: body === undefined ? {} : { 'content-type': method === 'PATCH' ? type : 'application/json' },
    body: body === undefined ? NO_BYTES : new TextEncoder().encode(JSON.stringify(body)),
    peer,
    signal: NEVER,
  });
  const text = response.body instanceof Uint8Array ? Buffer.from(response.body).toString() : '';
  const parts = Array.isArray(response.body) ? Buffer.concat(response.body).toString() : text;
  return { status: response.status, json: parts.startsWith('{') ? JSON.parse(parts) : undefined };
}
const must = async (line: string, body: unknown): Promise<{ metadata: { uid: string } }> => {
  const { status, json } = await ask(ADMIN, line, body);
  assert.ok(status < 300, `${line}: ${status} ${JSON.stringify(json)}`);
  return json;
};
const CORE = '/api/v1/namespaces/default';
let podUid = '';

before(async () => {
  plane = await openPlane({ signal: stop.signal });
  const object = (kind: string, name: string, more: object = {}) => ({
    apiVersion: 'v1',
    kind,
    metadata: { name },
    ...more,
  });
  await must(`POST ${CORE}/serviceaccounts`, object('ServiceAccount', 'default'));
  await must(`POST ${CORE}/serviceaccounts`, object('ServiceAccount', 'robot'));
  for (const name of ['volume', 'env', 'envfrom', 'pull', 'projected', 'other'])
    await must(`POST ${CORE}/secrets`, object('Secret', name));
  for (const name of ['map', 'other']) await must(`POST ${CORE}/configmaps`, object('ConfigMap', name));
  for (const name of ['claim', 'other'])
    await must(
      `POST ${CORE}/persistentvolumeclaims`,
      object('PersistentVolumeClaim', name, {
        spec: {
          accessModes: ['ReadWriteOnce'],
          volumeName: `pv-${name}`,
          resources: { requests: { storage: '1Gi' } },
        },
      }),
    );
  for (const name of ['claim', 'other'])
    await must(
      'POST /api/v1/persistentvolumes',
      object('PersistentVolume', `pv-${name}`, {
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          claimRef: { namespace: 'default', name },
          csi: { driver: 'd', volumeHandle: name },
        },
      }),
    );
  const pod = await must(
    `POST ${CORE}/pods`,
    object('Pod', 'p', {
      spec: {
        nodeName: 'n1',
        serviceAccountName: 'robot',
        automountServiceAccountToken: false,
        imagePullSecrets: [{ name: 'pull' }],
        containers: [
          {
            name: 'c',
            image: 'i',
            env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } }],
            envFrom: [{ secretRef: { name: 'envfrom' } }],
          },
        ],
        volumes: [
          { name: 'v', secret: { secretName: 'volume' } },
          { name: 'm', configMap: { name: 'map' } },
          {
            name: 'p',
            projected: { sources: [{ secret: { name: 'projected' } }, { serviceAccountToken: { path: 'token' } }] },
          },
          { name: 'c', persistentVolumeClaim: { claimName: 'claim' } },
        ],
      },
    }),
  );
  podUid = pod.metadata.uid;
  await must(`POST ${CORE}/pods`, object('Pod', 'unbound', { spec: { containers: [{ name: 'c', image: 'i' }] } }));
  for (const name of ['n1', 'n2']) {
    const peer = name === 'n1' ? N1 : N2;
    const { status } = await ask(peer, 'POST /api/v1/nodes', object('Node', name));
    assert.equal(status, 201);
  }
});
after(async () => {
  await plane.close(AbortSignal.timeout(5000));
  stop.abort();
});

const NOT_RELATED = "no relationship found between node 'n2' and this object";

// S-136
// Compat Authorisation, P1, yes: Node authorizer and NodeRestriction
test('a node reads what Pods bound to it refer to; another node is refused, with the reason', async () => {
  for (const path of [
    `${CORE}/secrets/volume`,
    `${CORE}/secrets/env`,
    `${CORE}/secrets/envfrom`,
    `${CORE}/secrets/pull`,
    `${CORE}/secrets/projected`,
    `${CORE}/configmaps/map`,
    `${CORE}/persistentvolumeclaims/claim`,
    '/api/v1/persistentvolumes/pv-claim',
    `${CORE}/pods/p`,
    `${CORE}/serviceaccounts/robot`,
  ]) {
    assert.equal((await ask(N1, `GET ${path}`)).status, 200, path);
    const { status, json } = await ask(N2, `GET ${path}`);
    assert.equal(status, 403, path);
    assert.ok(json.message.endsWith(`: ${NOT_RELATED}`), json.message);
  }
  assert.equal((await ask(N1, `GET ${CORE}/secrets?fieldSelector=metadata.name%3Dvolume`)).status, 200);
});

// S-184: A node reads what Pods bound to it refer to, as long as they do, and writes nothing that is not its own.
// S-1667: A node creates no Pods, and has nothing to do with CSI drivers and devices.
test('what no Pod of the node refers to is 403, whether it exists or not', async () => {
  const reasons: Readonly<Record<string, string>> = {
    [`GET ${CORE}/secrets/other`]: "no relationship found between node 'n1' and this object",
    [`GET ${CORE}/secrets/no-such`]: "no relationship found between node 'n1' and this object",
    [`GET ${CORE}/configmaps/other`]: "no relationship found between node 'n1' and this object",
    [`GET ${CORE}/persistentvolumeclaims/other`]: "no relationship found between node 'n1' and this object",
    'GET /api/v1/persistentvolumes/pv-other': "no relationship found between node 'n1' and this object",
    [`GET ${CORE}/secrets`]: 'No Object name found',
    'GET /api/v1/secrets': 'can only read namespaced object of this type',
    'GET /api/v1/configmaps?watch=1': 'can only read namespaced object of this type',
    [`DELETE ${CORE}/secrets/volume`]: 'can only read resources of this type',
    [`GET ${CORE}/persistentvolumeclaims`]: 'can only get individual resources of this type',
    'GET /api/v1/nodes': "node 'n1' cannot read all nodes, only its own Node object",
    'GET /api/v1/nodes/n2': "node 'n1' cannot read 'n2', only its own Node object",
    'GET /api/v1/pods': 'can only list/watch pods with spec.nodeName field selector',
    'GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn2': 'can only list/watch pods with spec.nodeName field selector',
    [`GET ${CORE}/pods/unbound`]: "no relationship found between node 'n1' and this object",
    [`GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2`]:
      'can only access node lease with the same name as the requesting node',
    [`GET /apis/coordination.k8s.io/v1/namespaces/default/leases/n1`]:
      'can only access leases in the "kube-node-lease" system namespace',
    'GET /apis/storage.k8s.io/v1/csinodes/n1': 'no agent of a node serves CSI drivers or devices',
    'GET /apis/storage.k8s.io/v1/volumeattachments/a': 'no agent of a node serves CSI drivers or devices',
    [`GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a`]:
      'no agent of a node serves CSI drivers or devices',
    'DELETE /apis/resource.k8s.io/v1/resourceslices': 'no agent of a node serves CSI drivers or devices',
  };
  for (const [line, reason] of Object.entries(reasons)) {
    const { status, json } = await ask(N1, line);
    assert.equal(status, 403, line);
    assert.ok(json.message.endsWith(`: ${reason}`), `${line}: ${json.message}`);
  }
  assert.equal((await ask(N1, 'GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1')).status, 200);
  assert.equal((await ask(N1, 'GET /api/v1/nodes/n1')).status, 200);
});

// S-1200: What the network of Pods is made of is read by nodes that run an agent, and by no others.
test('a node that runs an agent reads what the network of Pods is made of', async () => {
  const own = peerOf('system:node:agent', 'system:nodes');
  const node = (annotations: object) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'agent', annotations } });
  const lists = ['/api/v1/pods', '/api/v1/nodes', '/apis/networking.k8s.io/v1/networkpolicies'];
  await must('POST /api/v1/nodes', node({}));
  for (const path of lists) assert.equal((await ask(own, `GET ${path}`)).status, 403, path);
  await must('PUT /api/v1/nodes/agent', node({ 'coracle.dev/agent-id': '6f1e0b8e-2f0c-4f0b-9a51-0d7f3b2c9a10' }));
  for (const path of lists) assert.equal((await ask(own, `GET ${path}`)).status, 200, path);
  assert.equal((await ask(own, `GET ${CORE}/pods/unbound`)).status, 403);
  assert.equal((await ask(own, 'GET /api/v1/secrets')).status, 403);
});

// S-184
test('NodeRestriction refuses writes to what is not the node’s own', async () => {
  const refusals: readonly [string, unknown, string][] = [
    [
      'PATCH /api/v1/nodes/n1',
      { metadata: { labels: { 'node-restriction.kubernetes.io/a': 'b' } } },
      'nodes "n1" is forbidden: is not allowed to modify labels: node-restriction.kubernetes.io/a',
    ],
    [
      'PATCH /api/v1/nodes/n1',
      { metadata: { labels: { 'foo.k8s.io/a': 'b' } } },
      'nodes "n1" is forbidden: is not allowed to modify labels: foo.k8s.io/a',
    ],
    [
      'PATCH /api/v1/nodes/n1',
      { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } },
      'nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
    ],
    [
      'PATCH /api/v1/nodes/n2',
      { metadata: { labels: { a: 'b' } } },
      'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
    ],
    [
      'PATCH /api/v1/nodes/n2/status',
      { status: {} },
      'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
    ],
    [
      `PATCH ${CORE}/pods/unbound/status`,
      { status: { phase: 'Running' } },
      'pods "unbound" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
    ],
    [
      `PATCH ${CORE}/pods/p/status`,
      { metadata: { labels: { a: 'b' } } },
      'pods "p" is forbidden: node "n1" cannot update labels through pod status',
    ],
    [
      `DELETE ${CORE}/pods/unbound`,
      undefined,
      'pods "unbound" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
    ],
    [
      `POST ${CORE}/pods/unbound/eviction`,
      { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'unbound' } },
      'pods "unbound" is forbidden: node n1 can only evict pods with spec.nodeName set to itself',
    ],
    [
      'POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
      { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'n2' } },
      'leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the requesting node',
    ],
  ];
  for (const [line, body, message] of refusals) {
    const { status, json } = await ask(N1, line, body);
    assert.deepEqual([status, json?.message], [403, message], line);
  }
  const own = { metadata: { name: 'own' }, spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] } };
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'm' } };
  for (const pod of [own, { ...own, metadata: { ...own.metadata, ...mirror } }])
    assert.equal((await ask(N1, `POST ${CORE}/pods`, { apiVersion: 'v1', kind: 'Pod', ...pod })).status, 403);
  assert.equal(
    (await ask(N1, 'PATCH /api/v1/nodes/n1', { metadata: { labels: { 'kubevirt.io/a': 'b' } } })).status,
    200,
  );
  assert.equal((await ask(N1, `PATCH ${CORE}/pods/p/status`, { status: { phase: 'Running' } })).status, 200);
});

// S-184
test('tokens a node asks for are bound to a Pod on it', async () => {
  const request = (boundObjectRef?: object) => ({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { ...(boundObjectRef && { boundObjectRef }) },
  });
  const token = `POST ${CORE}/serviceaccounts/robot/token`;
  const pod = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: podUid };
  const refused = async (peer: Peer, body: unknown): Promise<string> => {
    const { status, json } = await ask(peer, token, body);
    assert.equal(status, 403);
    return json.message;
  };
  assert.match(await refused(N1, request()), /node requested token not bound to a pod$/);
  assert.match(
    await refused(N1, request({ ...pod, uid: undefined })),
    /node requested token with a pod binding without a uid$/,
  );
  assert.match(await refused(N1, request({ ...pod, uid: 'x' })), /does not match the UID in record/);
  assert.match(await refused(N2, request(pod)), /no relationship found between node 'n2' and this object$/);
  const { status, json } = await ask(N1, token, request(pod));
  assert.equal(status, 201, JSON.stringify(json));
  const claims = JSON.parse(Buffer.from(json.status.token.split('.')[1], 'base64url').toString());
  assert.deepEqual(claims['kubernetes.io'].pod, { name: 'p', uid: podUid });
  // The server fills in the node of a Pod that is bound.
  assert.equal(claims['kubernetes.io'].node.name, 'n1');
});

test('a group without a node name, and a node name without the group, are no node', async () => {
  for (const [peer, reason] of [
    [peerOf('system:node:', 'system:nodes'), 'unknown node for user "system:node:"'],
    [peerOf('system:node:n1', 'others'), 'in the namespace "default"'],
  ] as const) {
    const { status, json } = await ask(peer, `GET ${CORE}/secrets/volume`);
    assert.equal(status, 403);
    assert.ok(json.message.endsWith(reason), json.message);
  }
});

// S-184
test('when the Pod goes, so does the right', async () => {
  assert.equal((await ask(N1, `GET ${CORE}/secrets/volume`)).status, 200);
  assert.equal((await ask(N1, `DELETE ${CORE}/pods/p?gracePeriodSeconds=0`)).status, 200);
  assert.equal((await ask(N1, `GET ${CORE}/secrets/volume`)).status, 403);
  assert.equal((await ask(N1, 'GET /api/v1/persistentvolumes/pv-claim')).status, 403);
});
