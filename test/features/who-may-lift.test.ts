/** Who may take away what stands against a deletion, as a preview says it: what it says of the caller is what happens. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createClient } from '../../packages/client/src/create-client.ts';
import { type ClusterReader, clusterReader } from '../../packages/coracle/src/cli/cluster-reader.ts';
import { previewMachine, previewNamespace } from '../../packages/coracle/src/cli/delete-preview.ts';
import { liftingText } from '../../packages/coracle/src/cli/who-may-lift.ts';
import { certified, startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const KRUISE = 'policy.kruise.io/delete-protection';
const VM = '/apis/kubevirt.io/v1/namespaces/shop/virtualmachines/db';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const NEVER = new AbortController().signal;

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  await plane.run(['vm'], { rootCa: '' });
  await plane.admin('POST /api/v1/namespaces', { metadata: { name: 'shop', labels: { [KRUISE]: 'Always' } } });
  await plane.admin(`POST ${VM.slice(0, -'/db'.length)}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', labels: { 'coracle.dev/delete-only-when-stopped': 'true' } },
    spec: {
      runStrategy: 'Always',
      template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } },
    },
  });
  const instance = 'GET /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/db';
  await eventually(
    () => plane.ask(instance, { as: ['admin', 'system:masters'] }),
    ({ status }) => status === 200,
  );
  const readers = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'], verbs: ['list'] };
  await grant('reads', ['reader', 'stopper', 'labeller'], readers);
  const machines = { apiGroups: ['kubevirt.io'], resources: ['*'], verbs: ['get', 'list'] };
  await grant('looks', ['reader', 'stopper', 'nobody'], machines);
});
after(() => plane?.stop());

/** By the cluster, or in the namespace. */
async function grant(name: string, users: readonly string[], rule: object, namespace?: string): Promise<void> {
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const at = namespace === undefined ? RBAC : `${RBAC}/namespaces/${namespace}`;
  await plane.admin(`POST ${at}/${kind.toLowerCase()}s`, { metadata: { name }, rules: [rule] });
  await plane.admin(`POST ${at}/${kind.toLowerCase()}bindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
    subjects: users.map((user) => ({ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' })),
  });
}

const readerOf = (as: readonly [string, ...string[]]): ClusterReader =>
  clusterReader(
    createClient((request) => plane.plane.handler({ ...request, peer: certified(...as) })),
    NEVER,
  );

const BLOCKS = [
  {
    what: 'a machine that is to be stopped first',
    reason: 'DeleteOnlyWhenStopped',
    rule: {
      apiGroups: ['subresources.kubevirt.io'],
      resources: ['virtualmachines/stop'],
      resourceNames: ['db'],
      verbs: ['update'],
    },
    who: 'stopper',
    takes: 'not you (it takes update on virtualmachines/stop of subresources.kubevirt.io)',
    lift: 'PUT /apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db/stop',
    body: { dryRun: ['All'] },
    preview: async (reader: ClusterReader) => previewMachine(reader, await plane.admin(`GET ${VM}`), NEVER),
  },
  {
    what: 'a namespace with the label of OpenKruise',
    reason: 'KruiseProtected',
    rule: { apiGroups: [''], resources: ['namespaces'], verbs: ['patch'] },
    who: 'labeller',
    takes: 'not you (it takes patch or update on the namespace)',
    lift: 'PATCH /api/v1/namespaces/shop?dryRun=All',
    body: { metadata: { labels: { [KRUISE]: null } } },
    preview: async (reader: ClusterReader) =>
      previewNamespace(reader, await plane.admin('GET /api/v1/namespaces/shop'), NEVER),
  },
];

// S-787: So it does of a machine that is to be stopped first (update on `virtualmachines/stop` of
//   `subresources.kubevirt.io`) and of OpenKruise's label on a namespace (patch or update of the namespace, by bindings
//   in it, too); what it says of the caller is what the server answers to the command.
for (const { what, reason, rule, who, takes, lift, body, preview } of BLOCKS)
  test(`who may lift what stands against the deletion: ${what}`, async () => {
    await grant(`may-${who}`, [who], rule, 'shop');
    const seen = async (...as: [string, ...string[]]) => {
      const block = (await preview(readerOf(as))).blocks.find((each) => each.reason === reason);
      assert.ok(block, reason);
      const { status } = await plane.ask(lift, { as, body });
      assert.equal(block.whoMay.you, status < 300, `${as[0]}: ${status}`);
      return block.whoMay;
    };
    for (const [as, you] of [
      [[who], true],
      [['reader'], false],
      [['admin', 'system:masters'], true],
    ] as const) {
      const whoMay = await seen(...(as as unknown as [string, ...string[]]));
      assert.equal(whoMay.you, you, as[0]);
      const names = whoMay.grants?.map(({ subject, binding }) => `${subject} (${binding})`);
      assert.equal(names?.[0], `User ${who} (RoleBinding may-${who})`);
      assert.ok(names?.includes('Group system:masters (ClusterRoleBinding cluster-admin)'));
    }
    const nobody = await seen('nobody');
    assert.equal(liftingText(nobody), takes);
  });
