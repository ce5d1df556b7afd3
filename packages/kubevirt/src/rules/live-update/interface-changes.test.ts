import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { interfacesVerdict, neutraliseInterfaces } from './interface-changes.ts';

type Nic = readonly [name: string, state?: string];
const specOf = (...nics: readonly Nic[]) =>
  partly<VirtualMachineInstanceSpec>({
    domain: {
      devices: {
        interfaces: nics.map(([name, state]) => ({
          name,
          ...(name === 'default' ? { masquerade: {} } : { bridge: {} }),
          ...(state !== undefined && { state }),
        })),
      },
    },
    networks: nics.map(([name]) => (name === 'default' ? { name, pod: {} } : { name, multus: { networkName: name } })),
  });
const verdict = (before: readonly Nic[], wanted: readonly Nic[], status: object = {}) =>
  interfacesVerdict({
    wanted: specOf(...wanted),
    vmi: partly<VirtualMachineInstance>({ metadata: {}, spec: specOf(...before), status }),
  });

test('interfacesVerdict(): cables are pulled and put in again', () => {
  const path = '/spec/domain/devices/interfaces/0';
  const same = { op: 'test', path: `${path}/name`, value: 'default' };
  assert.deepEqual(verdict([['default']], [['default']]), { patch: [] });
  assert.deepEqual(verdict([['default']], [['default', 'down']]), {
    patch: [same, { op: 'add', path: `${path}/state`, value: 'down' }],
  });
  assert.deepEqual(verdict([['default', 'down']], [['default']]), {
    patch: [same, { op: 'remove', path: `${path}/state` }],
  });
  const moving = verdict([['default']], [['default', 'down']], { migrationState: {} });
  assert.deepEqual([moving.patch, moving.failure?.reason], [[], 'HotPlugNetworkInterfaceError']);
});

test('interfacesVerdict(): a card of a network by multus is refused with the reason, and one that is absent is none', () => {
  const { failure, patch } = verdict([['default']], [['default', 'down'], ['blue']]);
  assert.deepEqual(failure, {
    reason: 'HotPlugNetworkInterfaceError',
    message: 'interface blue cannot be plugged in: multus networks are not supported',
  });
  assert.equal(patch.length, 2, 'the other change is made');
  assert.deepEqual(verdict([['default']], [['default'], ['blue', 'absent']]), { patch: [] });
});

test('neutraliseInterfaces(): states and added secondary cards are no difference, all else stays one', () => {
  const rows: readonly (readonly [started: readonly Nic[], current: readonly Nic[], isSame: boolean])[] = [
    [[['default']], [['default', 'down']], true],
    [[['default', 'down']], [['default']], true],
    [[['default']], [['blue'], ['default', 'down']], true],
    [[['default'], ['blue']], [['default'], ['blue', 'absent']], true],
    [[['default'], ['blue']], [['default']], false],
    [[], [['default']], false],
  ];
  for (const [started, current, isSame] of rows) {
    const [before, after] = [structuredClone(specOf(...started)), specOf(...current)];
    neutraliseInterfaces(before, after);
    (isSame ? assert.deepEqual : assert.notDeepEqual)(before, after, JSON.stringify([started, current]));
  }
});
