/**
 * SSP objects of ssp-operator: they get the operand of deletion protection, say how it stands, are paused and deleted; and
 * ssp-operator itself, run against this server, is left to its work.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  DELETION_POLICY,
  DELETION_POLICY_BINDING,
} from '../../packages/kubevirt/src/rules/protection/deletion-policy.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const POLICIES = `${ADMISSION}/validatingadmissionpolicies`;
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`;
const NAME = 'kubevirt-vm-deletion-protection';
const POLICY = `${POLICIES}/${NAME}`;
const BINDING = `${BINDINGS}/${NAME}`;
const OPERANDS = [POLICY, BINDING];
const SSPS = '/apis/ssp.kubevirt.io/v1beta3/namespaces/kubevirt/ssps';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kubevirt/leases';
const MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const FINALIZER = 'ssp.kubevirt.io/finalizer';
const ADMIN: [string, string] = ['admin', 'system:masters'];

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

const machine = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'db', labels: { 'kubevirt.io/vm-delete-protection': 'true' } },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
};

let plane: TestPlane;
before(
  async () => {
    plane = await startPlane();
    const components = ['protection', 'ssp'];
    await plane.run(components, { rootCa: '', version: '1.2.3' });
    await plane.admin(`POST ${MACHINES}`, machine);
  },
  { timeout: 600_000 },
);
after(() => plane.stop());

const read = async (path: string): Promise<Any> => {
  const { status, json } = await plane.ask(`GET ${path}`, { as: ADMIN });
  return status === 404 ? undefined : json;
};
const ssp = (metadata: object = {}, spec: object = {}) => ({
  apiVersion: 'ssp.kubevirt.io/v1beta3',
  kind: 'SSP',
  metadata: { name: 'ssp', ...metadata },
  spec: { commonTemplates: { namespace: 'kubevirt' }, ...spec },
});
const isDeployed = (object: Any): boolean =>
  object?.status?.phase === 'Deployed' && object.status.observedGeneration === object.metadata.generation;
const isKept = async (): Promise<boolean> =>
  (await plane.ask(`DELETE ${MACHINES}/db?dryRun=All`, { as: ADMIN })).status === 422;
const labels = { 'app.kubernetes.io/part-of': 'hyperconverged', 'app.kubernetes.io/version': '4.2' };

// S-742: An SSP object gets policy and binding in its name (owner annotations, part-of and version labels), the
//   finalizer, phase, conditions, versions and observedGeneration of ssp-operator; Deployed once the policy was
//   checked; v1beta2 is served as well, as deprecated.
// Compat KubeVirt's API, P2, partly: SSP (ssp.kubevirt.io/v1beta3, v1beta2): status, pause, finalizer, rules;
//   ssp-operator's own objects Note: Missing: operands of OpenShift, and images of operating systems, which
//   `coracle images` and DataImportCrons of one's own bring
test('an SSP object is deployed: its name and labels are on the operands, its status is upstream’s', async () => {
  await eventually(() => read(POLICY), Boolean);
  await plane.admin(`PATCH ${POLICY}`, { metadata: { labels: { mine: 'label' } } });
  const uids = await Promise.all(OPERANDS.map(async (path) => (await read(path)).metadata.uid));
  await plane.admin(`POST ${SSPS}`, ssp({ labels }));
  const { metadata, status } = await eventually(() => read(`${SSPS}/ssp`), isDeployed);
  assert.deepEqual(metadata.finalizers, [FINALIZER]);
  const { conditions, ...rest } = status;
  assert.deepEqual(rest, {
    phase: 'Deployed',
    observedGeneration: 1,
    operatorVersion: '1.2.3',
    targetVersion: '1.2.3',
    observedVersion: '1.2.3',
  });
  assert.deepEqual(
    conditions.slice(0, 3).map((one: Any) => [one.type, one.status, one.reason, one.message]),
    [
      ['Available', 'True', 'Available', 'All SSP resources are available'],
      ['Progressing', 'False', 'Progressing', 'No SSP resources are progressing'],
      ['Degraded', 'False', 'Degraded', 'No SSP resources are degraded'],
    ],
  );
  for (const [i, path] of OPERANDS.entries()) {
    const { metadata: of } = await read(path);
    assert.equal(of.uid, uids[i], 'taken over, not made anew');
    assert.deepEqual(of.annotations, {
      'operator-sdk/primary-resource': 'kubevirt/ssp',
      'operator-sdk/primary-resource-type': 'SSP.ssp.kubevirt.io',
    });
    const { mine, ...ours } = of.labels;
    assert.equal(mine, path === POLICY ? 'label' : undefined);
    assert.deepEqual(ours, {
      ...labels,
      'app.kubernetes.io/name': 'vm-delete-protection',
      'app.kubernetes.io/component': 'vmDeleteProtection',
      'app.kubernetes.io/managed-by': 'ssp-operator',
    });
  }
  const older = await plane.ask(`GET ${SSPS.replace('v1beta3', 'v1beta2')}/ssp`, { as: ADMIN });
  assert.equal(older.json.status.phase, 'Deployed');
  assert.match(older.headers['warning'] ?? '', /SSP v1beta2 is deprecated/);
});

// S-742
test('what is edited or deleted comes back in its name; a change of the object is followed', async () => {
  await plane.admin(`PATCH ${BINDING}`, { spec: { validationActions: ['Warn'] } });
  await plane.admin(`PATCH ${POLICY}`, { metadata: { annotations: { 'operator-sdk/primary-resource': 'a/b' } } });
  const { uid } = (await read(BINDING)).metadata;
  await eventually(
    async () => [await read(POLICY), await read(BINDING)],
    ([policy, binding]) =>
      binding.spec.validationActions[0] === 'Deny' &&
      policy.metadata.annotations?.['operator-sdk/primary-resource'] === 'kubevirt/ssp',
  );
  await plane.admin(`DELETE ${BINDING}`);
  await eventually(
    () => read(BINDING),
    (found) => found?.metadata.annotations !== undefined && found.metadata.uid !== uid,
  );
  await plane.admin(`PATCH ${SSPS}/ssp`, { spec: { templateValidator: { replicas: 1 } } });
  await eventually(
    () => read(`${SSPS}/ssp`),
    (object) => isDeployed(object) && object.metadata.generation === 2,
  );
});

// S-745: A second SSP object, and one that ssp-operator's webhook refuses, is refused in its words.
test('a second one is refused, as by the webhook of ssp-operator', async () => {
  const { status, json } = await plane.ask(`POST ${SSPS}`, { as: ADMIN, body: ssp({ name: 'other' }) });
  assert.equal(status, 403);
  assert.equal(
    json.message,
    'admission webhook "validation.v1beta3.ssp.kubevirt.io" denied the request: creation failed, an SSP CR already exists in namespace kubevirt: ssp',
  );
});

test('a bad change is refused by its webhook and its schema', async () => {
  const refused = async (spec: object): Promise<Any> => {
    const { status, json } = await plane.ask(`PATCH ${SSPS}/ssp`, { as: ADMIN, body: { spec } });
    assert.ok(status === 403 || status === 422, JSON.stringify(json));
    return json.message;
  };
  assert.match(await refused({ cluster: {} }), /at least one architecture needs to be defined/);
  assert.match(await refused({ templateValidator: { replicas: -1 } }), /should be greater than or equal to 0/);
  assert.match(await refused({ commonTemplates: null }), /spec.commonTemplates: Required value/);
});

// S-743: Annotation `kubevirt.io/operator.paused` of an SSP object stops all work on what is in its name; afterwards
//   edits are put back.
test('paused, edits stay; afterwards they are put back', async () => {
  const pause = (value: string | null) =>
    plane.admin(`PATCH ${SSPS}/ssp`, { metadata: { annotations: { 'kubevirt.io/operator.paused': value } } });
  await pause('true');
  await eventually(
    () => read(`${SSPS}/ssp`),
    ({ status }) => status.paused === true,
  );
  await plane.admin(`PATCH ${BINDING}`, { spec: { validationActions: ['Audit'] } });
  await eventually(isKept, (kept) => !kept);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual((await read(BINDING)).spec.validationActions, ['Audit']);
  await pause(null);
  await eventually(isKept, Boolean);
  const { status } = await eventually(() => read(`${SSPS}/ssp`), isDeployed);
  assert.equal(status.paused, undefined);
});

// S-744: Deleting an SSP object takes its name off policy and binding; machines are protected all the while.
test('deleted, it leaves the operands, without its name, and machines are protected all the while', async () => {
  const uids = await Promise.all(OPERANDS.map(async (path) => (await read(path)).metadata.uid));
  await plane.admin(`DELETE ${SSPS}/ssp`);
  await eventually(
    async () => [await read(`${SSPS}/ssp`), await isKept()],
    ([object, kept]) => {
      assert.ok(kept);
      return object === undefined;
    },
  );
  for (const [i, path] of OPERANDS.entries()) {
    const { metadata } = await read(path);
    assert.deepEqual([metadata.uid, metadata.annotations], [uids[i], undefined]);
    assert.equal(metadata.labels['app.kubernetes.io/part-of'], undefined);
  }
});

/** As Go's typed client sends what ssp-operator makes: every field of the struct that is not omitted, nulls among them. */
const typed = (object: Any, spec: object = {}) => ({
  ...object,
  metadata: {
    ...object.metadata,
    creationTimestamp: null,
    labels: {
      'app.kubernetes.io/component': 'vmDeleteProtection',
      'app.kubernetes.io/managed-by': 'ssp-operator',
      'app.kubernetes.io/name': 'vm-delete-protection',
    },
    annotations: {
      'operator-sdk/primary-resource': 'kubevirt/theirs',
      'operator-sdk/primary-resource-type': 'SSP.ssp.kubevirt.io',
    },
  },
  spec: { ...object.spec, ...spec },
  ...(object.kind === 'ValidatingAdmissionPolicy' && { status: {} }),
});
/** One pass of it: made, or its spec written over what is there. */
async function operate(collection: string, object: Any): Promise<Any> {
  const path = `${collection}/${NAME}`;
  const found = await read(path);
  if (!found) return plane.admin(`POST ${collection}`, object);
  const { creationTimestamp: _, ...metadata } = object.metadata;
  return plane.admin(`PUT ${path}`, {
    ...object,
    metadata: { ...found.metadata, ...metadata, creationTimestamp: found.metadata.creationTimestamp },
  });
}
const lease = (seconds: number) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: '734f7229.kubevirt.io' },
  spec: {
    holderIdentity: 'ssp-operator-1',
    leaseDurationSeconds: seconds,
    renewTime: new Date().toISOString().replace('Z', '000Z'),
  },
});
/** A policy of a later release, worded otherwise. */
const theirVariables = {
  variables: [{ name: 'label', expression: "string('kubevirt.io/vm-delete-protection') + ''" }],
};

// S-746: ssp-operator's own objects work unchanged: while it holds its Lease nobody here writes to its SSP objects or
//   to what is in their name; later they are taken over; without a Lease writes of two who disagree are bounded.
test('while ssp-operator leads, its SSP object and its policy are its own; a policy of another release stays', async () => {
  await plane.admin(`POST ${LEASES}`, lease(3600));
  const { metadata } = await plane.admin(`POST ${SSPS}`, ssp({ name: 'theirs' }));
  // Its first pass, over what Coracle had made.
  await operate(POLICIES, typed(DELETION_POLICY, theirVariables));
  await operate(BINDINGS, typed(DELETION_POLICY_BINDING));
  const policy = await read(POLICY);
  assert.ok(await isKept());
  await operate(POLICIES, typed(DELETION_POLICY, theirVariables));
  // Deleted by it and made again, as after its own deletion.
  await plane.admin(`DELETE ${BINDING}`);
  await operate(BINDINGS, typed(DELETION_POLICY_BINDING)).catch(() =>
    operate(BINDINGS, typed(DELETION_POLICY_BINDING)),
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  const now = await read(POLICY);
  assert.deepEqual(now.spec.variables, theirVariables.variables);
  assert.equal(now.metadata.generation, policy.metadata.generation, 'nobody wrote over it');
  assert.deepEqual((await read(BINDING)).spec, DELETION_POLICY_BINDING.spec);
  assert.equal((await read(`${SSPS}/theirs`)).metadata.resourceVersion, metadata.resourceVersion);
});

// S-746
test('once it leads no more its objects are taken over', { timeout: 600_000 }, async () => {
  await plane.admin(`PATCH ${LEASES}/734f7229.kubevirt.io`, { spec: { leaseDurationSeconds: 1 } });
  await new Promise((resolve) => setTimeout(resolve, 1000));
  await plane.admin(`PATCH ${SSPS}/theirs`, { metadata: { labels } });
  const { status } = await eventually(() => read(`${SSPS}/theirs`), isDeployed);
  assert.equal(status.operatorVersion, '1.2.3');
  const { spec } = await read(POLICY);
  assert.deepEqual(spec.variables, DELETION_POLICY.spec.variables);
});

// S-746
test('with one that leads without a Lease there is no endless quarrel', async () => {
  let writes = 0;
  let quiet = 0;
  while (quiet < 20) {
    const { spec } = await read(POLICY);
    const isTheirs = JSON.stringify(spec.variables) === JSON.stringify(theirVariables.variables);
    quiet = isTheirs ? quiet + 1 : 0;
    if (!isTheirs) {
      writes++;
      assert.ok(writes < 40, 'it is left alone at last');
      await operate(POLICIES, typed(DELETION_POLICY, theirVariables)).catch(() => {});
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(writes > 1, 'it was put back at first');
  assert.ok(await isKept());
});

// S-746
test('its own deletion: it deletes the policy, which comes back in nobody’s name, and is not taken for its own', async () => {
  await plane.admin(`PATCH ${LEASES}/734f7229.kubevirt.io`, { spec: lease(3600).spec });
  await operate(POLICIES, typed(DELETION_POLICY));
  await operate(BINDINGS, typed(DELETION_POLICY_BINDING));
  await plane.admin(`DELETE ${SSPS}/theirs`);
  for (const path of OPERANDS) {
    const { metadata } = await read(path);
    assert.equal(metadata.annotations['operator-sdk/primary-resource'], 'kubevirt/theirs');
    await plane.admin(`DELETE ${path}`);
    // What it waits for: gone, or there without its annotations.
    await eventually(
      () => read(path),
      (found) => found !== undefined && found.metadata.uid !== metadata.uid && found.metadata.annotations === undefined,
    );
  }
  assert.deepEqual((await read(`${SSPS}/theirs`)).metadata.finalizers, [FINALIZER], 'that is for it to take off');
  await plane.admin(`PATCH ${SSPS}/theirs`, { metadata: { finalizers: null } });
  assert.equal(await read(`${SSPS}/theirs`), undefined);
  await eventually(isKept, Boolean);
});

// S-746
test('the objects that its client sends are taken as they are, and decide', async () => {
  const bare = await startPlane();
  try {
    const policy = await bare.admin(`POST ${POLICIES}`, typed(DELETION_POLICY));
    const binding = await bare.admin(`POST ${BINDINGS}`, typed(DELETION_POLICY_BINDING));
    const { matchConstraints, ...spec } = DELETION_POLICY.spec;
    const { resourceRules, ...rest } = policy.spec.matchConstraints;
    assert.deepEqual(rest, { namespaceSelector: {}, objectSelector: {}, matchPolicy: 'Equivalent' });
    assert.deepEqual(
      { ...policy.spec, matchConstraints: undefined, rules: resourceRules },
      {
        ...spec,
        matchConstraints: undefined,
        rules: matchConstraints!.resourceRules!.map((rule) => ({ ...rule, scope: '*' })),
      },
    );
    assert.deepEqual(binding.spec, DELETION_POLICY_BINDING.spec);
    assert.ok(policy.metadata.creationTimestamp);
    await bare.admin(`POST ${MACHINES}`, machine);
    await eventually(
      () => bare.ask(`DELETE ${MACHINES}/db?dryRun=All`, { as: ADMIN }),
      ({ status }) => status === 422,
    );
  } finally {
    await bare.stop();
  }
});
