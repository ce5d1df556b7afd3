import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTime } from '../../../../apimachinery/src/meta/object.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { findPreciousMachines, type PreciousInput } from './precious-machines.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const DAY = 86_400_000;
const daysAgo = (days: number): string => formatTime(NOW - days * DAY);
const LABEL = 'kubevirt.io/vm-delete-protection';

const vm = (name: string, metadata: object = {}, volumes: readonly object[] = []): VirtualMachine =>
  ({
    metadata: { name, namespace: 'shop', creationTimestamp: daysAgo(1), ...metadata },
    spec: { template: { spec: { domain: { devices: {} }, volumes } } },
  }) as unknown as VirtualMachine;
const of = (name: string, source: string, more: object = {}, kind = 'VirtualMachine') => ({
  metadata: { name, namespace: 'shop' },
  spec: { source: { kind, name: source } },
  ...more,
});
const vmi = (name: string, phase: string, days: number) => ({
  metadata: { name, namespace: 'shop', creationTimestamp: daysAgo(days + 1) },
  status: { phase, phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp: daysAgo(days) }] },
});
const find = (input: Record<string, readonly unknown[]>) =>
  findPreciousMachines({
    vms: [],
    vmis: [],
    snapshots: [],
    backups: [],
    trackers: [],
    ...input,
    now: NOW,
  } as unknown as PreciousInput);

// S-758: `coracle protect audit` lists the unprotected machines that have snapshots, backups or claims, run for long or
//   are old, with the reasons and a command that protects each.
test('findPreciousMachines() says of each sign what it saw', () => {
  const claim = { name: 'disk', persistentVolumeClaim: { claimName: 'db-data' } };
  const cases: readonly (readonly [what: string, input: Record<string, readonly unknown[]>, messages: string[]])[] = [
    ['nothing', { vms: [vm('db', {}, [{ name: 'root', containerDisk: { image: 'i' } }])] }, []],
    ['a snapshot', { vms: [vm('db')], snapshots: [of('s1', 'db')] }, ['has snapshots s1']],
    [
      'many snapshots',
      { vms: [vm('db')], snapshots: ['a', 'b', 'c', 'd', 'e'].map((name) => of(name, 'db')) },
      ['has snapshots a, b, c and 2 more'],
    ],
    ['a snapshot that failed', { vms: [vm('db')], snapshots: [of('s', 'db', { status: { phase: 'Failed' } })] }, []],
    ['one of another machine', { vms: [vm('db')], snapshots: [of('s', 'web')] }, []],
    ['one of no machine', { vms: [vm('db')], snapshots: [of('s', 'db', {}, 'Other')] }, []],
    ['a backup', { vms: [vm('db')], backups: [of('b', 'db')] }, ['is backed up b']],
    [
      'a backup by a tracker',
      { vms: [vm('db')], backups: [of('b', 't', {}, 'VirtualMachineBackupTracker')], trackers: [of('t', 'db')] },
      ['is backed up t'],
    ],
    ['a claim', { vms: [vm('db', {}, [claim])] }, ['has claims db-data']],
    ['a DataVolume', { vms: [vm('db', {}, [{ name: 'd', dataVolume: { name: 'dv' } }])] }, ['has claims dv']],
    ['a memory dump', { vms: [vm('db', {}, [{ name: 'm', memoryDump: { claimName: 'dump' } }])] }, []],
    ['a guest of a week', { vms: [vm('db')], vmis: [vmi('db', 'Running', 8)] }, ['has run for 8d']],
    ['a guest of a day', { vms: [vm('db')], vmis: [vmi('db', 'Running', 1)] }, []],
    ['one that has ended', { vms: [vm('db')], vmis: [vmi('db', 'Succeeded', 8)] }, []],
    ['an old machine', { vms: [vm('db', { creationTimestamp: daysAgo(40) })] }, ['was made 40d ago']],
  ];
  for (const [what, input, messages] of cases)
    assert.deepEqual(
      find(input).flatMap(({ reasons }) => reasons.map(({ message }) => message)),
      messages,
      what,
    );
});

// S-758
test('findPreciousMachines() leaves out what is protected or going, and gives the command for the rest', () => {
  const old = { creationTimestamp: daysAgo(40) };
  const rows = find({
    vms: [
      vm('web', { ...old, labels: { [LABEL]: 'TRUE' } }),
      vm('kept', { ...old, labels: { [LABEL]: 'True' } }),
      vm('going', { ...old, deletionTimestamp: daysAgo(0) }),
      vm('db', old),
      vm('z', { ...old, namespace: 'a' }),
    ],
  });
  assert.deepEqual(
    rows.map(({ namespace, name, command }) => [namespace, name, command]),
    [
      ['a', 'z', `kubectl label vm z -n a ${LABEL}=true`],
      ['shop', 'db', `kubectl label vm db -n shop ${LABEL}=true`],
      ['shop', 'web', `kubectl label vm web -n shop ${LABEL}=true --overwrite`],
    ],
  );
});
