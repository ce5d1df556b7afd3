/** Threat 14: what a stolen node certificate can write, over every resource and verb that discovery names. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  for (const name of ['n1', 'n2'])
    await plane.admin('POST /api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  // What the other node runs.
  await plane.admin('POST /api/v1/namespaces/kube-system/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  await plane.admin('POST /api/v1/namespaces/kube-system/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'n2' },
    spec: { nodeName: 'n2', containers: [{ name: 'c', image: 'i' }] },
  });
  const instances = '/apis/kubevirt.io/v1/namespaces/kube-system/virtualmachineinstances';
  await plane.admin(`POST ${instances}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'n2' },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
  const placed = await plane.ask(`PATCH ${instances}/n2`, {
    as: ['system:serviceaccount:kubevirt:kubevirt-controller', 'system:masters'],
    body: { status: { nodeName: 'n2', phase: 'Scheduled' } },
  });
  assert.equal(placed.json.status.nodeName, 'n2');
});
after(() => plane.stop());

const N1 = ['system:node:n1', 'system:nodes'] as const;

interface Served {
  readonly path: string;
  readonly name: string;
  readonly verbs: readonly string[];
}

async function everything(): Promise<Served[]> {
  const groups = await plane.admin('GET /apis');
  const versions = [
    'v1',
    ...groups.groups.flatMap((g: { versions: { groupVersion: string }[] }) => g.versions.map((v) => v.groupVersion)),
  ];
  const served: Served[] = [];
  for (const gv of versions) {
    const root = gv === 'v1' ? '/api/v1' : `/apis/${gv}`;
    for (const { name, namespaced, verbs } of (await plane.admin(`GET ${root}`)).resources) {
      const [resource, ...sub] = name.split('/');
      const base = `${root}${namespaced ? '/namespaces/kube-system' : ''}/${resource}`;
      served.push({
        path: sub.length ? `${base}/n2/${sub.join('/')}` : base,
        name: `${gv.replace(/\/?v\d.*$/, '')}/${name}`,
        verbs,
      });
    }
  }
  return served;
}

// What a node may try on objects that are not its own; NodeRestriction then looks at the object itself.
const MAY: readonly RegExp[] = [
  /^(create|update|patch) (events\.k8s\.io)?\/events$/,
  /^create authentication\.k8s\.io\/(tokenreviews|selfsubjectreviews)$/,
  /^create authorization\.k8s\.io\/(localsubjectaccessreviews|subjectaccessreviews|selfsubjectaccessreviews|selfsubjectrulesreviews)$/,
  /^create certificates\.k8s\.io\/certificatesigningrequests$/,
];

test('a write to anything that is not the node’s own is refused: all resources, all verbs', async () => {
  const METHODS: Record<string, string> = {
    create: 'POST',
    update: 'PUT',
    patch: 'PATCH',
    delete: 'DELETE',
    deletecollection: 'DELETE',
  };
  let tried = 0;
  const allowed: string[] = [];
  for (const { path, name, verbs } of await everything()) {
    for (const verb of verbs) {
      const method = METHODS[verb];
      if (!method) continue;
      const whole = verb === 'create' || verb === 'deletecollection' || path.includes('/n2/');
      const metadata = { name: 'n2' };
      const { status, json } = await plane.ask(`${method} ${whole ? path : `${path}/n2`}?dryRun=All`, {
        as: N1,
        body: { metadata },
      });
      tried++;
      if (status !== 403) allowed.push(`${verb} ${name} (${status} ${json?.message ?? ''})`);
    }
  }
  const surprising = allowed.filter((line) => !MAY.some((rule) => rule.test(line.replace(/ \(.*/s, ''))));
  assert.deepEqual(surprising, []);
  assert.ok(tried > 400, `only ${tried} writes were tried`);
});

test('its own Node: no owner, no taint taken off, no label of others, no other name', async () => {
  const own = 'PATCH /api/v1/nodes/n1';
  const cases: readonly (readonly [string, string, object])[] = [
    [
      'an owner, so that the collector deletes it',
      own,
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }] } },
    ],
    ['a label kept for admins', own, { metadata: { labels: { 'node-restriction.kubernetes.io/team': 'a' } } }],
    ['a role of its own', own, { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }],
    ['taints', own, { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }],
    ['another node', 'PATCH /api/v1/nodes/n2', { spec: { unschedulable: true } }],
    ['the status of another node', 'PATCH /api/v1/nodes/n2/status', { status: { phase: 'Running' } }],
  ];
  for (const [what, line, body] of cases) {
    const { status, json } = await plane.ask(line, { as: N1, body });
    assert.equal(status, 403, `${what}: ${status} ${JSON.stringify(json)}`);
  }
  const deleted = await plane.ask('DELETE /api/v1/nodes/n1', { as: N1 });
  assert.equal(deleted.status, 403);
});

test('rights are not made up: a user who may write roles cannot give what it does not have', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const meta = (name: string) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name } });
  await plane.admin(`POST ${rbac}/clusterroles`, {
    ...meta('role-writer'),
    kind: 'ClusterRole',
    rules: [
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['*'],
        verbs: ['get', 'list', 'create', 'update', 'patch'],
      },
    ],
  });
  await plane.admin(`POST ${rbac}/clusterrolebindings`, {
    ...meta('role-writer'),
    kind: 'ClusterRoleBinding',
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'role-writer' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'eve' }],
  });
  const as = ['eve'] as const;
  const everything = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  const tries: readonly (readonly [string, object])[] = [
    [`POST ${rbac}/clusterroles`, { ...meta('mine'), kind: 'ClusterRole', rules: everything }],
    [`PATCH ${rbac}/clusterroles/role-writer`, { rules: everything }],
    [
      `POST ${rbac}/clusterrolebindings`,
      {
        ...meta('mine'),
        kind: 'ClusterRoleBinding',
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'eve' }],
      },
    ],
    [
      `POST ${rbac}/clusterroles`,
      { ...meta('collect'), kind: 'ClusterRole', aggregationRule: { clusterRoleSelectors: [{}] }, rules: [] },
    ],
  ];
  for (const [line, body] of tries) {
    const { status, json } = await plane.ask(line, { as, body });
    assert.equal(status, 403, `${line}: ${status} ${JSON.stringify(json)}`);
  }
  const impersonated = await plane.ask('GET /api/v1/secrets', {
    as,
    headers: { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters' },
  });
  assert.equal(impersonated.status, 403);
});
