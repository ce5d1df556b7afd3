import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DomainSpec, VirtualMachineInstance, VirtualMachineInstancePreset } from '../../kinds/kubevirt.ts';
import { convertPreset } from './convert-preset.ts';
import { applyInstancetype } from './expand.ts';
import { applyPresets } from './preset.ts';

const preset = (name: string, domain: Partial<DomainSpec>, labels = { os: 'win' }): VirtualMachineInstancePreset => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstancePreset',
  metadata: { name, namespace: 'here' },
  spec: { selector: { matchLabels: labels }, domain: { devices: {}, ...domain } },
});
const instance = (domain: Partial<DomainSpec> = {}, annotations?: Record<string, string>): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'vmi', labels: { os: 'win' }, ...(annotations && { annotations }) },
  spec: { domain: { devices: {}, ...domain } },
});
const ANNOTATION = 'virtualmachinepreset.kubevirt.io/p';

describe('applyPresets()', () => {
  it('fills each member that the instance leaves open, and leaves its mark', () => {
    const vmi = instance();
    const given: Partial<DomainSpec> = {
      resources: { requests: { memory: '64M' } },
      cpu: { cores: 2 },
      firmware: { uuid: 'u' },
      clock: { utc: {}, timer: { hpet: { present: false } } },
      features: { acpi: {} },
      ioThreadsPolicy: 'shared',
      devices: { watchdog: { name: 'w' }, rng: {} },
    };
    assert.deepEqual(applyPresets(vmi, [preset('p', given)]), { applied: ['p'], warnings: [] });
    assert.deepEqual(vmi.metadata.annotations, { [ANNOTATION]: 'kubevirt.io/v1' });
    const { devices, ...rest } = vmi.spec.domain;
    const { devices: _, ...expected } = given;
    assert.deepEqual(rest, expected);
    assert.deepEqual(devices, { watchdog: { name: 'w' } }, 'of the devices only the watchdog');
  });
  it('keeps what the instance says, and counts as applied when another member holds', () => {
    const vmi = instance({ cpu: { cores: 4 } });
    const outcome = applyPresets(vmi, [preset('p', { cpu: { cores: 2 }, ioThreadsPolicy: 'auto' })]);
    assert.deepEqual(outcome.applied, ['p']);
    assert.equal(outcome.warnings.length, 1);
    assert.match(outcome.warnings[0]!, /^Some settings were not applied .* 'p': spec.cpu: /);
    assert.deepEqual(vmi.spec.domain.cpu, { cores: 4 });
    assert.equal(vmi.spec.domain.ioThreadsPolicy, 'auto');
  });
  it('leaves no mark when nothing of it holds', () => {
    const vmi = instance({ cpu: { cores: 4 } });
    const outcome = applyPresets(vmi, [preset('p', { cpu: { cores: 2 } })]);
    assert.deepEqual(outcome.applied, []);
    assert.match(outcome.warnings[0]!, /^Unable to apply/);
    assert.equal(vmi.metadata.annotations, undefined);
  });
  it('compares amounts, not their text', () => {
    const vmi = instance({ resources: { requests: { memory: '1Gi' } } });
    const outcome = applyPresets(vmi, [preset('p', { resources: { requests: { memory: '1024Mi' } } })]);
    assert.deepEqual(outcome, { applied: ['p'], warnings: [] });
  });
  it('refuses presets that contradict each other, and applies none', () => {
    const vmi = instance();
    const outcome = applyPresets(vmi, [preset('a', { cpu: { cores: 1 } }), preset('b', { cpu: { cores: 2 } })]);
    assert.match(
      outcome.error!,
      /^VirtualMachinePresets cannot be applied due to conflicts: presets 'b' and 'a' conflict/,
    );
    assert.deepEqual(vmi, instance());
  });
  it('refuses on a selector that cannot be read, whether or not it meant the instance', () => {
    const vmi = instance();
    const outcome = applyPresets(vmi, [preset('a', { cpu: { cores: 1 } }), preset('b', {}, { os: '!' })]);
    assert.match(outcome.error!, /Invalid value: "!"/);
    assert.deepEqual(vmi, instance());
  });
  it('applies all that agree, each with its mark', () => {
    const vmi = instance();
    const memory = { resources: { requests: { memory: '64M' } } };
    const outcome = applyPresets(vmi, [preset('a', memory), preset('b', { cpu: { cores: 4 } }), preset('c', memory)]);
    assert.deepEqual(outcome, { applied: ['a', 'b', 'c'], warnings: [] });
    assert.equal(Object.keys(vmi.metadata.annotations!).length, 3);
    assert.deepEqual(vmi.spec.domain, { devices: {}, ...memory, cpu: { cores: 4 } });
  });
  it('passes by what it does not select and what opted out', () => {
    const other = instance();
    assert.deepEqual(applyPresets(other, [preset('p', { cpu: { cores: 2 } }, { os: 'lin' })]).applied, []);
    const excluded = instance({}, { 'virtualmachineinstancepresets.admission.kubevirt.io/exclude': 'true' });
    assert.deepEqual(applyPresets(excluded, [preset('p', { cpu: { cores: 2 } })]).applied, []);
    assert.equal(excluded.spec.domain.cpu, undefined);
  });
});

describe('convertPreset()', () => {
  it('splits amounts from preferences', () => {
    const { instancetype, preference, notes } = convertPreset(
      preset('p', {
        resources: { requests: { memory: '1024Mi' } },
        cpu: { sockets: 2, cores: 4, threads: 2, model: 'EPYC', features: [{ name: 'x' }] },
        firmware: { uuid: 'u', bootloader: { efi: { secureBoot: false } } },
        clock: { utc: {}, timer: { hpet: { present: false } } },
        features: { acpi: {}, hyperv: { relaxed: {} } },
        ioThreadsPolicy: 'shared',
        devices: { watchdog: { name: 'w' } },
      }),
    );
    assert.deepEqual(instancetype, {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineInstancetype',
      metadata: { name: 'p', namespace: 'here' },
      spec: { cpu: { guest: 16, model: 'EPYC' }, memory: { guest: '1Gi' }, ioThreadsPolicy: 'shared' },
    });
    assert.deepEqual(preference?.spec, {
      cpu: {
        preferredCPUTopology: 'spread',
        spreadOptions: { across: 'SocketsCoresThreads', ratio: 4 },
        preferredCPUFeatures: [{ name: 'x' }],
      },
      firmware: { preferredEfi: { secureBoot: false } },
      clock: { preferredClockOffset: { utc: {} }, preferredTimer: { hpet: { present: false } } },
      features: { preferredAcpi: {}, preferredHyperv: { relaxed: {} } },
    });
    assert.equal(notes.length, 3, notes.join('\n'));
  });
  const layouts: [sockets: number, cores: number, threads: number][] = [
    [1, 1, 1],
    [4, 1, 1],
    [1, 4, 1],
    [1, 1, 4],
    [2, 3, 1],
    [1, 3, 2],
    [2, 3, 2],
  ];
  for (const [sockets, cores, threads] of layouts)
    it(`gives back ${sockets} sockets of ${cores} cores with ${threads} threads`, () => {
      const given = { cpu: { sockets, cores, threads }, resources: { requests: { memory: '1Gi' } } };
      const { instancetype, preference } = convertPreset(preset('p', given));
      const result = applyInstancetype({
        instancetype: instancetype!.spec,
        preference: preference?.spec,
        spec: { domain: { devices: {} } },
      });
      assert.ok(result.ok);
      assert.deepEqual(result.spec.domain.cpu, { sockets, cores, threads });
    });
  it('makes no instance type without memory, and takes a processor request', () => {
    const none = convertPreset(preset('p', { cpu: { cores: 2 } }));
    assert.equal(none.instancetype, undefined);
    assert.match(none.notes[0]!, /requests no memory/);
    const request = convertPreset(preset('p', { resources: { requests: { memory: '1Gi', cpu: '1500m' } } }));
    assert.equal(request.instancetype?.spec.cpu.guest, 2);
    assert.equal(request.preference, undefined);
  });
  it('says which layout it cannot keep', () => {
    const { instancetype, notes } = convertPreset(
      preset('p', { cpu: { sockets: 2, cores: 2, threads: 3 }, resources: { requests: { memory: '1Gi' } } }),
    );
    assert.equal(instancetype?.spec.cpu.guest, 12);
    assert.match(notes[0]!, /^No topology gives/);
  });
});
