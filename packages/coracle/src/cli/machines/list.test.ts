import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineTable } from './list.ts';
import { type MachineRow, spanText } from './machine-row.ts';

const row = (name: string, state: string, reason = ''): MachineRow => ({
  namespace: 'default',
  name,
  state,
  address: '',
  node: '',
  runsSince: undefined,
  createdAt: Number.NaN,
  reason,
});

test('states have colours where they are wanted, and take no more room for it', () => {
  const rows = [row('a', 'Running'), row('b', 'ErrImagePull', 'no such image'), row('c', 'Stopped')];
  const plain = machineTable(rows, { withNamespace: false, colour: false });
  assert.equal(
    plain,
    [
      'NAME  STATE         ADDRESS  NODE  UP  AGE  WHY',
      'a     Running       -        -     -',
      'b     ErrImagePull  -        -     -        no such image',
      'c     Stopped       -        -     -',
    ].join('\n'),
  );
  const painted = machineTable(rows, { withNamespace: false, colour: true });
  assert.ok(painted.includes('\x1b[32mRunning\x1b[0m       -'));
  assert.ok(painted.includes('\x1b[31mErrImagePull\x1b[0m'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the marks themselves
  assert.equal(painted.replace(/\x1b\[\d+m/g, ''), plain);
});

test('space on the disk is a column where it was asked for', () => {
  const rows = [
    { ...row('a', 'Running'), diskBytes: 3 * 1024 * 1024 },
    { ...row('b', 'Stopped'), diskBytes: 0 },
  ];
  assert.equal(
    machineTable(rows, { withNamespace: false, colour: false }),
    [
      'NAME  STATE    ADDRESS  NODE  UP  AGE  DISK',
      'a     Running  -        -     -        3.0 MiB',
      'b     Stopped  -        -     -        0 B',
    ].join('\n'),
  );
});

test('spans are written as kubectl writes them', () => {
  const second = 1000;
  for (const [ms, text] of [
    [0, '0s'],
    [119 * second, '119s'],
    [200 * second, '3m20s'],
    [300 * second, '5m'],
    [3600 * second, '60m'],
    [5 * 3600 * second, '5h'],
    [72 * 3600 * second, '3d'],
    [Number.NaN, ''],
  ] as const)
    assert.equal(spanText(ms), text);
});
