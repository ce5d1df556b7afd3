/** Rules about machine type, firmware, features and encryption. */
import type { Firmware, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { brokenHypervDependencies } from '../../../rules/machine-defaults/feature-defaults.ts';
import { type Cause, invalidValue, requiredValue } from './causes.ts';
import { validateLaunchSecurity } from './validate-launch-security.ts';
import { gateMissing, validateSerial } from './validate-resources.ts';
import { validateImagePath } from './validate-volumes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

export function validateMachine(path: string, spec: Spec, config: ClusterConfig): Cause[] {
  return [
    ...validateMachineType(path, spec, config),
    ...validateSerial(`${path}.domain.firmware.serial`, spec.domain.firmware?.serial),
    ...validateFirmware(`${path}.domain.firmware`, spec.domain.firmware),
    ...validateSecureBoot(path, spec),
    ...validateAcpiTables(path, spec),
    ...validateRebootPolicy(path, spec, config),
    ...validateLaunchSecurity(path, spec, config),
  ];
}

/**
 * Hyper-V features that lack what they need, or are listed although all are passed through. Only instances are held to
 * this: the defaults add what was left out.
 */
export function validateHyperv(path: string, spec: Spec): Cause[] {
  const { hyperv, hypervPassthrough } = spec.domain.features ?? {};
  const causes = brokenHypervDependencies(hyperv).map(([feature, need]) => {
    const field = `${path}.domain.features.hyperv.${feature}`;
    return invalidValue(field, `'${field}' requires '${path}.domain.features.hyperv.${need}', which was disabled.`);
  });
  if (hyperv !== undefined && hypervPassthrough !== undefined) {
    const text =
      'Cannot explicitly set hyperV features if HypervPassthrough is being used. Please use either HyperV or HypervPassthrough.';
    causes.push(invalidValue(`${path}.domain.features.hyperv`, text));
  }
  return causes;
}

/** Shell patterns of one path segment: `*` and `?` are all that the settings use. */
export function matchesPattern(pattern: string, text: string): boolean {
  const source = [...pattern].map((c) =>
    c === '*' ? '[^/]*' : c === '?' ? '[^/]' : c.replace(/[\\^$.|+()[\]{}]/, '\\$&'),
  );
  return new RegExp(`^${source.join('')}$`).test(text);
}

function validateMachineType(path: string, spec: Spec, config: ClusterConfig): Cause[] {
  const type = spec.domain.machine?.type;
  if (!type) return [];
  const allowed = config.emulatedMachines(spec.architecture || config.defaultArchitecture);
  const field = `${path}.domain.machine.type`;
  return allowed.some((pattern) => matchesPattern(pattern, type))
    ? []
    : [invalidValue(field, `${field} is not supported: ${type} (allowed values: [${allowed.join(' ')}])`)];
}

const bootsSecurely = (firmware: Readonly<Firmware> | undefined): boolean =>
  firmware?.bootloader?.efi !== undefined && firmware.bootloader.efi.secureBoot !== false;

function validateSecureBoot(path: string, { domain: { firmware, features } }: Spec): Cause[] {
  const smm = features?.smm !== undefined && features.smm.enabled !== false;
  if (smm || !bootsSecurely(firmware)) return [];
  const field = `${path}.domain`;
  return [
    invalidValue(
      field,
      `${field} has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled: set features.smm, or secureBoot to false`,
    ),
  ];
}

/** What firmware says about how to boot. `path` is that of the firmware. */
export function validateFirmware(path: string, firmware: Readonly<Firmware> | undefined): Cause[] {
  const causes: Cause[] = [];
  const { bootloader, kernelBoot } = firmware ?? {};
  if (bootloader?.efi !== undefined && bootloader.bios !== undefined) {
    const field = `${path}.bootloader`;
    causes.push(invalidValue(field, `${field} has both EFI and BIOS configured, but they are mutually exclusive.`));
  }
  if (kernelBoot === undefined) return causes;
  const field = `${path}.kernelBoot`;
  const { container, kernelArgs } = kernelBoot;
  if (container === undefined) {
    if (kernelArgs) {
      causes.push(
        invalidValue(`${field}.kernelArgs`, 'kernel arguments cannot be provided without an external kernel'),
      );
    }
    return causes;
  }
  const at = `${field}.container`;
  if (!container.image) causes.push(requiredValue(`${at}.image`, `${at} must be defined with an image`));
  if (!container.kernelPath && !container.initrdPath) {
    causes.push(requiredValue(at, `${at} must be defined with at least one of the following: kernelPath, initrdPath`));
  }
  if (container.kernelPath) causes.push(...validateImagePath(`${at}.kernelPath`, container.kernelPath));
  if (container.initrdPath) causes.push(...validateImagePath(`${at}.initrdPath`, container.initrdPath));
  return causes;
}

function validateAcpiTables(path: string, spec: Spec): Cause[] {
  const acpi = spec.domain.firmware?.acpi;
  if (acpi === undefined) return [];
  const field = `${path}.domain.firmware.acpi`;
  if (!acpi.slicNameRef && !acpi.msdmNameRef) {
    return [invalidValue(field, 'ACPI was set but no SLIC nor MSDM volume reference was set')];
  }
  return (['slicNameRef', 'msdmNameRef'] as const).flatMap((member) => {
    const name = acpi[member];
    if (!name) return [];
    const volume = spec.volumes?.find((candidate) => candidate.name === name);
    if (volume === undefined) return [invalidValue(`${field}.${member}`, `${field} does not have a matching Volume.`)];
    return volume.secret !== undefined
      ? []
      : [invalidValue(`${field}.${member}`, `${field} refers to Volume of unsupported type.`)];
  });
}

function validateRebootPolicy(path: string, spec: Spec, config: ClusterConfig): Cause[] {
  return spec.domain.rebootPolicy !== undefined && !config.isEnabled('RebootPolicy')
    ? [invalidValue(`${path}.domain.rebootPolicy`, gateMissing('RebootPolicy'))]
    : [];
}
