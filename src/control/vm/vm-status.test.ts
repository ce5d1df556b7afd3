import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ControllerRevision } from '../../api/kinds/builtin/types.ts';
import type { VirtualMachine } from '../../api/kinds/kubevirt/kubevirt.ts';
import { buildInstance } from './build-instance.ts';
import { restartRequired, startRevision } from './start-revision.ts';
import { applyVmStatus } from './vm-status.ts';
import type { ReadonlyVmi } from './vm-view.ts';

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
    restartRequired: false,
    now,
    random: 0,
  });
  return machine;
};

test('buildInstance() is the template under the VM, owned, with its generation', () => {
  const made = buildInstance(vm(), { paused: true, legacyUuid: 'legacy' });
  assert.equal(made.metadata.name, 'a');
  assert.deepEqual(made.metadata.labels, { app: 'x' });
  assert.equal(made.metadata.annotations?.['kubevirt.io/vm-generation'], '3');
  assert.equal(made.metadata.annotations?.['kubevirt.io/latest-observed-api-version'], 'v1');
  assert.deepEqual(made.metadata.finalizers, ['kubevirt.io/virtualMachineControllerFinalize']);
  assert.equal(made.metadata.ownerReferences?.[0]?.uid, 'vu');
  assert.equal(made.spec.startStrategy, 'Paused');
  assert.equal(made.spec.domain?.firmware?.uuid, 'legacy');
});

test('buildInstance() keeps the uuid of the template', () => {
  const machine = vm();
  machine.spec.template.spec!.domain!.firmware = { uuid: 'mine' };
  assert.equal(buildInstance(machine, { paused: false, legacyUuid: 'legacy' }).spec.domain?.firmware?.uuid, 'mine');
});

test('applyVmStatus() without an instance', () => {
  const { status } = apply(vm(), undefined);
  assert.equal(status?.created, false);
  assert.equal(status?.ready, false);
  assert.equal(status?.printableStatus, 'Stopped');
  assert.equal(status?.conditions?.[0]?.reason, 'VMINotExists');
  assert.equal(status?.desiredGeneration, 3);
});

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

test('restartRequired() sees a change of the template and not the identity filled in later', () => {
  const machine = vm();
  const revision = startRevision(machine) as ControllerRevision;
  assert.equal(revision.metadata.name, 'revision-start-vm-vu-3');
  assert.equal(restartRequired(machine, revision), false);
  machine.spec.template.spec!.domain!.firmware = { uuid: 'x', serial: 'y' };
  machine.spec.runStrategy = 'Halted';
  assert.equal(restartRequired(machine, revision), false);
  machine.spec.template.spec!.domain!.memory = { guest: '2Gi' };
  assert.equal(restartRequired(machine, revision), true);
});
