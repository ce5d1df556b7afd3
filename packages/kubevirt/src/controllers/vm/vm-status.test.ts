import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ControllerRevision } from '../../../../apimachinery/src/types/types.ts';
import type { Firmware, ReadonlyVmi, VirtualMachine } from '../../kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../../rules/identity/firmware-identity.ts';
import { clusterConfigOf } from '../../rules/machine-defaults/cluster-config.ts';
import { buildInstance } from './build-instance.ts';
import { differsFromStart, restartRequired, startRevision, withGuestUuid } from './start-revision.ts';
import { applyVmStatus } from './vm-status.ts';

const config = clusterConfigOf(undefined);

const vm = (over: object = {}): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'a', namespace: 'ns', uid: 'vu', generation: 3 },
    spec: {
      runStrategy: 'Always',
      template: { metadata: { labels: { app: 'x' } }, spec: { domain: { memory: { guest: '1Gi' } } } },
    },
    ...over,
  }) as unknown as VirtualMachine;

const vmi = (phase: string, conditions: object[] = []): ReadonlyVmi =>
  ({
    metadata: { name: 'a', namespace: 'ns', uid: 'iu', annotations: { 'kubevirt.io/vm-generation': '3' } },
    spec: {},
    status: { phase, conditions },
  }) as unknown as ReadonlyVmi;

const apply = (machine: VirtualMachine, instance: ReadonlyVmi | undefined, now = 0): VirtualMachine => {
  applyVmStatus({
    vm: machine,
    instance,
    expects: undefined,
    failure: undefined,
    restartRequired: undefined,
    now,
    random: 0,
  });
  return machine;
};

test('buildInstance() is the template under the VM, owned, with its generation', () => {
  const made = buildInstance(vm(), { paused: true, layers: {}, config });
  assert.equal(made.metadata.name, 'a');
  assert.deepEqual(made.metadata.labels, { app: 'x' });
  assert.equal(made.metadata.annotations?.['kubevirt.io/vm-generation'], '3');
  assert.equal(made.metadata.annotations?.['kubevirt.io/latest-observed-api-version'], 'v1');
  assert.deepEqual(made.metadata.finalizers, ['kubevirt.io/virtualMachineControllerFinalize']);
  assert.equal(made.metadata.ownerReferences?.[0]?.uid, 'vu');
  assert.equal(made.spec.startStrategy, 'Paused');
  assert.equal(made.spec.domain?.firmware?.uuid, legacyFirmwareUuid('a'));
});

test('buildInstance() keeps the uuid of the template', () => {
  const machine = vm();
  machine.spec.template.spec!.domain!.firmware = { uuid: 'mine' };
  assert.equal(buildInstance(machine, { paused: false, layers: {}, config }).spec.domain?.firmware?.uuid, 'mine');
});

test('applyVmStatus() without an instance', () => {
  const { status } = apply(vm(), undefined);
  assert.deepEqual([status?.created, status?.ready], [undefined, undefined]);
  assert.equal(status?.printableStatus, 'Stopped');
  assert.equal(status?.conditions?.[0]?.reason, 'VMINotExists');
  assert.equal(status?.desiredGeneration, 3);
});

// S-043: The machine mirrors the conditions of its instance, and says when a restart is required.
test('applyVmStatus() mirrors the conditions of the instance and lets go of them with it', () => {
  const machine = apply(
    vm(),
    vmi('Running', [
      { type: 'Ready', status: 'True' },
      { type: 'Paused', status: 'True', reason: 'PausedByUser' },
    ]),
  );
  assert.equal(machine.status?.ready, true);
  assert.equal(machine.status?.printableStatus, 'Paused');
  assert.deepEqual(
    machine.status?.conditions?.map((c) => c.type),
    ['Ready', 'Paused'],
  );
  apply(machine, undefined, 5000);
  assert.deepEqual(
    machine.status?.conditions?.map((c) => c.type),
    ['Ready'],
  );
});

test('applyVmStatus() keeps the Start of a restart until the next instance is there', () => {
  const requests = [{ action: 'Stop', uid: 'iu' }, { action: 'Start' }];
  const manual = vm({ status: { stateChangeRequests: requests } });
  manual.spec.runStrategy = 'Manual';
  assert.deepEqual(apply(manual, vmi('Running')).status?.stateChangeRequests, requests);
  assert.deepEqual(apply(manual, undefined).status?.stateChangeRequests, [{ action: 'Start' }]);
  assert.equal(apply(manual, vmi('Pending')).status?.stateChangeRequests, undefined);
});

test('applyVmStatus() twice changes nothing', () => {
  const machine = apply(vm(), vmi('Running', [{ type: 'Ready', status: 'True' }]));
  const once = structuredClone(machine);
  assert.deepEqual(apply(machine, vmi('Running', [{ type: 'Ready', status: 'True' }]), 60_000), once);
});

// S-043
test('restartRequired() sees a change of the template', () => {
  const machine = vm();
  const revision = startRevision(machine) as ControllerRevision;
  assert.equal(revision.metadata.name, 'revision-start-vm-vu-3');
  const started = { spec: structuredClone(revision.data?.['spec']) as VirtualMachine['spec'], layers: {} };
  const isRequired = () => restartRequired(started, { spec: machine.spec, layers: {} }, config);
  assert.equal(isRequired(), false);
  machine.spec.runStrategy = 'Halted';
  assert.equal(isRequired(), false);
  machine.spec.template.spec!.domain!.memory = { guest: '2Gi' };
  assert.equal(isRequired(), false, 'what is updated live');
  assert.equal(differsFromStart(started, { spec: machine.spec, layers: {} }, config), true);
  const staged = { ...config, liveUpdate: false };
  assert.equal(restartRequired(started, { spec: machine.spec, layers: {} }, staged), true);
  machine.spec.template.spec!.domain!.ioThreadsPolicy = 'auto';
  assert.equal(isRequired(), true);
});

// S-613
test('restartRequired() sees another identity, and not the UUID of the guest that is written down', () => {
  const uuid = legacyFirmwareUuid('a');
  const started = { spec: withGuestUuid(vm().spec, uuid), layers: {} };
  const isRequired = (firmware: Firmware) => {
    const { spec } = vm();
    spec.template.spec!.domain!.firmware = firmware;
    return restartRequired(started, { spec, layers: {} }, config);
  };
  assert.equal(isRequired({ uuid }), false);
  assert.equal(isRequired({ uuid: uuid.toUpperCase() }), false, 'the same one');
  assert.equal(isRequired({ uuid: legacyFirmwareUuid('b') }), true);
  assert.equal(isRequired({ uuid, serial: 's' }), true);
});

test('restartRequired() compares what instance types stand for', () => {
  const spec = (name: string): VirtualMachine['spec'] => ({
    instancetype: { name, revisionName: `copy-of-${name}` },
    template: { spec: { domain: { devices: {} } } },
  });
  const amounts = (guest: number) => ({ instancetype: { cpu: { guest }, memory: { guest: '1Gi' } } });
  const before = { spec: spec('a'), layers: amounts(2) };
  assert.equal(restartRequired(before, { spec: spec('b'), layers: amounts(2) }, config), false, 'equivalent');
  const other = { spec: spec('b'), layers: amounts(4) };
  assert.equal(restartRequired(before, other, config), false, 'sockets only');
  assert.equal(restartRequired(before, other, { ...config, liveUpdate: false }), true);
  const realtime = { instancetype: { cpu: { guest: 2, isolateEmulatorThread: true }, memory: { guest: '1Gi' } } };
  assert.equal(restartRequired(before, { spec: spec('b'), layers: realtime }, config), true);
  assert.equal(restartRequired({ ...before, layers: undefined }, before, config), false, 'the same copy');
  assert.equal(
    restartRequired({ ...before, layers: undefined }, { spec: spec('b'), layers: amounts(2) }, config),
    true,
  );
});
