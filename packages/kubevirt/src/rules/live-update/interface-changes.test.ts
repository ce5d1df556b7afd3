import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { clearAbsent, interfacesDecision, neutraliseInterfaces } from './interface-changes.ts';

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
const decision = (before: readonly Nic[], wanted: readonly Nic[], status: object = {}) =>
  interfacesDecision({
    wanted: specOf(...wanted),
    vmi: partly<VirtualMachineInstance>({ metadata: {}, spec: specOf(...before), status }),
  });

const LIST = '/spec/domain/devices/interfaces';
const put = (path: string, before: unknown, value: unknown) => [
  { op: 'test', path, value: before },
  { op: 'add', path, value },
];
/** The lists that the instance is given. */
const lists = (before: readonly Nic[], after: readonly Nic[]) => {
  const [was, is] = [specOf(...before), specOf(...after)];
  return [
    ...put(LIST, was.domain.devices.interfaces, is.domain.devices.interfaces),
    ...(before.length === after.length ? [] : put('/spec/networks', was.networks, is.networks)),
  ];
};

// S-1257
test('interfacesDecision(): cables are pulled and put in again; cards come, are taken out, and are forgotten', () => {
  const status = { interfaces: [{ name: 'default' }, { name: 'blue' }] };
  const rows: readonly (readonly [string, before: readonly Nic[], wanted: readonly Nic[], after?: readonly Nic[]])[] = [
    ['nothing', [['default']], [['default']]],
    ['a cable is pulled', [['default']], [['default', 'down']], [['default', 'down']]],
    ['and put in', [['default', 'down']], [['default']], [['default']]],
    ['a card comes', [['default']], [['default', 'down'], ['red']], [['default', 'down'], ['red']]],
    ['one that is absent does not', [['default']], [['default'], ['red', 'absent']]],
    ['a card goes', [['default'], ['blue']], [['default'], ['blue', 'absent']], [['default'], ['blue', 'absent']]],
    ['the guest has it still', [['default'], ['blue', 'absent']], [['default'], ['blue', 'absent']]],
    ['it is gone', [['default'], ['red', 'absent']], [['default'], ['red', 'absent']], [['default']]],
    ['it never came', [['default'], ['red']], [['default'], ['red', 'absent']], [['default']]],
    ['one that is only left out stays', [['default'], ['blue']], [['default']]],
  ];
  for (const [what, before, wanted, after] of rows)
    assert.deepEqual(decision(before, wanted, status), { patch: after ? lists(before, after) : [] }, what);
  const moving = decision([['default']], [['default', 'down']], { migrationState: {} });
  assert.deepEqual([moving.patch, moving.failure?.reason], [[], 'HotPlugNetworkInterfaceError']);
});

// S-1257
test('neutraliseInterfaces(): states, added cards, and those let go of are no difference, all else stays one', () => {
  const rows: readonly (readonly [
    started: readonly Nic[],
    current: readonly Nic[],
    isSame: boolean,
    running?: readonly Nic[],
  ])[] = [
    [[['default']], [['default', 'down']], true],
    [[['default', 'down']], [['default']], true],
    [[['default']], [['blue'], ['default', 'down']], true],
    [[['default'], ['blue']], [['default'], ['blue', 'absent']], true],
    [[['default'], ['blue']], [['default']], false],
    [[['default'], ['blue']], [['default']], false, [['default'], ['blue']]],
    [[['default'], ['blue']], [['default']], true, [['default']]],
    [[['default']], [['default']], false, [['default'], ['blue']]],
    [[['default']], [['default']], true, [['default'], ['blue', 'absent']]],
    [[], [['default']], false],
    [[], [], true, [['default']]],
  ];
  for (const [started, current, isSame, running] of rows) {
    const [before, after] = [structuredClone(specOf(...started)), specOf(...current)];
    neutraliseInterfaces(before, after, running && specOf(...running));
    (isSame ? assert.deepEqual : assert.notDeepEqual)(before, after, JSON.stringify([started, current, running]));
  }
  const elsewhere = specOf(['default'], ['blue'], ['red']);
  for (const { multus } of elsewhere.networks ?? []) if (multus) multus.networkName = 'other';
  const here = specOf(['default'], ['blue']);
  neutraliseInterfaces(here, elsewhere, specOf(['default'], ['blue']));
  assert.deepEqual(
    here.networks?.map(({ multus }) => multus?.networkName),
    [undefined, 'blue', 'other'],
    'a card that is to be on another network needs a restart, one that comes does not',
  );
  const plugin = specOf(['default'], ['blue']);
  const [, nic] = plugin.domain.devices.interfaces ?? [];
  delete nic?.bridge;
  const before = specOf(['default']);
  neutraliseInterfaces(before, plugin, specOf(['default']));
  assert.notDeepEqual(before, plugin, 'another binding needs a restart');
});

// S-1523
test('clearAbsent(): forgets what the running guest has let go of, and leaves what is declared', () => {
  const inTemplate = (...fields: string[]): string => {
    const vm = partly<VirtualMachine>({
      metadata: {
        managedFields: [
          { operation: 'Update', fieldsV1: declared },
          { operation: 'Apply', fieldsV1: fields.includes('declared') ? declared : { 'f:spec': { 'f:running': {} } } },
        ],
      },
      spec: { template: { spec: specOf(['default'], ['blue', 'absent'], ['red', 'absent']) } },
    });
    const status = { phase: fields.includes('pending') ? 'Scheduled' : 'Running', interfaces: [{ name: 'red' }] };
    clearAbsent(vm, partly<VirtualMachineInstance>({ spec: specOf(['default']), status } as never));
    const { networks = [], domain } = vm.spec.template?.spec ?? {};
    return [...(domain?.devices.interfaces ?? []), ...networks].map(({ name }) => name).join(' ');
  };
  const all = 'default blue red default blue red';
  assert.equal(inTemplate(), 'default red default red');
  assert.equal(inTemplate('declared'), all);
  assert.equal(inTemplate('pending'), all);
});

const declared = {
  'f:spec': { 'f:template': { 'f:spec': { 'f:domain': { 'f:devices': { 'f:interfaces': {} } } } } },
};
