import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FeatureGate, isGateEnabled } from './feature-gates.ts';

describe('isGateEnabled()', () => {
  const cases: [gate: FeatureGate, enabled: string[], disabled: string[], expected: boolean][] = [
    ['HostDisk', [], [], false],
    ['HostDisk', ['HostDisk'], [], true],
    ['HostDisk', ['HostDisk'], ['HostDisk'], false],
    ['Snapshot', [], [], true],
    ['Snapshot', [], ['Snapshot'], false],
    ['LiveMigration', [], ['LiveMigration'], true],
    ['HotplugVolumes', [], [], false],
    ['HotplugVolumes', ['HotplugVolumes'], [], true],
  ];
  for (const [gate, enabled, disabled, expected] of cases) {
    it(`${gate} is ${expected ? 'on' : 'off'} with [${enabled}] enabled and [${disabled}] disabled`, () =>
      assert.equal(isGateEnabled(gate, { enabled, disabled }), expected));
  }
});
