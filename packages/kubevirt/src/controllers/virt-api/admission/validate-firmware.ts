/** Rules about machine type, firmware, features and encryption. */
import type { Firmware, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { brokenHypervDependencies } from '../../../rules/machine-defaults/feature-defaults.ts';
import type { Findings } from './causes.ts';
import { validateLaunchSecurity } from './validate-launch-security.ts';
import { validateSerial } from './validate-resources.ts';
import { validateImagePath } from './validate-volumes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

export function validateMachine(found: Findings, spec: Spec, config: ClusterConfig): void {
  const domain = found.at('.domain');
  validateMachineType(domain.at('.machine.type'), spec, config);
  validateSerial(domain.at('.firmware.serial'), spec.domain.firmware?.serial);
  validateFirmware(domain.at('.firmware'), spec.domain.firmware);
  validateSecureBoot(domain, spec);
  validateAcpiTables(domain.at('.firmware.acpi'), spec);
  if (spec.domain.rebootPolicy !== undefined) domain.gated('.rebootPolicy', 'RebootPolicy', config);
  validateLaunchSecurity(found, spec, config);
}

/**
 * Hyper-V features that lack what they need, or are listed although all are passed through. Only instances are held to
 * this: the defaults add what was left out.
 */
export function validateHyperv(found: Findings, spec: Spec): void {
  const { hyperv, hypervPassthrough } = spec.domain.features ?? {};
  const at = found.at('.domain.features.hyperv');
  for (const [feature, need] of brokenHypervDependencies(hyperv))
    at.invalid(`.${feature}`, `'${at.path}.${feature}' requires '${at.path}.${need}', which was disabled.`);
  if (hyperv !== undefined && hypervPassthrough !== undefined) {
    const text = 'Cannot explicitly set hyperV features if HypervPassthrough is being used.';
    at.invalid('', `${text} Please use either HyperV or HypervPassthrough.`);
  }
}

/** Shell patterns of one path segment: `*` and `?` are all that the settings use. */
export function matchesPattern(pattern: string, text: string): boolean {
  const source = [...pattern].map((c) =>
    c === '*' ? '[^/]*' : c === '?' ? '[^/]' : c.replace(/[\\^$.|+()[\]{}]/, '\\$&'),
  );
  return new RegExp(`^${source.join('')}$`).test(text);
}

function validateMachineType(
  found: Findings,
  { domain: { machine }, architecture }: Spec,
  config: ClusterConfig,
): void {
  const type = machine?.type;
  if (!type) return;
  const allowed = config.emulatedMachines(architecture || config.defaultArchitecture);
  if (!allowed.some((pattern) => matchesPattern(pattern, type)))
    found.invalid('', `${found.path} is not supported: ${type} (allowed values: [${allowed.join(' ')}])`);
}

const bootsSecurely = (firmware: Readonly<Firmware> | undefined): boolean =>
  firmware?.bootloader?.efi !== undefined && firmware.bootloader.efi.secureBoot !== false;

function validateSecureBoot(found: Findings, { domain: { firmware, features } }: Spec): void {
  const smm = features?.smm !== undefined && features.smm.enabled !== false;
  if (smm || !bootsSecurely(firmware)) return;
  const text = 'SecureBoot requires SMM, which is currently disabled: set features.smm, or secureBoot to false';
  found.invalid('', `${found.path} has EFI SecureBoot enabled. ${text}`);
}

/** What firmware says about how to boot. */
export function validateFirmware(found: Findings, firmware: Readonly<Firmware> | undefined): void {
  const { bootloader, kernelBoot } = firmware ?? {};
  if (bootloader?.efi !== undefined && bootloader.bios !== undefined) {
    const text = 'has both EFI and BIOS configured, but they are mutually exclusive.';
    found.invalid('.bootloader', `${found.path}.bootloader ${text}`);
  }
  const { container, kernelArgs } = kernelBoot ?? {};
  if (container === undefined) {
    if (kernelArgs)
      found.invalid('.kernelBoot.kernelArgs', 'kernel arguments cannot be provided without an external kernel');
    return;
  }
  const at = found.at('.kernelBoot.container');
  const { image, kernelPath, initrdPath } = container;
  if (!image) at.required('.image', `${at.path} must be defined with an image`);
  if (!kernelPath && !initrdPath)
    at.required('', `${at.path} must be defined with at least one of the following: kernelPath, initrdPath`);
  if (kernelPath) validateImagePath(at.at('.kernelPath'), kernelPath);
  if (initrdPath) validateImagePath(at.at('.initrdPath'), initrdPath);
}

function validateAcpiTables(found: Findings, { domain: { firmware }, volumes }: Spec): void {
  const acpi = firmware?.acpi;
  if (acpi === undefined) return;
  if (!acpi.slicNameRef && !acpi.msdmNameRef) {
    found.invalid('', 'ACPI was set but no SLIC nor MSDM volume reference was set');
    return;
  }
  for (const member of ['slicNameRef', 'msdmNameRef'] as const) {
    if (!acpi[member]) continue;
    const volume = volumes?.find(({ name }) => name === acpi[member]);
    if (volume === undefined) found.invalid(`.${member}`, `${found.path} does not have a matching Volume.`);
    else if (volume.secret === undefined)
      found.invalid(`.${member}`, `${found.path} refers to Volume of unsupported type.`);
  }
}
