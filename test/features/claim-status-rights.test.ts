/** Who may write what of a ResourceClaim's status (upstream's test/integration/auth/resourceclaim_test.go). */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Answer, startPlane, type TestPlane } from '../testkit/control-plane.ts';

const CLAIMS = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ACCOUNT = 'system:serviceaccount:default:driver';
const DRIVER = 'driver.example.com';
let plane: TestPlane;

before(async () => {
  plane = await startPlane();
  await plane.admin(`POST ${RBAC}/clusterrolebindings`, {
    metadata: { name: 'driver' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'driver' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'driver' }],
  });
});
afterEach(async () => {
  await plane.admin(`DELETE ${CLAIMS}/c`);
  await plane.admin(`DELETE ${RBAC}/clusterroles/driver`);
});
after(() => plane.stop());

type Right = [resource: string, ...verbs: string[]];

/** A claim with this status, and an account that may update its status and has these rights beside. */
async function given(status: object, ...rights: Right[]): Promise<void> {
  const spec = { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'c' } }] } };
  await plane.admin(`POST ${CLAIMS}`, { metadata: { name: 'c' }, spec });
  await plane.admin(`PATCH ${CLAIMS}/c/status`, { status });
  const rules = [['', 'get'] as Right, ['/status', 'update', 'patch'] as Right, ...rights].map(([part, ...verbs]) => ({
    apiGroups: ['resource.k8s.io'],
    resources: [`resourceclaims${part}`],
    verbs,
    ...(part === '/driver' && { resourceNames: [DRIVER] }),
  }));
  await plane.admin(`POST ${RBAC}/clusterroles`, { metadata: { name: 'driver' }, rules });
}

/** Sends the claim with another status, as the account in a Pod of that node. */
async function written(status: object, { node, verb = 'PUT' }: { node?: string; verb?: string } = {}): Promise<Answer> {
  return plane.ask(`${verb} ${CLAIMS}/c/status`, {
    as: ['admin', 'system:masters'],
    headers: {
      'impersonate-user': ACCOUNT,
      ...(node && { 'impersonate-extra-authentication.kubernetes.io%2Fnode-name': node }),
    },
    body: verb === 'PATCH' ? { status } : { ...(await plane.admin(`GET ${CLAIMS}/c`)), status },
  });
}

const onNode = (name: string): object => ({
  nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }],
});
const allocation = {
  devices: { results: [{ request: 'r', driver: DRIVER, pool: 'p', device: 'd' }] },
  nodeSelector: onNode('node1'),
};
const device = { driver: DRIVER, pool: 'p', device: 'd' };
const changed = { allocation, devices: [{ ...device, data: { state: 'ready' } }] };
const reservedFor = [{ resource: 'pods', name: 'p', uid: 'u' }];

const binding = (verb: string): string =>
  `status: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${verb}" permission: resourceclaims.resource.k8s.io is forbidden: User "${ACCOUNT}" cannot ${verb} resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope`;
const driver = (verbs: readonly string[]): string =>
  `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission: resourceclaims.resource.k8s.io "${DRIVER}" is forbidden: User "${ACCOUNT}" cannot ${verbs[0]} resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"`;
const INVALID = 'ResourceClaim.resource.k8s.io "c" is invalid: ';

function refused({ status, json }: Answer, ...errors: string[]): void {
  assert.equal(status, 422, JSON.stringify(json));
  assert.equal(json.message, INVALID + (errors.length === 1 ? errors[0] : `[${errors.join(', ')}]`));
}

function accepted({ status, json }: Answer): void {
  assert.equal(status, 200, JSON.stringify(json));
}

// S-347: Parts of a ResourceClaim's status take rights of their own.
test('the state of devices takes a right to their driver', async () => {
  await given({ allocation });
  refused(await written(changed), driver(['arbitrary-node:update']));
  refused(await written(changed, { verb: 'PATCH' }), driver(['arbitrary-node:patch']));
  refused(await written(changed, { node: 'node1' }), driver(['associated-node:update', 'arbitrary-node:update']));
  refused(await written({ ...changed, reservedFor }), binding('update'), driver(['arbitrary-node:update']));
  // What does not change takes none.
  accepted(await written({ allocation }));
});

test('a right to the driver of the own node is one there, and no other', async () => {
  await given({ allocation }, ['/driver', 'associated-node:update']);
  refused(await written(changed, { node: 'node2' }), driver(['arbitrary-node:update']));
  refused(
    await written(changed, { node: 'node1', verb: 'PATCH' }),
    driver(['associated-node:patch', 'arbitrary-node:patch']),
  );
  accepted(await written(changed, { node: 'node1' }));
  // An account of no node may take away neither.
  refused(await written({ allocation }), driver(['arbitrary-node:update']));
});

test('a right to the driver of any node is one everywhere, for that driver', async () => {
  const results = [...allocation.devices.results, { request: 'r', driver: 'other.io', pool: 'p', device: 'd' }];
  const both = { ...allocation, devices: { results } };
  await given({ allocation: both }, ['/driver', 'arbitrary-node:update']);
  accepted(await written({ ...changed, allocation: both }, { node: 'node2' }));
  const more = { allocation: both, devices: [...changed.devices, { ...device, driver: 'other.io' }] };
  refused(await written(more), driver(['arbitrary-node:update']).replace(`"${DRIVER}"`, '"other.io"'));
});

// S-347
// Compat Authorisation, P2, yes: ResourceClaim status: `resourceclaims/binding` for allocations,
//   `resourceclaims/driver` for states of devices
test('what is allocated and for whom takes a right to bind', async () => {
  await given({ allocation }, ['/driver', 'associated-node:update', 'arbitrary-node:update']);
  refused(await written({}), binding('update'));
  refused(await written({ allocation, reservedFor }), binding('update'));
  refused(await written({ reservedFor }, { verb: 'PATCH' }), binding('patch'));
  refused(await written({ ...changed, reservedFor }, { node: 'node2' }), binding('update'));
  // Together with what the kind's own rules are against: what was allocated does not change.
  const moved = { ...allocation, nodeSelector: onNode('node2') };
  const { json } = await written({ allocation: moved, devices: changed.devices });
  assert.deepEqual(
    json.details.causes.map(({ reason, field }: { reason: string; field: string }) => `${field}: ${reason}`),
    ['status: FieldValueForbidden', 'status.allocation: FieldValueInvalid'],
  );
  assert.ok(json.message.startsWith(`${INVALID}[${binding('update')}, status.allocation: `), json.message);
});

test('a right to bind is none to drivers', async () => {
  await given({ allocation }, ['/binding', 'update']);
  accepted(await written({ allocation, reservedFor }));
  refused(await written({ ...changed, reservedFor }), driver(['arbitrary-node:update']));
});
