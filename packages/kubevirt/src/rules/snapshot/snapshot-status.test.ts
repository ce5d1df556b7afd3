import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VirtualMachineSnapshot, VirtualMachineSnapshotContent } from '../../kinds/kubevirt.ts';
import { isTerminating, mayUnlock, type SourceView, snapshotStatus } from './snapshot-status.ts';

const NOW = Date.parse('2026-01-01T00:10:00Z');
type Status = VirtualMachineSnapshot['status'];

const snapshot = (
  status: Status,
  more: { spec?: object; deleting?: boolean; age?: number } = {},
): VirtualMachineSnapshot =>
  ({
    metadata: {
      name: 's',
      uid: 'u',
      creationTimestamp: new Date(NOW - (more.age ?? 0) * 1000).toISOString(),
      ...(more.deleting && { deletionTimestamp: new Date(NOW).toISOString() }),
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'a' }, ...more.spec },
    ...(status && { status }),
  }) as VirtualMachineSnapshot;
const content = (
  status: VirtualMachineSnapshotContent['status'],
  volumes: object[] = [],
): VirtualMachineSnapshotContent =>
  ({
    metadata: { name: 'c' },
    spec: {
      source: { virtualMachine: { spec: { template: { spec: { domain: { devices: {} }, volumes } } } } },
      volumeBackups: [{ volumeName: 'a', persistentVolumeClaim: {} }],
    },
    ...(status && { status }),
  }) as unknown as VirtualMachineSnapshotContent;
const source = (more: Partial<SourceView> = {}): SourceView => ({
  uid: 'vm',
  online: false,
  paused: false,
  guestAgent: false,
  locked: true,
  lockMessage: 'Source locked and operation in progress',
  ...more,
});
const taken = { creationTime: '2026-01-01T00:09:00Z', readyToUse: false };

describe('snapshotStatus()', () => {
  const shown = (
    of: VirtualMachineSnapshot,
    facts: { source?: SourceView; content?: VirtualMachineSnapshotContent },
  ): string => {
    const { phase, conditions, indications } = snapshotStatus(of, {
      source: facts.source,
      content: facts.content,
      now: NOW,
    });
    const texts = (conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    return [phase, ...texts, ...(indications ?? [])].join(' | ');
  };
  const cases: [name: string, VirtualMachineSnapshot, Parameters<typeof shown>[1], expected: string][] = [
    [
      'no source',
      snapshot(undefined),
      {},
      'InProgress | Progressing False Source does not exist | Ready False Not ready',
    ],
    [
      'a source that cannot be locked',
      snapshot(undefined),
      { source: source({ locked: false, lockMessage: 'Source not locked x' }) },
      'InProgress | Progressing False Source not locked x | Ready False Not ready',
    ],
    [
      'a locked source that runs without an agent',
      snapshot({}),
      { source: source({ online: true }) },
      'InProgress | Progressing True Source locked and operation in progress | Ready False Not ready | NoGuestAgent | Online',
    ],
    [
      'a guest that could not be held still for as long as it took',
      snapshot({ error: { message: 'fsfreeze is limited up to 10 seconds' } }),
      { source: source({ online: true, guestAgent: true }) },
      'InProgress | Progressing False In error state | Ready False Not ready | GuestAgent | Online | QuiesceTimeout',
    ],
    [
      'all volumes taken, not yet ready',
      snapshot({}),
      { source: source(), content: content(taken) },
      'Succeeded | Progressing False Operation complete | Ready False Not ready',
    ],
    [
      'ready',
      snapshot({}),
      { source: source(), content: content({ ...taken, readyToUse: true }) },
      'Succeeded | Progressing False Operation complete | Ready True Ready',
    ],
    [
      'ready, without a volume that could have been saved',
      snapshot({}),
      {
        source: source(),
        content: content({ ...taken, readyToUse: true }, [
          { name: 'b', persistentVolumeClaim: { claimName: 'b' } },
          { name: 'boot', containerDisk: { image: 'x' } },
        ]),
      },
      'Succeeded | Progressing False Operation complete | Ready True Ready | PartialSnapshot',
    ],
    [
      'past its deadline',
      snapshot({}, { age: 301 }),
      { source: source() },
      'Failed | Failure True snapshot deadline exceeded | Progressing False Operation failed | Ready False Not ready',
    ],
    [
      'without a deadline',
      snapshot({}, { age: 9999, spec: { failureDeadline: '0s' } }),
      { source: source() },
      'InProgress | Progressing True Source locked and operation in progress | Ready False Not ready',
    ],
    [
      'succeeded in time, and long ago',
      snapshot({ phase: 'Succeeded', ...taken }, { age: 9999 }),
      { source: source(), content: content({ ...taken, readyToUse: true }) },
      'Succeeded | Progressing False Operation complete | Ready True Ready',
    ],
    [
      'being deleted',
      snapshot({}, { deleting: true }),
      { source: source() },
      'Deleting | Progressing False VM snapshot is deleting | Ready False Not ready',
    ],
  ];
  for (const [name, of, facts, expected] of cases) it(name, () => assert.equal(shown(of, facts), expected));
  it('says nothing new of the same facts', () => {
    const facts = { source: source({ online: true }), content: undefined };
    const first = snapshotStatus(snapshot({}), { ...facts, now: NOW });
    assert.deepEqual(snapshotStatus(snapshot(first), { ...facts, now: NOW + 60_000 }), first);
  });
});

describe('mayUnlock()', () => {
  const ready = content({ ...taken, readyToUse: true });
  const cases: [name: string, VirtualMachineSnapshot, VirtualMachineSnapshotContent | undefined, expected: boolean][] =
    [
      ['in progress', snapshot({ phase: 'InProgress' }), content({}), false],
      ['succeeded', snapshot({ phase: 'Succeeded' }), ready, true],
      [
        'failed, its content still there: the guest is not thawed yet',
        snapshot({ phase: 'Failed' }),
        content({}),
        false,
      ],
      ['failed, its content gone', snapshot({ phase: 'Failed' }), undefined, true],
      ['deleted on its way', snapshot({ phase: 'InProgress' }, { deleting: true }), content({}), false],
      [
        'deleted, what it kept is ready',
        snapshot({}, { deleting: true, spec: { deletionPolicy: 'Retain' } }),
        ready,
        true,
      ],
    ];
  for (const [name, of, kept, expected] of cases)
    it(`${expected ? 'yes' : 'no'}: ${name}`, () => assert.equal(mayUnlock(of, kept, NOW), expected));
  it('is asked of what terminates alone', () =>
    assert.equal(isTerminating(snapshot({ phase: 'InProgress' }), NOW), false));
});
