/** What a protected machine keeps, and who shares it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { guardedParts, partKey, sharersOf } from './guarded-parts.ts';

const machine = (name: string, volumes: object[], { namespace = 'ns', devices = {} } = {}): VirtualMachine =>
  ({
    metadata: { name, namespace },
    spec: { template: { spec: { domain: { devices }, volumes } } },
  }) as unknown as VirtualMachine;
const disk = { dataVolume: { name: 'disk' } };
const keys = { secret: { secretName: 'keys' } };

// S-797
test('guardedParts() names each object once, with the field, and the claim of the firmware state', () => {
  const labels = { 'persistent-state-for': 'vm' };
  const state = partly<PersistentVolumeClaim>({ metadata: { name: 'state-1', namespace: 'ns', labels } });
  const vm = machine('vm', [disk, keys, keys], { devices: { tpm: { persistent: true } } });
  assert.deepEqual(
    guardedParts(vm, [state]).map((part) => `${part.kind}/${part.name} ${part.field}`),
    [
      'DataVolume/disk spec.template.spec.volumes[0].dataVolume.name',
      'PersistentVolumeClaim/disk spec.template.spec.volumes[0].dataVolume.name',
      'Secret/keys spec.template.spec.volumes[1].secret.secretName',
      'PersistentVolumeClaim/state-1 firmware state',
    ],
  );
  assert.equal(guardedParts(machine('vm', []), [state]).length, 0, 'the machine has no firmware state');
});

test('sharersOf() names other machines of the namespace, sorted', () => {
  const vm = machine('vm', [disk, keys]);
  const parts = guardedParts(vm, []);
  const others = [
    machine('z', [keys]),
    machine('a', [keys, { persistentVolumeClaim: { claimName: 'disk' } }]),
    machine('far', [keys], { namespace: 'other' }),
    vm,
  ];
  const sharers = sharersOf(vm, parts, others);
  const named = parts.map((part) => `${part.kind}: ${sharers.get(partKey(part))!.join(' ')}`);
  assert.deepEqual(named, ['DataVolume: ', 'PersistentVolumeClaim: a', 'Secret: a z']);
});
