/**
 * Machines that an older server stored without a firmware UUID: what their guests have always seen is written down,
 * without a restart, and in a way that nobody takes for an edit.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
});
after(() => plane.stop());

const vmOf = (name: string, runStrategy: string): Any => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name },
  spec: { runStrategy, template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
});

/** Takes what an older server did not write out of a stored machine: its identity, and the note on it. */
const storeAsOlderServer = (name: string): Promise<unknown> =>
  plane.plane.store.write({ prefix: 'kubevirt.io/virtualmachines', namespace: 'default', name }, (current) => {
    const object = structuredClone(current!.object) as Any;
    delete object.spec.template.spec.domain.firmware;
    delete object.metadata.annotations?.['coracle.dev/firmware-identity'];
    for (const entry of object.metadata.managedFields ?? [])
      delete entry.fieldsV1?.['f:spec']?.['f:template']?.['f:spec']?.['f:domain']?.['f:firmware'];
    return { type: 'put', object: object as UnstructuredObject };
  });

const vm = (name: string): Promise<Any> => plane.admin(`GET ${VMS}/${name}`);
const uuidOf = (object: Any): string | undefined => object.spec.template.spec.domain.firmware?.uuid;
const ownersOf = (object: Any): string[] =>
  object.metadata.managedFields
    .filter((entry: Any) => entry.fieldsV1['f:spec']?.['f:template']?.['f:spec']?.['f:domain']?.['f:firmware'])
    .map((entry: Any) => entry.manager);

// S-612: A machine that was stored without UUID keeps the one its guest sees: without a restart, RestartRequired or a
//   new generation; a user's edit at the same time wins.
test('an older machine gets the UUID of its name: stopped, running, and against edits at the same time', async () => {
  await plane.admin(`POST ${VMS}`, vmOf('stopped', 'Halted'));
  await plane.admin(`POST ${VMS}`, vmOf('running', 'Always'));
  await plane.admin(`POST ${VMS}`, vmOf('edited', 'Halted'));
  for (const name of ['stopped', 'running', 'edited']) await storeAsOlderServer(name);
  // The guest of an older server has the UUID of the name. So that it differs from what we would reckon, another here.
  const seen = '11111111-2222-4333-8444-555555555555';
  const { uid } = (await vm('running')).metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'running', uid, controller: true };
  const instance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'running', ownerReferences: [owner], annotations: { 'kubevirt.io/vm-generation': '1' } },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' }, firmware: { uuid: seen } } },
  };
  const { uid: instanceUid } = (await plane.admin(`POST ${VMIS}`, instance)).metadata;
  const { spec } = await vm('running');
  await plane.admin('POST /apis/apps/v1/namespaces/default/controllerrevisions', {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: { name: `revision-start-vm-${uid}-1`, ownerReferences: [owner] },
    data: { spec },
    revision: 1,
  });
  const before = { stopped: await vm('stopped'), running: await vm('running') };
  assert.equal(uuidOf(before.running), undefined);

  await plane.run(['vm'], { rootCa: '' });
  // A user's own UUID, given while the controller is at work, is the one that stays.
  const mine = '99999999-2222-4333-8444-555555555555';
  const edit = await plane.admin(`PATCH ${VMS}/edited`, {
    spec: { template: { spec: { domain: { firmware: { uuid: mine } } } } },
  });
  assert.equal(uuidOf(edit), mine);

  const stopped = await eventually(
    () => vm('stopped'),
    (found) => uuidOf(found) !== undefined,
  );
  assert.deepEqual(stopped.spec.template.spec.domain.firmware, { uuid: legacyFirmwareUuid('stopped') });
  assert.equal(stopped.metadata.generation, before.stopped.metadata.generation, 'no edit');
  assert.equal(stopped.metadata.annotations['coracle.dev/firmware-identity'], 'Legacy');
  assert.deepEqual(ownersOf(stopped), ['coracle-vm'], 'the controller owns what it wrote');

  const running = await eventually(
    () => vm('running'),
    (found) => uuidOf(found) !== undefined && found.status?.observedGeneration !== undefined,
  );
  assert.equal(uuidOf(running), seen, 'what the guest sees');
  assert.equal(running.metadata.generation, before.running.metadata.generation);
  assert.equal(running.status.observedGeneration, running.metadata.generation);
  const types = running.status.conditions.map(({ type }: Any) => type);
  assert.ok(!types.includes('RestartRequired'), types.join());
  assert.equal((await plane.admin(`GET ${VMIS}/running`)).metadata.uid, instanceUid, 'no restart');

  const edited = await eventually(
    () => vm('edited'),
    (found) => found.metadata.finalizers?.length > 0 && found.status?.printableStatus !== undefined,
  );
  assert.equal(uuidOf(edited), mine);
});

// S-613
test('a change of the UUID of a running machine needs a restart, and counts as an edit', async () => {
  const { metadata } = await vm('running');
  const uuid = '77777777-2222-4333-8444-555555555555';
  const written = await plane.admin(`PATCH ${VMS}/running`, {
    spec: { template: { spec: { domain: { firmware: { uuid } } } } },
  });
  assert.equal(written.metadata.generation, metadata.generation + 1);
  assert.equal(written.metadata.annotations['coracle.dev/firmware-identity'], 'Given');
  await eventually(
    () => vm('running'),
    ({ status }) => status.conditions.some(({ type }: Any) => type === 'RestartRequired'),
  );
});

// S-613: An update that leaves the identity out keeps it, and is no change; one that gives another needs a restart.
test('a manifest from before the UUID takes it away from nobody', async () => {
  const stored = await vm('stopped');
  const { firmware: _, machine: __, ...domain } = stored.spec.template.spec.domain;
  const template = { ...stored.spec.template, spec: { ...stored.spec.template.spec, domain } };
  const replaced = await plane.admin(`PUT ${VMS}/stopped`, { ...stored, spec: { ...stored.spec, template } });
  assert.equal(uuidOf(replaced), legacyFirmwareUuid('stopped'));
  assert.equal(replaced.metadata.generation, stored.metadata.generation, 'nothing else is wanted than before');
  const removed = await plane.ask(`PATCH ${VMS}/stopped`, {
    as: ['admin', 'system:masters'],
    headers: { 'content-type': 'application/json-patch+json' },
    body: [{ op: 'remove', path: '/spec/template/spec/domain/firmware' }],
  });
  assert.equal(uuidOf(removed.json), legacyFirmwareUuid('stopped'));
});

// S-612
test('a policy that refuses the write is reported, and the machine starts with its UUID all the same', async () => {
  await plane.admin('POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies', {
    metadata: { name: 'frozen-templates' },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['kubevirt.io'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['virtualmachines'] },
        ],
      },
      validations: [{ expression: "!(object.metadata.name == 'frozen') || object.spec == oldObject.spec" }],
    },
  });
  await plane.admin('POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings', {
    metadata: { name: 'frozen-templates' },
    spec: { policyName: 'frozen-templates', validationActions: ['Deny'] },
  });
  const frozen = vmOf('frozen', 'Always');
  frozen.metadata.annotations = { wait: 'yes' };
  await plane.admin(`POST ${VMS}`, frozen);
  await eventually(
    () => plane.ask(`GET ${VMIS}/frozen`, { as: ['admin', 'system:masters'] }),
    ({ status }) => status === 200,
  );
  await storeAsOlderServer('frozen');
  const reported = await eventually(
    () => vm('frozen'),
    (found) => found.status?.conditions?.some(({ reason }: Any) => reason === 'FirmwareUUIDError'),
  );
  assert.equal(uuidOf(reported), undefined);
  assert.match(
    reported.status.conditions.find(({ reason }: Any) => reason === 'FirmwareUUIDError').message,
    /frozen-templates/,
  );
});
