/** Who may change a machine and may not unprotect it does not get its protection off by any way there is. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { unprotectPolicy } from '../../packages/coracle/src/compose/unprotect-policy.ts';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type Asking, startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { startServer } from '../testkit/in-process-server.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const SETTING = 'coracle.dev/unprotect-needs-permission';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const OLD = VMS.replace('/v1/', '/v1alpha3/');
const RBAC = 'POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings';
const KUBEVIRT = 'PATCH /apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MISSING =
  /cannot unprotect .*VirtualMachine default\/vm takes the verb "unprotect".*--clusterrole=coracle:unprotect/;

const vm = (name: string, value: string | undefined, more: object = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, ...(value !== undefined && { labels: { [LABEL]: value } }), ...more },
  spec: {
    runStrategy: 'Halted',
    template: { metadata: {}, spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } },
  },
});
const binding = (name: string, role: string, user = name) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user }],
});
const as = (user: string) => ({ as: [user, 'system:authenticated'] as const });
const typed = (type: string) => ({ headers: { 'content-type': `application/${type}` } });

let plane: TestPlane;
const setting = (value: string | null) => plane.admin(KUBEVIRT, { metadata: { annotations: { [SETTING]: value } } });
const label = async () => (await plane.admin(`GET ${VMS}/vm`)).metadata.labels?.[LABEL];
before(async () => {
  plane = await startPlane();
  await plane.admin(RBAC, binding('tenant', 'admin'));
  await plane.admin(RBAC, binding('keeper', 'admin'));
  await plane.admin(RBAC, binding('keeper-unprotects', 'coracle:unprotect', 'keeper'));
  await plane.admin(RBAC, binding('deputy', 'edit'));
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterroles', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'impersonator' },
    rules: [{ apiGroups: [''], resources: ['users', 'groups'], verbs: ['impersonate'] }],
  });
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    ...binding('boss', 'impersonator'),
    kind: 'ClusterRoleBinding',
  });
  await plane.admin(RBAC, binding('boss', 'coracle:unprotect'));
  await plane.admin(`POST ${VMS}`, vm('vm', 'true'));
  await setting('true');
});
after(() => plane.stop());

/** The stored object with other labels, as a PUT sends it. */
const put = async (labels: object | undefined, path = VMS) => {
  const { metadata, ...rest } = await plane.admin(`GET ${path}/vm`);
  const { labels: _, ...kept } = metadata;
  return { ...rest, metadata: { ...kept, ...(labels && { labels }) } };
};
const patch = (labels: unknown) => ({ metadata: { labels } });

// S-756: Where the KubeVirt or an SSP object asks for it, nobody switches the protection of a machine off without the
//   verb `unprotect` on it, by any verb, version, subresource, dry run or identity; the refusal names the right, the
//   machine and the command that grants it. Off by default.
test('no write takes the protection away without the right', async () => {
  const ways: readonly [what: string, line: string, asking: () => Promise<Asking> | Asking][] = [
    ['merge patch, false', `PATCH ${VMS}/vm`, () => ({ body: patch({ [LABEL]: 'false' }) })],
    ['merge patch, TRUE', `PATCH ${VMS}/vm`, () => ({ body: patch({ [LABEL]: 'TRUE' }) })],
    ['merge patch, empty', `PATCH ${VMS}/vm`, () => ({ body: patch({ [LABEL]: '' }) })],
    ['merge patch, label removed', `PATCH ${VMS}/vm`, () => ({ body: patch({ [LABEL]: null }) })],
    ['merge patch, labels removed', `PATCH ${VMS}/vm`, () => ({ body: patch(null) })],
    [
      'JSON patch',
      `PATCH ${VMS}/vm`,
      () => ({ ...typed('json-patch+json'), body: [{ op: 'remove', path: '/metadata/labels' }] }),
    ],
    ['in v1alpha3', `PATCH ${OLD}/vm`, () => ({ body: patch({ [LABEL]: null }) })],
    ['PUT, another value', `PUT ${VMS}/vm`, async () => ({ body: await put({ [LABEL]: 'no' }) })],
    ['PUT, no labels', `PUT ${VMS}/vm`, async () => ({ body: await put(undefined) })],
    ['PUT in v1alpha3', `PUT ${OLD}/vm`, async () => ({ body: await put(undefined, OLD) })],
    [
      'apply, by force',
      `PATCH ${VMS}/vm?fieldManager=me&force=true`,
      () => ({ ...typed('apply-patch+yaml'), body: vm('vm', 'false') }),
    ],
    ['dry run', `PATCH ${VMS}/vm?dryRun=All`, () => ({ body: patch({ [LABEL]: null }) })],
    [
      'as somebody who may not, by one who may',
      `PATCH ${VMS}/vm`,
      () => ({ ...as('boss'), headers: { 'impersonate-user': 'tenant' }, body: patch({ [LABEL]: null }) }),
    ],
  ];
  for (const [what, line, asking] of ways) {
    const { status, json } = await plane.ask(line, { ...as('tenant'), ...(await asking()) });
    assert.equal(status, 403, `${what}: ${JSON.stringify(json)}`);
    assert.match(json.message, MISSING, what);
    assert.equal(await label(), 'true', what);
  }
});

test('an applier that owned the label does not take it away by leaving it out', async () => {
  const apply = (value: string | undefined) =>
    plane.ask(`PATCH ${VMS}/applied?fieldManager=tool`, {
      ...as('tenant'),
      ...typed('apply-patch+yaml'),
      body: vm('applied', value),
    });
  assert.equal((await apply('true')).status, 201);
  const { status, json } = await apply(undefined);
  assert.equal(status, 403, JSON.stringify(json));
});

test('what is no write of the label leaves it on: status, delete, create over it', async () => {
  const replaced = await plane.admin(`PUT ${VMS}/vm/status`, await put(undefined));
  assert.equal(replaced.metadata.labels?.[LABEL], 'true', 'not even of an administrator');
  const created = await plane.ask(`POST ${VMS}`, { ...as('tenant'), body: vm('vm', undefined) });
  assert.equal(created.status, 409);
  assert.equal(await label(), 'true');
});

// S-756
test('nobody without the right gives it to himself', async () => {
  const bound = await plane.ask(RBAC, { ...as('tenant'), body: binding('mine', 'coracle:unprotect', 'tenant') });
  assert.equal(bound.status, 403);
  assert.match(bound.json.message, /attempting to grant RBAC permissions not currently held/);
  const role = await plane.ask(RBAC.replace('rolebindings', 'roles'), {
    ...as('tenant'),
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'mine' },
      rules: [{ apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: ['unprotect'] }],
    },
  });
  assert.equal(role.status, 403);
  const off = await plane.ask(KUBEVIRT, {
    ...as('tenant'),
    body: { metadata: { annotations: { [SETTING]: 'false' } } },
  });
  assert.equal(off.status, 403);
  for (const name of ['admin', 'edit', 'kubevirt.io:admin', 'kubevirt.io:edit']) {
    const { rules } = await plane.admin(`GET /apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`);
    assert.ok(!JSON.stringify(rules ?? []).includes('unprotect'), name);
  }
});

test('other writes, to protect, and a change from true to True are everybody’s who may change the machine', async () => {
  const change = async (body: object, user = 'deputy') =>
    (await plane.ask(`PATCH ${VMS}/vm`, { ...as(user), body })).status;
  assert.equal(await change(patch({ [LABEL]: 'True' })), 200);
  assert.equal(await change(patch({ [LABEL]: 'true', a: 'b' })), 200);
  assert.equal(await change({ spec: { runStrategy: 'Manual' } }), 200);
  await plane.admin(`POST ${VMS}`, vm('other', undefined));
  const protect = await plane.ask(`PATCH ${VMS}/other`, { ...as('deputy'), body: patch({ [LABEL]: 'true' }) });
  assert.equal(protect.status, 200);
});

test('who has the right takes it off, and so do cluster admins', async () => {
  const off = (user: Asking) => plane.ask(`PATCH ${VMS}/vm`, { ...user, body: patch({ [LABEL]: null }) });
  const on = () => plane.admin(`PATCH ${VMS}/vm`, patch({ [LABEL]: 'true' }));
  for (const user of [as('keeper'), { as: ['root', 'system:masters'] as const }]) {
    assert.equal((await off(user)).status, 200, user.as[0]);
    await on();
  }
  await plane.admin(RBAC.replace('/namespaces/default/rolebindings', '/clusterrolebindings'), {
    ...binding('operator', 'cluster-admin'),
    kind: 'ClusterRoleBinding',
  });
  assert.equal((await off(as('operator'))).status, 200);
  await on();
  await plane.admin(RBAC.replace('rolebindings', 'roles'), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'one' },
    rules: [
      { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], resourceNames: ['vm'], verbs: ['unprotect'] },
    ],
  });
  const { roleRef, ...rest } = binding('one', 'one', 'deputy');
  await plane.admin(RBAC, { ...rest, roleRef: { ...roleRef, kind: 'Role' } });
  assert.equal((await off(as('deputy'))).status, 200, 'for this machine alone');
  const other = { ...as('deputy'), body: patch({ [LABEL]: null }) };
  assert.equal((await plane.ask(`PATCH ${VMS}/other`, other)).status, 403);
  await on();
});

test('a machine whose deletion has begun has no protection to lose', async () => {
  await plane.admin(`POST ${VMS}`, vm('going', undefined, { finalizers: ['example.com/hold'] }));
  await plane.admin(`DELETE ${VMS}/going`);
  await plane.admin(`PATCH ${VMS}/going`, patch({ [LABEL]: 'true' }));
  const { status } = await plane.ask(`PATCH ${VMS}/going`, { ...as('tenant'), body: patch({ [LABEL]: null }) });
  assert.equal(status, 200);
});

// S-756
test('it is off by default, and where the setting says anything but true', async () => {
  for (const value of [null, 'false']) {
    await setting(value);
    const { status } = await plane.ask(`PATCH ${VMS}/vm`, { ...as('tenant'), body: patch({ [LABEL]: null }) });
    assert.equal(status, 200, String(value));
    await plane.admin(`PATCH ${VMS}/vm`, patch({ [LABEL]: 'true' }));
  }
});

// S-756
test('an SSP object asks for it as well as the KubeVirt object, in each of its versions', async () => {
  await plane.admin(`PATCH ${VMS}/vm`, patch({ [LABEL]: 'true' }));
  await setting(null);
  for (const version of ['v1beta3', 'v1beta2']) {
    const ssps = `/apis/ssp.kubevirt.io/${version}/namespaces/kubevirt/ssps`;
    await plane.admin(`POST ${ssps}`, {
      apiVersion: `ssp.kubevirt.io/${version}`,
      kind: 'SSP',
      metadata: { name: 'ssp', annotations: { [SETTING]: 'true' } },
      spec: { commonTemplates: { namespace: 'kubevirt' } },
    });
    const answer = await plane.ask(`PATCH ${VMS}/vm`, { ...as('tenant'), body: patch({ [LABEL]: null }) });
    assert.equal(answer.status, 403);
    assert.match(answer.json.message, MISSING);
    assert.equal(await label(), 'true');
    // Whoever asks is an administrator: a user of the roles for tenants may make none.
    assert.equal((await plane.ask(`DELETE ${ssps}/ssp`, as('tenant'))).status, 403);
    await plane.admin(`DELETE ${ssps}/ssp`);
  }
  assert.equal((await plane.ask(`PATCH ${VMS}/vm`, { ...as('tenant'), body: patch({ [LABEL]: null }) })).status, 200);
});

// S-757: On external clusters a policy that `coracle rbac` prints has the same rule, by the same annotation.
test('on an external cluster the policy of coracle rbac refuses the same, when the KubeVirt object asks for it', async () => {
  const other = await startServer({
    resources: kubevirtResources(),
    authenticate: async ({ headers }) => ({
      username: headers['x-user'] ?? 'root',
      groups: ['system:authenticated', ...(headers['x-user'] === undefined ? ['system:masters'] : [])],
    }),
    authorize: (user, attributes) => {
      const isRight = attributes.type === 'resource' && attributes.verb === 'unprotect';
      const allowed =
        !isRight || user.groups.includes('system:masters') || (user.username === 'keeper' && attributes.name === 'vm');
      return { allowed, reason: '' };
    },
  });
  try {
    const ask = async (method: string, path: string, body: object, user?: string): Promise<[number, string]> => {
      const { status, json } = await other.request(method, path, {
        body,
        headers: { ...(user && { 'x-user': user }) },
      });
      return [status, json.message ?? ''];
    };
    for (const manifest of unprotectPolicy({})) {
      const group = manifest.apiVersion.split('/')[0]!;
      const plural = manifest.kind.replace(/y$/, 'ie').toLowerCase();
      const made = await other.request('POST', `/apis/${manifest.apiVersion}/${plural}s`, { body: manifest });
      assert.equal(made.status, 201, `${group}: ${made.text}`);
    }
    for (const name of ['vm', 'vm2']) assert.equal((await ask('POST', VMS, vm(name, 'true')))[0], 201);
    const off = (user?: string, path = `${VMS}/vm`, labels: object | null = null): Promise<[number, string]> =>
      ask('PATCH', path, patch(labels), user);
    const protect = (): Promise<[number, string]> => ask('PATCH', `${VMS}/vm`, patch({ [LABEL]: 'true' }));
    assert.equal((await off('tenant'))[0], 200, 'no KubeVirt object asks for the right');
    await protect();
    const kubevirts = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts';
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } };
    assert.equal((await ask('POST', '/api/v1/namespaces', namespace))[0], 201);
    const kubevirt = { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: { name: 'kubevirt' }, spec: {} };
    assert.equal((await ask('POST', kubevirts, kubevirt))[0], 201);
    assert.equal((await off('tenant'))[0], 200, 'off by default');
    await protect();
    await ask('PATCH', `${kubevirts}/kubevirt`, { metadata: { annotations: { [SETTING]: 'true' } } });
    const refused: readonly (readonly [path: string, labels: object | null])[] = [
      [`${VMS}/vm`, null],
      [`${VMS}/vm`, { [LABEL]: 'TRUE' }],
      [`${OLD}/vm`, null],
      [`${VMS}/vm?dryRun=All`, { [LABEL]: null }],
    ];
    for (const [path, labels] of refused) {
      const [status, message] = await off('tenant', path, labels);
      assert.equal(status, 403, message);
      assert.match(message, MISSING);
    }
    assert.equal((await off('keeper', `${VMS}/vm2`))[0], 403, 'the right names another machine');
    assert.equal((await off('tenant', `${VMS}/vm`, { a: 'b' }))[0], 200);
    for (const user of ['keeper', undefined]) {
      assert.equal((await off(user))[0], 200, String(user));
      await protect();
    }
  } finally {
    await other.stop();
  }
});
