import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ssp } from '../../kinds/kinds.ts';
import { otherSsp, sspProblem } from './ssp-rules.ts';

const commonTemplates = { namespace: 'kubevirt' };
const ssp = (spec: object): Ssp => ({
  apiVersion: 'ssp.kubevirt.io/v1beta3',
  kind: 'SSP',
  metadata: { name: 'ssp', namespace: 'kubevirt' },
  spec: { commonTemplates, ...spec },
});

// S-745
for (const [spec, problem] of [
  [{}, undefined],
  [{ enableMultipleArchitectures: false }, undefined],
  [{ cluster: { workloadArchitectures: ['amd64'], controlPlaneArchitectures: ['s390x', 'arm64'] } }, undefined],
  [{ commonTemplates: { ...commonTemplates, dataImportCronTemplates: [{ metadata: { name: 'a' } }] } }, undefined],
  [
    { enableMultipleArchitectures: true },
    'cluster validation error: .spec.cluster needs to be non-nil, if multi-architecture is enabled',
  ],
  [
    { cluster: {} },
    'cluster validation error: at least one architecture needs to be defined, if multi-architecture is enabled',
  ],
  [
    { cluster: { workloadArchitectures: ['vax'] } },
    'cluster validation error: invalid workload architecture: unknown architecture: vax',
  ],
  [
    { cluster: { controlPlaneArchitectures: ['amd64', ''] } },
    'cluster validation error: invalid control plane architecture: unknown architecture: ',
  ],
  [
    { commonTemplates: { ...commonTemplates, dataImportCronTemplates: [{ metadata: {} }] } },
    'dataImportCronTemplates validation error: missing name in DataImportCronTemplate',
  ],
] as const)
  test(`sspProblem(${JSON.stringify(spec)})`, () => assert.equal(sspProblem(ssp(spec)), problem));

test('otherSsp() names the one that is there', () => {
  assert.equal(otherSsp([]), undefined);
  assert.equal(otherSsp([ssp({})]), 'creation failed, an SSP CR already exists in namespace kubevirt: ssp');
});
