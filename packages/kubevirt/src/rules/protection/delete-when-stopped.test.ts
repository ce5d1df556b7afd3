import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { mustStopFirst, notStopped } from './delete-when-stopped.ts';
import { DELETE_ONLY_WHEN_STOPPED, protectionSettingsOf } from './protection-settings.ts';

const vm = (label?: string, more: object = {}): VirtualMachine =>
  ({
    metadata: {
      name: 'db',
      namespace: 'shop',
      uid: 'u1',
      ...(label !== undefined && { labels: { [DELETE_ONLY_WHEN_STOPPED]: label } }),
      ...more,
    },
  }) as unknown as VirtualMachine;
const vmi = (phase: string | undefined, more: object = {}): VirtualMachineInstance =>
  ({
    metadata: {
      name: 'db',
      namespace: 'shop',
      ownerReferences: [{ kind: 'VirtualMachine', name: 'db', uid: 'u1', controller: true }],
      ...more,
    },
    ...(phase !== undefined && { status: { phase } }),
  }) as unknown as VirtualMachineInstance;

test('mustStopFirst() by the label of the machine, or the annotation of the KubeVirt object', () => {
  const settings = (value?: string) =>
    protectionSettingsOf([
      { metadata: { name: 'kubevirt', ...(value && { annotations: { [DELETE_ONLY_WHEN_STOPPED]: value } }) } },
    ]);
  const deleting = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const cases: readonly [VirtualMachine, all: string | undefined, expected: boolean][] = [
    [vm(), undefined, false],
    [vm('true'), undefined, true],
    [vm('false'), undefined, false],
    [vm(), 'true', true],
    [vm('false'), 'true', true],
    [vm(), 'false', false],
    [vm('true', deleting), 'true', false],
  ];
  for (const [machine, all, expected] of cases)
    assert.equal(mustStopFirst(machine, settings(all)), expected, `${JSON.stringify(machine.metadata)} ${all}`);
});

// S-759
test('notStopped() while an instance of the machine is there that has not ended, with the command that stops it', () => {
  const cases: readonly [VirtualMachineInstance | undefined, text: RegExp | undefined][] = [
    [undefined, undefined],
    [vmi('Succeeded'), undefined],
    [vmi('Failed'), undefined],
    [vmi('Running'), /its instance is Running; stop it first, with: virtctl stop db -n shop$/],
    [vmi('Scheduling'), /its instance is Scheduling/],
    [vmi(undefined), /its instance is Pending/],
    [vmi('Running', { deletionTimestamp: '2026-01-01T00:00:00Z' }), /its instance is being stopped/],
    [vmi('Running', { ownerReferences: [] }), undefined],
    [vmi('Running', { ownerReferences: [{ kind: 'VirtualMachine', uid: 'u0', controller: true }] }), undefined],
  ];
  for (const [instance, text] of cases) {
    const why = notStopped(vm('true'), instance);
    if (text) assert.match(why ?? '', text);
    else assert.equal(why, undefined, JSON.stringify(instance));
  }
});
