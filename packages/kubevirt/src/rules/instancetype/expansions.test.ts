/**
 * Whole expansions, field by field, and whole refusals. What is expected does not come from this code: it was computed by
 * a second, independent reading of upstream's rules, and only upstream's source is a reason to change it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { InstancetypeSpec, PreferenceSpec, VirtualMachine } from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { conflictsMessage } from './conflicts.ts';
import { expandVirtualMachine } from './expand.ts';

interface Expected {
  readonly name: string;
  readonly instancetype: string | null;
  readonly preference: string | null;
  readonly template: VirtualMachine['spec']['template'];
  readonly expanded?: unknown;
  readonly refused?: string;
}
interface Fixture {
  readonly instancetypes: Readonly<Record<string, InstancetypeSpec>>;
  readonly preferences: Readonly<Record<string, PreferenceSpec>>;
  readonly cases: readonly Expected[];
}

const FIXTURE = new URL('../../../../../test/fixtures/instancetypes/expansions.json', import.meta.url);
const { instancetypes, preferences, cases } = JSON.parse(readFileSync(FIXTURE, 'utf8')) as Fixture;

// S-241: Expansions are upstream's, field by field, and so are refusals.
// Compat KubeVirt's API, P1, yes: expansions and conflicts, field by field
describe('an expansion, read twice', () => {
  for (const { name, template, expanded, refused, ...layers } of cases) {
    it(name, () => {
      const { instancetype, preference } = layers;
      const vm: VirtualMachine = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name: 'vm', namespace: 'default' },
        spec: {
          runStrategy: 'Halted',
          ...(instancetype !== null && { instancetype: { name: instancetype } }),
          ...(preference !== null && { preference: { name: preference } }),
          template,
        },
      };
      const result = expandVirtualMachine(
        vm,
        {
          ...(instancetype !== null && { instancetype: instancetypes[instancetype] }),
          ...(preference !== null && { preference: preferences[preference] }),
        },
        clusterConfigOf(undefined),
      );
      assert.equal(result.ok ? undefined : conflictsMessage(result.conflicts), refused);
      if (result.ok) assert.deepEqual(result.vm.spec, { runStrategy: 'Halted', template: expanded });
    });
  }
});
