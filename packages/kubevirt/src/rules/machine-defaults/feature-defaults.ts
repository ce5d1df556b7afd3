/** Switches that are on unless somebody says otherwise, and Hyper-V features that need others. */
import type { FeatureHyperv, Features, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';

interface Switch {
  enabled?: boolean;
}

const turnOn = (feature: Switch | undefined): void => {
  if (feature !== undefined) feature.enabled ??= true;
};

/** Fills `enabled` of every feature and `present` of every timer that is written down. Changes `spec`. */
export function fillSwitches(spec: VirtualMachineInstanceSpec): void {
  spec.domain.features ??= {};
  // There is no ACPI on that architecture.
  if (spec.architecture === 's390x') spec.domain.features.acpi = { enabled: false, ...spec.domain.features.acpi };
  fillFeatures(spec.domain.features);
  for (const timer of Object.values(spec.domain.clock?.timer ?? {}) as ({ present?: boolean } | undefined)[])
    if (timer !== undefined) timer.present ??= true;
  for (const disk of spec.domain.devices.disks ?? []) turnOn(disk.blockSize?.matchVolume);
  for (const gpu of spec.domain.devices.gpus ?? []) turnOn(gpu.virtualGPUOptions?.display?.ramFB);
}

function fillFeatures(features: Features): void {
  features.acpi ??= {};
  for (const feature of [features.acpi, features.apic, features.smm, features.pvspinlock]) turnOn(feature);
  const { hyperv } = features;
  if (hyperv === undefined) return;
  for (const feature of Object.values(hyperv)) turnOn(feature as Switch | undefined);
  turnOn(hyperv.synictimer?.direct);
  turnOn(hyperv.tlbflush?.direct);
  turnOn(hyperv.tlbflush?.extended);
  if (hyperv.spinlocks?.enabled === true) hyperv.spinlocks.spinlocks ??= 4096;
}

type HypervFeature = Exclude<keyof FeatureHyperv, 'spinlocks' | 'vendorid'>;

/** Feature -> what it needs, in upstream's order; a need comes before what it needs in turn. */
const NEEDS: readonly (readonly [HypervFeature, HypervFeature])[] = [
  ['evmcs', 'vapic'],
  ['ipi', 'vpindex'],
  ['tlbflush', 'vpindex'],
  ['synictimer', 'synic'],
  ['synic', 'vpindex'],
];

/**
 * Adds the Hyper-V features that enabled ones need. One that was switched off stays off: validation reports it.
 * Changes `spec`.
 */
export function addHypervDependencies(spec: VirtualMachineInstanceSpec): void {
  const hyperv = spec.domain.features?.hyperv;
  if (hyperv === undefined) return;
  for (const [feature, need] of NEEDS)
    if (hyperv[feature]?.enabled === true && hyperv[need] === undefined) hyperv[need] = { enabled: true };
  if (hyperv.evmcs?.enabled !== true) return;
  spec.domain.cpu ??= {};
  const { cpu } = spec.domain;
  const vmx = cpu.features?.find(({ name }) => name === 'vmx');
  if (vmx === undefined) cpu.features = [...(cpu.features ?? []), { name: 'vmx', policy: 'require' }];
  // It cannot do without, whatever was asked for.
  else vmx.policy = 'require';
}

/** Hyper-V features that are on although one they need is off: `[feature, need]`. */
export function brokenHypervDependencies(
  hyperv: Readonly<FeatureHyperv> | undefined,
): [HypervFeature, HypervFeature][] {
  if (hyperv === undefined) return [];
  const isOn = (feature: HypervFeature): boolean => hyperv[feature] !== undefined && hyperv[feature].enabled !== false;
  return NEEDS.filter(([feature, need]) => isOn(feature) && !isOn(need)).map(([feature, need]) => [feature, need]);
}
