import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PreferenceSpec } from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { expandTemplate, type TemplateInput } from './expand-template.ts';

const config = clusterConfigOf(undefined);
const instancetype = { cpu: { guest: 3 }, memory: { guest: '1Gi' } };
const spread: PreferenceSpec = { cpu: { preferredCPUTopology: 'spread' } };
const demanding: PreferenceSpec = { requirements: { memory: { guest: '2Gi' } } };
const causes = (input: Omit<TemplateInput, 'config' | 'spec'> & Partial<Pick<TemplateInput, 'spec'>>): string[] => {
  const expanded = expandTemplate({ spec: {}, ...input, config });
  return expanded.ok ? [] : expanded.causes.map(({ type, field }) => `${type} ${field}`);
};
const conflicting = { domain: { devices: {}, memory: { guest: '1Gi' }, cpu: { cores: 1 } } };

describe('expandTemplate()', () => {
  const cases: [name: string, Parameters<typeof causes>[0], string[]][] = [
    [
      'indivisible processors come before conflicts',
      { instancetype, preference: spread, spec: conflicting },
      ['FieldValueInvalid instancetype.spec.cpu.guest'],
    ],
    [
      'conflicts come before requirements',
      { instancetype, preference: demanding, spec: conflicting },
      [
        'FieldValueInvalid spec.template.spec.domain.cpu.cores',
        'FieldValueInvalid spec.template.spec.domain.memory.guest',
      ],
    ],
    ['requirements', { instancetype, preference: demanding }, ['FieldValueNotFound spec.instancetype']],
    ['one processor is there by default', { preference: { requirements: { cpu: { guest: 1 } } } }, []],
    [
      'requirements of a machine of its own',
      { preference: demanding },
      ['FieldValueNotFound spec.template.spec.domain.memory'],
    ],
    [
      'of a topology written in part only what is written counts',
      { preference: { requirements: { cpu: { guest: 1 } } }, spec: { domain: { devices: {}, cpu: { cores: 4 } } } },
      ['FieldValueNotFound spec.template.spec.domain.cpu.sockets'],
    ],
    ['nothing is asked of a missing instance type', { preference: demanding, instancetypeMissing: true }, []],
  ];
  for (const [name, input, expected] of cases) it(name, () => assert.deepEqual(causes(input), expected));
  it('gives the template as it would start', () => {
    const expanded = expandTemplate({ instancetype, spec: {}, config });
    assert.ok(expanded.ok);
    assert.deepEqual(expanded.spec.domain.cpu, { cores: 1, sockets: 3, threads: 1 });
    assert.equal(expanded.spec.architecture, 'amd64');
  });
});
