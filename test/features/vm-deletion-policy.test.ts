/**
 * Upstream's deletion protection: its policy and binding are there, are put back when somebody changes them, and decide
 * as ssp-operator's tests expect (internal/operands/vm-delete-protection, tests/vm_delete_protection_test.go).
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { VALIDATING_ADMISSION_POLICIES as POLICY_TYPE } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createProtectionController } from '../../packages/kubevirt/src/controllers/protection/protection-controller.ts';
import {
  DELETION_POLICY,
  DELETION_POLICY_BINDING,
} from '../../packages/kubevirt/src/rules/protection/deletion-policy.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { startServer } from '../testkit/in-process-server.ts';
import { runControllers } from '../testkit/run-controllers.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const POLICY = `${GROUP}/validatingadmissionpolicies/kubevirt-vm-deletion-protection`;
const BINDING = `${GROUP}/validatingadmissionpolicybindings/kubevirt-vm-deletion-protection`;
const MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const LABEL = 'kubevirt.io/vm-delete-protection';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let plane: TestPlane;
before(
  async () => {
    plane = await startPlane();
    await plane.run(['protection'], { rootCa: '' });
    await protectsMachines();
  },
  { timeout: 600_000 },
);
after(() => plane.stop());

/** The object, or undefined. */
const read = async (path: string): Promise<Any> => {
  const { status, json } = await plane.ask(`GET ${path}`, { as: ['admin', 'system:masters'] });
  return status === 404 ? undefined : json;
};

/** Both are there. */
async function protectsMachines(): Promise<void> {
  await eventually(
    async () => [await read(POLICY), await read(BINDING)],
    ([policy, binding]) => policy !== undefined && binding !== undefined,
  );
}

const withDefaults = (() => {
  const { matchConstraints, ...rest } = DELETION_POLICY.spec;
  const everything = { namespaceSelector: {}, objectSelector: {}, matchPolicy: 'Equivalent' };
  const resourceRules = matchConstraints!.resourceRules!.map((rule) => ({ ...rule, scope: '*' }));
  return { ...rest, matchConstraints: { ...everything, resourceRules } };
})();

test('both objects are made, as ssp-operator makes them', async () => {
  const [policy, binding] = [await read(POLICY), await read(BINDING)];
  assert.deepEqual(policy.spec, withDefaults);
  assert.deepEqual(binding.spec, DELETION_POLICY_BINDING.spec);
  assert.equal(policy.spec.validations.length, 1);
  for (const { metadata } of [policy, binding]) {
    assert.deepEqual(metadata.labels, {
      'app.kubernetes.io/name': 'vm-delete-protection',
      'app.kubernetes.io/component': 'vmDeleteProtection',
      'app.kubernetes.io/managed-by': 'ssp-operator',
    });
    assert.equal(metadata.annotations, undefined);
  }
});

// S-702: The policy of deletion protection and its binding are there after a start, and come back at once when they are
//   edited or deleted; labels and annotations of users stay.
// Compat KubeVirt's API, P1, yes: deletion protection: upstream's policy and its binding, reconciled
test('what is edited is put back, and what users noted stays', async () => {
  const labels = { mine: 'label', 'app.kubernetes.io/component': 'other', 'app.kubernetes.io/name': null };
  const edits: readonly [path: string, change: object][] = [
    [POLICY, { spec: { variables: [{ name: 'label', expression: "string('another-label')" }] } }],
    [POLICY, { spec: { matchConditions: [{ name: 'never', expression: 'false' }] } }],
    [BINDING, { spec: { validationActions: ['Warn'] } }],
    [BINDING, { spec: { matchResources: { objectSelector: { matchLabels: { never: 'true' } } } } }],
    [POLICY, { metadata: { labels, annotations: { mine: 'note' } } }],
    [BINDING, { metadata: { labels, annotations: { mine: 'note' } } }],
  ];
  for (const [path, change] of edits) {
    const before = await read(path);
    await plane.admin(`PATCH ${path}`, change);
    const { metadata } = await eventually(
      () => read(path),
      ({ spec, metadata: { labels } }) =>
        JSON.stringify(spec) === JSON.stringify(before.spec) &&
        labels['app.kubernetes.io/component'] === 'vmDeleteProtection' &&
        labels['app.kubernetes.io/name'] === 'vm-delete-protection',
    );
    assert.equal(metadata.uid, before.metadata.uid);
  }
  for (const path of [POLICY, BINDING]) {
    const { metadata } = await read(path);
    assert.deepEqual([metadata.labels.mine, metadata.annotations], ['label', { mine: 'note' }]);
  }
});

// S-702
test('what is deleted comes back, once it is gone', async () => {
  for (const path of [POLICY, BINDING]) {
    const { uid } = (await read(path)).metadata;
    await plane.admin(`DELETE ${path}`);
    await eventually(
      () => read(path),
      (object) => object !== undefined && object.metadata.uid !== uid,
    );
  }
  await plane.admin(`PATCH ${BINDING}`, { metadata: { finalizers: ['test.example/hold'] } });
  const { uid } = (await read(BINDING)).metadata;
  await plane.admin(`DELETE ${BINDING}`);
  await plane.admin(`PATCH ${BINDING}`, { spec: { validationActions: ['Audit'] } });
  // Put back twice: so a whole pass went by the binding in between.
  for (let pass = 0; pass < 2; pass++) {
    await plane.admin(`PATCH ${POLICY}`, { metadata: { labels: { 'app.kubernetes.io/name': 'other' } } });
    await eventually(
      () => read(POLICY),
      ({ metadata: { labels } }) => labels['app.kubernetes.io/name'] === 'vm-delete-protection',
    );
  }
  assert.deepEqual((await read(BINDING)).spec.validationActions, ['Audit'], 'nobody writes to what is being deleted');
  await plane.admin(`PATCH ${BINDING}`, { metadata: { finalizers: null } });
  const { spec } = await eventually(
    () => read(BINDING),
    (object) => object !== undefined && object.metadata.uid !== uid,
  );
  assert.deepEqual(spec, DELETION_POLICY_BINDING.spec);
  await protectsMachines();
});

const machine = (name: string, labels: Record<string, string> | undefined) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, ...(labels && { labels }) },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
});

const CASES: readonly [name: string, labels: Record<string, string> | undefined, isKept: boolean][] = [
  ['true', { [LABEL]: 'true' }, true],
  ['title-true', { [LABEL]: 'True' }, true],
  ['title-false', { [LABEL]: 'False' }, false],
  ['false', { [LABEL]: 'false' }, false],
  ['nice-value', { [LABEL]: 'niceValue' }, false],
  ['upper-true', { [LABEL]: 'TRUE' }, false],
  ['empty', { [LABEL]: '' }, false],
  ['other-label', { other: 'true' }, false],
  ['no-labels', undefined, false],
];

for (const [name, labels, isKept] of CASES) {
  // S-701: A VirtualMachine labelled `kubevirt.io/vm-delete-protection: "true"` or `"True"` is not deleted, and one
  //   with another value is, as upstream's policy says it; the label can be changed.
  test(`a machine with ${labels ? JSON.stringify(labels) : 'no labels'} is ${isKept ? 'kept' : 'deleted'}`, async () => {
    await plane.admin(`POST ${MACHINES}`, machine(name, labels));
    const as: [string, string] = ['admin', 'system:masters'];
    const versions = ['v1', 'v1alpha3'].map((version) => MACHINES.replace('/v1/', `/${version}/`));
    if (!isKept) {
      assert.equal((await plane.ask(`DELETE ${versions[0]}/${name}`, { as })).status, 200);
      return;
    }
    for (const path of versions) {
      const { status, json } = await plane.ask(`DELETE ${path}/${name}`, { as });
      assert.equal(status, 422);
      assert.equal(json.reason, 'Invalid');
      assert.equal(
        json.message,
        `virtualmachines.kubevirt.io "${name}" is forbidden: ValidatingAdmissionPolicy 'kubevirt-vm-deletion-protection' with binding 'kubevirt-vm-deletion-protection' denied request: VirtualMachine ${name} cannot be deleted, disable/remove label 'kubevirt.io/vm-delete-protection' from VirtualMachine before deleting it`,
      );
    }
    assert.equal((await plane.ask(`DELETE ${MACHINES}/${name}?dryRun=All`, { as })).status, 422);
    assert.equal((await plane.ask(`DELETE ${MACHINES}?labelSelector=${LABEL}`, { as })).status, 422);
    await plane.admin(`PATCH ${MACHINES}/${name}`, { metadata: { labels: { [LABEL]: 'False' } } });
    await plane.admin(`DELETE ${MACHINES}/${name}`);
  });
}

// S-749: On a server without the kind SSP the policy is made and kept, and loses the name of an SSP object that is no
//   more.
test('where SSP is not served the policy is made and kept, and loses the name of an SSP object that is no more', async () => {
  const server = await startServer();
  const { client, stop } = runControllers(server, (environment) => [createProtectionController(environment)]);
  const key = { namespace: '', name: 'kubevirt-vm-deletion-protection' };
  const found = () => client.get(POLICY_TYPE, key).catch(() => undefined);
  try {
    await eventually(async () => (await found()) !== undefined);
    const annotations = {
      'operator-sdk/primary-resource': 'kubevirt/ssp',
      'operator-sdk/primary-resource-type': 'SSP.ssp.kubevirt.io',
    };
    await client.patch(POLICY_TYPE, key, {
      type: 'merge',
      body: { metadata: { annotations }, spec: { failurePolicy: 'Ignore' } },
    });
    await eventually(async () => {
      const { metadata, spec } = (await found())!;
      return metadata.annotations === undefined && spec.failurePolicy === 'Fail';
    });
  } finally {
    await stop();
  }
});
