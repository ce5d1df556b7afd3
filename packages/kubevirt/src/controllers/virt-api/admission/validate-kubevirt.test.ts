import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReadonlyKubeVirt } from '../../../kinds/kubevirt.ts';
import { kubeVirtWarnings, validateKubeVirt } from './validate-kubevirt.ts';

const object = (spec: object): ReadonlyKubeVirt =>
  ({ apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: { name: 'kubevirt' }, spec }) as ReadonlyKubeVirt;

const SETTINGS: readonly (readonly [warned: string | undefined, spec: object])[] = [
  ['configuration.handlerConfiguration', { configuration: { handlerConfiguration: { restClient: {} } } }],
  ['configuration.tlsConfiguration', { configuration: { tlsConfiguration: { minTLSVersion: 'VersionTLS13' } } }],
  ['configuration.permittedHostDevices', { configuration: { permittedHostDevices: { usb: [] } } }],
  ['workloads', { workloads: { nodePlacement: {} } }],
  ['customizeComponents', { customizeComponents: { patches: [] } }],
  [undefined, { workloads: {}, customizeComponents: {}, configuration: { handlerConfiguration: {} } }],
  [undefined, { configuration: { defaultRuntimeClass: 'x', developerConfiguration: { memoryOvercommit: 150 } } }],
];
for (const [warned, spec] of SETTINGS) {
  // S-1544: Settings of the KubeVirt object that nobody here follows are answered with a warning that names the field.
  test(`kubeVirtWarnings() of ${JSON.stringify(spec)}`, () => {
    const warnings = kubeVirtWarnings(object(spec));
    assert.equal(warnings.length, warned === undefined ? 0 : 1);
    if (warned !== undefined) assert.ok(warnings[0]?.startsWith(`spec.${warned}: has no effect here; `));
  });
}

// S-1540
test('a factor on the overhead of launchers is a number of at least one', () => {
  const refused = (ratio: string) =>
    validateKubeVirt(object({ configuration: { additionalGuestMemoryOverheadRatio: ratio } })).map(
      ({ field }) => field,
    );
  for (const ratio of ['1', '1.567', '']) assert.deepEqual(refused(ratio), [], ratio);
  for (const ratio of ['0.9', 'much', '-1'])
    assert.deepEqual(refused(ratio), ['spec.configuration.additionalGuestMemoryOverheadRatio'], ratio);
});
