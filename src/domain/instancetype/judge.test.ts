import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PreferenceSpec } from '../../api/kinds/kubevirt/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { type JudgeInput, judgeTemplate } from './judge.ts';

const config = clusterConfigOf(undefined);
const instancetype = { cpu: { guest: 3 }, memory: { guest: '1Gi' } };
const spread: PreferenceSpec = { cpu: { preferredCPUTopology: 'spread' } };
const demanding: PreferenceSpec = { requirements: { memory: { guest: '2Gi' } } };
const causes = (input: Omit<JudgeInput, 'config' | 'spec'> & Partial<Pick<JudgeInput, 'spec'>>): string[] => {
  const judgement = judgeTemplate({ spec: {}, ...input, config });
  return judgement.ok ? [] : judgement.causes.map(({ type, field }) => `${type} ${field}`);
};
const conflicting = { domain: { devices: {}, memory: { guest: '1Gi' }, cpu: { cores: 1 } } };

describe('judgeTemplate()', () => {
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
    const judgement = judgeTemplate({ instancetype, spec: {}, config });
    assert.ok(judgement.ok);
    assert.deepEqual(judgement.spec.domain.cpu, { cores: 1, sockets: 3, threads: 1 });
    assert.equal(judgement.spec.architecture, 'amd64');
  });
});
