import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Firmware, VirtualMachine } from '../../kinds/kubevirt.ts';
import { decideIdentity, type Identity, type IdentityCase, onlyAddsUuid, withIdentity } from './decide-identity.ts';
import { legacyFirmwareUuid } from './firmware-identity.ts';

const legacy = legacyFirmwareUuid('web');
const counter = (): (() => string) => {
  let n = 0;
  return () => `random-${++n}`;
};
const randomUuid = (): string => '';

/** `randomUuid` is replaced by a counter for each row. */
const ROWS: readonly [string, IdentityCase, Identity][] = [
  [
    'a new VM gets both',
    { type: 'create-vm', firmware: undefined, randomUuid },
    { uuid: 'random-1', serial: 'random-2', origin: 'Generated' },
  ],
  [
    'a new VM keeps what its user wrote',
    { type: 'create-vm', firmware: { uuid: 'u', serial: 's' }, randomUuid },
    { uuid: 'u', serial: 's', origin: 'Given' },
  ],
  [
    'a new VM with a serial alone gets a UUID',
    { type: 'create-vm', firmware: { uuid: '', serial: 's' }, randomUuid },
    { uuid: 'random-1', serial: 's', origin: 'Generated' },
  ],
  [
    'a new instance without a VM gets a UUID and no serial',
    { type: 'create-vmi', firmware: undefined, randomUuid },
    { uuid: 'random-1', origin: 'Generated' },
  ],
  [
    'a new instance without a VM keeps what its user wrote',
    { type: 'create-vmi', firmware: { uuid: 'u', serial: 's' }, randomUuid },
    { uuid: 'u', serial: 's', origin: 'Given' },
  ],
  [
    'the instance of a VM has what the template says',
    { type: 'instance-of-vm', firmware: { uuid: 'u', serial: 's' }, vmName: 'web' },
    { uuid: 'u', serial: 's' },
  ],
  [
    'the instance of a VM without UUID has the one of the name',
    { type: 'instance-of-vm', firmware: undefined, vmName: 'web' },
    { uuid: legacy },
  ],
  [
    'an existing VM that is stopped keeps the UUID of its name, and gets no serial',
    { type: 'existing-vm', firmware: { bootloader: { efi: {} } }, vmName: 'web' },
    { uuid: legacy, origin: 'Legacy' },
  ],
  [
    'an existing VM that runs keeps the UUID its guest sees',
    { type: 'existing-vm', firmware: { serial: 's' }, vmName: 'web', guestUuid: 'seen' },
    { uuid: 'seen', serial: 's', origin: 'Legacy' },
  ],
  [
    'an existing VM that has a UUID is left alone',
    { type: 'existing-vm', firmware: { uuid: 'u' }, vmName: 'web', guestUuid: 'seen' },
    { uuid: 'u' },
  ],
  [
    'an update that leaves the identity out keeps it',
    { type: 'update-vm', firmware: undefined, stored: { uuid: 'u', serial: 's' } },
    { uuid: 'u', serial: 's' },
  ],
  [
    'an update that gives another UUID is a request of its user',
    { type: 'update-vm', firmware: { uuid: 'v' }, stored: { uuid: 'u', serial: 's' } },
    { uuid: 'v', serial: 's', origin: 'Given' },
  ],
  ['an update of a VM without UUID makes none', { type: 'update-vm', firmware: undefined, stored: undefined }, {}],
  [
    'a restore to the same VM brings the UUID of the snapshot',
    { type: 'restore-same', firmware: { uuid: 'u', serial: 's' }, vmName: 'web' },
    { uuid: 'u', serial: 's', origin: 'Restored' },
  ],
  [
    'a restore to the same VM from a snapshot without UUID brings the one of the name',
    { type: 'restore-same', firmware: undefined, vmName: 'web' },
    { uuid: legacy, origin: 'Restored' },
  ],
  [
    'a restore to another VM makes a new identity',
    { type: 'restore-other', randomUuid },
    { uuid: 'random-1', serial: 'random-2', origin: 'Generated' },
  ],
  [
    'a clone has a new identity',
    { type: 'clone', randomUuid },
    { uuid: 'random-1', serial: 'random-2', origin: 'Generated' },
  ],
  [
    'a clone has the serial it was asked for',
    { type: 'clone', newSerial: 's', randomUuid },
    { uuid: 'random-1', serial: 's', origin: 'Generated' },
  ],
  [
    'a fork has a new identity',
    { type: 'fork', randomUuid },
    { uuid: 'random-1', serial: 'random-2', origin: 'Generated' },
  ],
  [
    'an import keeps what is written',
    { type: 'import', firmware: { uuid: 'u', serial: 's' }, vmName: 'web' },
    { uuid: 'u', serial: 's', origin: 'Given' },
  ],
  [
    'an import without UUID has the one of the name',
    { type: 'import', firmware: { serial: 's' }, vmName: 'web' },
    { uuid: legacy, serial: 's', origin: 'Legacy' },
  ],
];

describe('decideIdentity()', () => {
  for (const [name, of, expected] of ROWS) {
    it(name, () => {
      const asked = 'randomUuid' in of ? { ...of, randomUuid: counter() } : of;
      assert.deepEqual(decideIdentity(asked), expected);
    });
  }

  // S-050: A new machine gets a firmware UUID and serial; an older one keeps the UUID its guests have seen.
  // S-611: One rule decides the firmware identity in every case: created, started, found without one, restored, cloned,
  //   forked, imported.
  it('gives what already exists the same UUID each time it is asked', () => {
    const firmware = fc.option(fc.record({ uuid: fc.option(fc.uuid(), { nil: undefined }) }), { nil: undefined });
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), firmware, (vmName, written) => {
        const kept = { ...(written?.uuid !== undefined && { uuid: written.uuid }) };
        const uuids = (['instance-of-vm', 'existing-vm', 'restore-same', 'import'] as const).map(
          (type) => decideIdentity({ type, firmware: kept, vmName }).uuid,
        );
        assert.deepEqual(new Set(uuids), new Set([kept.uuid ?? legacyFirmwareUuid(vmName)]));
      }),
      { numRuns: 100 },
    );
  });
});

describe('withIdentity()', () => {
  it('writes the identity and leaves the rest', () => {
    const firmware = { uuid: 'old', serial: 'old', bootloader: { efi: {} } };
    assert.deepEqual(withIdentity(firmware, { uuid: 'u' }), { bootloader: { efi: {} }, uuid: 'u' });
    assert.deepEqual(withIdentity(undefined, { uuid: 'u', serial: 's' }), { uuid: 'u', serial: 's' });
  });
});

describe('onlyAddsUuid()', () => {
  const vm = (firmware: Firmware | undefined, guest = '1Gi') =>
    ({
      spec: {
        template: { spec: { domain: { devices: {}, memory: { guest }, ...(firmware && { firmware }) } } },
      },
    }) as unknown as VirtualMachine;
  const rows: readonly [string, VirtualMachine, VirtualMachine, boolean][] = [
    ['a UUID where there was no firmware', vm(undefined), vm({ uuid: 'u' }), true],
    ['a UUID where there was none', vm({ serial: 's' }), vm({ serial: 's', uuid: 'u' }), true],
    ['a UUID where it was empty', vm({ uuid: '' }), vm({ uuid: 'u' }), true],
    ['another UUID', vm({ uuid: 'v' }), vm({ uuid: 'u' }), false],
    ['a UUID and a serial', vm(undefined), vm({ serial: 's', uuid: 'u' }), false],
    ['a UUID and memory', vm(undefined), vm({ uuid: 'u' }, '2Gi'), false],
    ['nothing', vm(undefined), vm(undefined), false],
  ];
  for (const [name, before, after, expected] of rows)
    it(`${name}: ${expected}`, () => assert.equal(onlyAddsUuid(before, after), expected));
});
