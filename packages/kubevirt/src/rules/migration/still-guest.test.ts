import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mustStandStill } from './still-guest.ts';

// S-282: An emulated guest comes whole, however often its memory is gone through.
test('mustStandStill(): an emulated guest of which writes could be overlooked', () => {
  const whole = { accelerator: 'tcg' } as const;
  const less = { ...whole, heldBackBytes: 131072 };
  const cases: [
    plan: Parameters<typeof mustStandStill>[0],
    qemuVersion: string,
    pluggedBytes: number,
    still: boolean,
  ][] = [
    [less, '7.2.22', 0, false],
    [less, '7.2.22', 1048576, true],
    [whole, '7.2.22', 0, true],
    [whole, '9.2.0', 0, true],
    [whole, '10.0.2', 0, false],
    [less, '10.0.2', 1048576, false],
    [{ accelerator: 'kvm' }, '7.2.22', 1048576, false],
  ];
  for (const [plan, qemuVersion, pluggedBytes, still] of cases)
    assert.equal(mustStandStill(plan, { qemuVersion }, pluggedBytes), still, `${qemuVersion} ${pluggedBytes}`);
});
