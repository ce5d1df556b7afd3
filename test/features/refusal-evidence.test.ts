/**
 * What a refusal leaves behind, whatever rule refused: a Warning event of the object and of the machines that block it, a
 * counter with kind and reason, an annotation of the audit event. A dry run leaves the annotation alone, and who asks
 * again and again costs little.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { compilePolicy, DEFAULT_POLICY } from '../../packages/apiserver/src/audit/policy.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const PROTECTED = { 'kubevirt.io/vm-delete-protection': 'true' };
const KRUISE = { 'policy.kruise.io/delete-protection': 'Always' };
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = VMS.replace('virtualmachines', 'virtualmachineinstances');
const SECRETS = '/api/v1/namespaces/default/secrets';
const SERVICES = '/api/v1/namespaces/default/services';
const NAMESPACES = '/api/v1/namespaces';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const ADMIN: [string, string] = ['admin', 'system:masters'];
const WRITER = 'system:serviceaccount:kubevirt:coracle-evidence';
const POLICY = 'kubevirt-vm-deletion-protection';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let plane: TestPlane;
let audited: Any[] = [];
before(
  async () => {
    const policy = compilePolicy(DEFAULT_POLICY);
    plane = await startPlane({ audit: { policy, sink: { write: (line) => void audited.push(JSON.parse(line)) } } });
    await plane.run(['protection'], { rootCa: '' });
    await plane.admin(`POST ${VMS}`, vm('probe', PROTECTED));
    await eventually(
      () => plane.ask(`DELETE ${VMS}/probe?dryRun=All`, { as: ADMIN }),
      ({ status }) => status === 422,
    );
  },
  { timeout: 600_000 },
);
after(() => plane.stop());
beforeEach(() => {
  audited = [];
});

function vm(name: string, labels: object, volumes: object[] = []) {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, labels },
    spec: {
      runStrategy: 'Halted',
      template: {
        spec: { domain: { devices: { disks: volumes.map(() => ({ name: 'd', disk: {} })) } }, volumes },
      },
    },
  };
}

/** Sends it, and expects to be refused. */
async function refused(line: string, code: number, { as = ADMIN, body }: { as?: Any; body?: unknown } = {}) {
  const { status, json } = await plane.ask(line, { as, ...(body !== undefined && { body }) });
  assert.equal(status, code, `${line}: ${JSON.stringify(json)}`);
  return json;
}
const annotation = (): Any => {
  const asked = audited.findLast(({ user, verb }) => ['admin', 'editor'].includes(user.username) && verb !== 'get');
  const value = asked.annotations['protection.coracle.dev/refusal'];
  return value === undefined ? undefined : JSON.parse(value);
};
const eventsOf = async (uid: string): Promise<Any[]> => {
  const { items } = await plane.admin('GET /api/v1/events');
  return items.filter(({ involvedObject }: Any) => involvedObject.uid === uid);
};
/** The one event of an object. */
async function event(uid: string): Promise<Any> {
  const [found, second] = await eventually(
    () => eventsOf(uid),
    ({ length }) => length > 0,
  );
  assert.equal(second, undefined);
  const { type, source, involvedObject, reason, message, metadata } = found;
  assert.deepEqual([type, source], ['Warning', { component: 'deletion-protection' }]);
  return { reason, message, namespace: metadata.namespace, kind: involvedObject.kind, name: involvedObject.name };
}
const uidOf = async (path: string): Promise<string> => (await plane.admin(`GET ${path}`)).metadata.uid;
async function count(kind: string, reason: string): Promise<number> {
  const { response } = await plane.ask('GET /metrics', { as: ADMIN });
  const chunks = response.body as Uint8Array | Iterable<Uint8Array>;
  const text = Buffer.concat(chunks instanceof Uint8Array ? [chunks] : [...chunks]).toString();
  const prefix = `coracle_protection_refusals_total{kind="${kind}",reason="${reason}"} `;
  const line = text.split('\n').find((one) => one.startsWith(prefix));
  return line === undefined ? 0 : Number(line.slice(prefix.length));
}

// S-747: What protection refuses (upstream's policy, what machines refer to and what holds them, OpenKruise's label,
//   delete only when stopped, the right to unprotect) is a Warning event of the object and of up to ten machines that
//   block it, a counter by kind and reason, and an annotation of the request's audit event with policy, decision,
//   reason, object and blockers. Refusals of other policies are none of these.
test('upstream’s policy: event, counter and audit annotation of the machine; in a collection and in v1alpha3 too', async () => {
  const { metadata } = await plane.admin(`POST ${VMS}`, vm('db', { ...PROTECTED, of: 'policy' }));
  const before = await count('VirtualMachine', 'DeleteProtected');
  await refused(`DELETE ${VMS}/db`, 422);
  assert.deepEqual(annotation(), {
    policy: POLICY,
    decision: 'deny',
    reason: 'DeleteProtected',
    object: 'VirtualMachine default/db',
  });
  const { message, ...rest } = await event(metadata.uid);
  assert.deepEqual(rest, { reason: 'DeletionRefused', namespace: 'default', kind: 'VirtualMachine', name: 'db' });
  assert.equal(
    message,
    `not deleted, as "admin" asked: VirtualMachine db cannot be deleted, disable/remove label 'kubevirt.io/vm-delete-protection' from VirtualMachine before deleting it`,
  );
  await refused(`DELETE ${VMS}?labelSelector=of=policy`, 422);
  assert.equal(annotation().object, 'VirtualMachine default/db');
  await refused(`DELETE ${VMS.replace('/v1/', '/v1alpha3/')}/db`, 422);
  assert.equal(await count('VirtualMachine', 'DeleteProtected'), before + 3);
  const [found] = await eventually(
    () => eventsOf(metadata.uid),
    ([first]) => first.count === 3,
  );
  assert.equal(found.message, message);
});

// S-748: A dry run that protection refuses leaves the audit annotation and nothing else; who asks again and again makes
//   one event that is counted 25 times at once, then once in five minutes.
test('a dry run leaves the audit annotation and nothing else', async () => {
  const uid = await uidOf(`${VMS}/probe`);
  const before = await count('VirtualMachine', 'DeleteProtected');
  await refused(`DELETE ${VMS}/probe?dryRun=All`, 422);
  assert.equal(annotation().object, 'VirtualMachine default/probe');
  assert.equal(await count('VirtualMachine', 'DeleteProtected'), before);
  // Those of a later refusal are there: it would have been as well.
  const { metadata } = await plane.admin(`POST ${VMS}`, vm('later', PROTECTED));
  await refused(`DELETE ${VMS}/later`, 422);
  await event(metadata.uid);
  assert.deepEqual(await eventsOf(uid), []);
});

// S-747
test('what a protected machine refers to: an event of it, and one of each machine', async () => {
  const { metadata } = await plane.admin(`POST ${SECRETS}`, { metadata: { name: 'login' } });
  const volumes = [{ name: 'd', secret: { secretName: 'login' } }];
  const machines = [];
  for (const name of ['web-a', 'web-b'])
    machines.push((await plane.admin(`POST ${VMS}`, vm(name, PROTECTED, volumes))).metadata.uid);
  await refused(`DELETE ${SECRETS}/login`, 403);
  assert.deepEqual(annotation(), {
    policy: 'DeletionProtection',
    decision: 'deny',
    reason: 'Referenced',
    object: 'Secret default/login',
    blockers: ['default/web-a', 'default/web-b'],
  });
  const own = await event(metadata.uid);
  assert.equal(own.reason, 'DeletionRefused');
  assert.match(own.message, /^not deleted, as "admin" asked: 2 protected VirtualMachines refer to it: default\/web-a/);
  for (const uid of machines) {
    const { reason, message, namespace } = await event(uid);
    assert.deepEqual([reason, namespace], ['DependencyDeletionRefused', 'default']);
    assert.match(
      message,
      /^Secret default\/login was not deleted, as "admin" asked: this machine needs it \(spec\.template\.spec\.volumes/,
    );
  }
  assert.equal(await count('Secret', 'Referenced'), 1);
});

// S-747
test('what holds machines: the namespace, the KubeVirt object', async () => {
  await plane.admin(`POST ${NAMESPACES}`, { metadata: { name: 'held' } });
  const { metadata } = await plane.admin(`POST ${VMS.replace('default', 'held')}`, vm('in-it', PROTECTED));
  for (const [path, kind, reason, where] of [
    [`${NAMESPACES}/held`, 'Namespace', 'HoldsMachines', 'default'],
    [KUBEVIRT, 'KubeVirt', 'RunsMachines', 'kubevirt'],
  ] as const) {
    await refused(`DELETE ${path}`, 403);
    assert.equal(annotation().reason, reason);
    assert.ok(annotation().blockers.includes('held/in-it'));
    const own = await event(await uidOf(path));
    assert.deepEqual([own.reason, own.kind, own.namespace], ['DeletionRefused', kind, where]);
    assert.equal(await count(kind, reason), 1);
  }
  const found = await eventually(
    () => eventsOf(metadata.uid),
    ({ length }) => length === 2,
  );
  assert.deepEqual(found.map(({ message }) => message.split(' ')[0]).sort(), ['KubeVirt', 'Namespace']);
});

// S-747
test('OpenKruise’s label', async () => {
  const { metadata } = await plane.admin(`POST ${SERVICES}`, {
    metadata: { name: 'front', labels: KRUISE },
    spec: { ports: [{ port: 80 }] },
  });
  await refused(`DELETE ${SERVICES}/front`, 403);
  const { policy, reason } = annotation();
  assert.deepEqual([policy, reason], ['vservice.kb.io', 'KruiseDeleteProtected']);
  assert.match((await event(metadata.uid)).message, /forbidden by ResourcesProtectionDeletion/);
  assert.equal(await count('Service', 'KruiseDeleteProtected'), 1);
});

// S-747
test('a machine that is to be stopped first', async () => {
  const labels = { 'coracle.dev/delete-only-when-stopped': 'true' };
  const { metadata } = await plane.admin(`POST ${VMS}`, vm('busy', labels));
  const { uid } = metadata;
  await plane.admin(`POST ${VMIS}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: 'busy',
      ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'busy', uid, controller: true }],
    },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
  await refused(`DELETE ${VMS}/busy`, 403);
  assert.deepEqual([annotation().policy, annotation().reason], ['DeleteOnlyWhenStopped', 'NotStopped']);
  const { reason, message } = await event(uid);
  assert.equal(reason, 'DeletionRefused');
  assert.match(message, /may be deleted only when it is stopped/);
  assert.equal(await count('VirtualMachine', 'NotStopped'), 1);
});

// S-747
test('protection that somebody without the right wants to switch off', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await plane.admin(`POST ${rbac}/namespaces/default/rolebindings`, {
    metadata: { name: 'edit' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'kubevirt.io:edit' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'editor' }],
  });
  const { metadata } = await plane.admin(`POST ${VMS}`, vm('safe', PROTECTED));
  const needs = { metadata: { annotations: { 'coracle.dev/unprotect-needs-permission': 'true' } } };
  await plane.admin(`PATCH ${KUBEVIRT}`, needs);
  const body = { metadata: { labels: null } };
  await refused(`PATCH ${VMS}/safe`, 403, { as: ['editor'], body });
  assert.deepEqual([annotation().policy, annotation().reason], ['UnprotectRights', 'UnprotectForbidden']);
  const { reason, message } = await event(metadata.uid);
  assert.equal(reason, 'UnprotectRefused');
  assert.match(message, /user "editor" cannot unprotect/);
  assert.equal(await count('VirtualMachine', 'UnprotectForbidden'), 1);
});

// S-747
test('a refusal of another policy is none of protection’s', async () => {
  const admission = '/apis/admissionregistration.k8s.io/v1';
  await plane.admin(`POST ${admission}/validatingadmissionpolicies`, {
    metadata: { name: 'no-secrets' },
    spec: {
      matchConstraints: {
        resourceRules: [{ operations: ['DELETE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
      },
      validations: [{ expression: 'false' }],
    },
  });
  await plane.admin(`POST ${admission}/validatingadmissionpolicybindings`, {
    metadata: { name: 'no-secrets' },
    spec: { policyName: 'no-secrets', validationActions: ['Deny'] },
  });
  const maps = SECRETS.replace('secrets', 'configmaps');
  const { metadata } = await plane.admin(`POST ${maps}`, { metadata: { name: 'kept' } });
  await refused(`DELETE ${maps}/kept`, 422);
  assert.equal(annotation(), undefined);
  assert.deepEqual(await eventsOf(metadata.uid), []);
});

// S-748
test('who asks again and again makes one event and few writes', async () => {
  const { metadata } = await plane.admin(`POST ${VMS}`, vm('hammered', PROTECTED));
  for (let i = 0; i < 300; i++) await refused(`DELETE ${VMS}/hammered`, 422);
  const marker = await plane.admin(`POST ${VMS}`, vm('marker', PROTECTED));
  await refused(`DELETE ${VMS}/marker`, 422);
  await event(marker.metadata.uid);
  const found = await eventsOf(metadata.uid);
  assert.deepEqual(
    found.map((one) => one.count),
    [25],
  );
  const writes = audited.filter(({ user }) => user.username === WRITER);
  assert.ok(writes.every(({ objectRef }) => objectRef.resource === 'events'));
  const verbs = writes.map(({ verb }) => verb);
  assert.deepEqual(
    [verbs.filter((verb) => verb === 'create').length, verbs.filter((verb) => verb === 'patch').length],
    [2, 24],
  );
});
