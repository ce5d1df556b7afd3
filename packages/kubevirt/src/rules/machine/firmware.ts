import { hasPersistentEfi } from '../backend-storage/backend-storage.ts';
import { uuidV5 } from '../identity/firmware-identity.ts';
import { RESUME_FROM } from '../memory-state/resume-request.ts';
import { type MachinePlan, type PlanContext, PlanError, plainText } from './machine-plan.ts';

/** QEMU takes no argument longer than 128 KiB; the longest kernel command line is far below this. */
const MAX_KERNEL_ARGS = 64 * 1024;
/** SMBIOS has no bound; this one keeps its tables below the 64 KiB that old entry points can describe. */
const MAX_SMBIOS_TEXT = 8 * 1024;
const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

/** Identity (SMBIOS), firmware and direct kernel boot. */
export function configureFirmware({ vmi, facts, smbios }: PlanContext, plan: MachinePlan): void {
  const { firmware, chassis } = vmi.spec.domain;
  if (!UUID.test(plan.uuid)) throw new PlanError(`firmware uuid ${JSON.stringify(plan.uuid)} is not a UUID`);
  plan.uuid = plan.uuid.toLowerCase();
  // The same at each boot: only a guest that goes on from a saved state has been at this point before.
  if (facts.devices.includes('vmgenid') && vmi.spec.domain.features?.acpi?.enabled !== false)
    plan.generationId = uuidV5(plan.uuid, vmi.metadata.annotations?.[RESUME_FROM] ?? '');
  const system: [string, string | undefined][] = [
    ['manufacturer', smbios.manufacturer],
    ['product', smbios.product],
    ['version', smbios.version],
    ['serial', firmware?.serial],
    ['uuid', plan.uuid],
    ['sku', smbios.sku],
    ['family', smbios.family],
  ];
  plan.smbios.push({ type: 1, fields: present('firmware', system) });
  if (chassis) {
    const fields = present('chassis', [
      ['manufacturer', chassis.manufacturer],
      ['version', chassis.version],
      ['serial', chassis.serial],
      ['asset', chassis.asset],
      ['sku', chassis.sku],
    ]);
    if (fields.length > 0) plan.smbios.push({ type: 3, fields });
  }

  const { bootloader, kernelBoot } = firmware ?? {};
  if (bootloader?.efi) {
    if (facts.efi) {
      plan.firmware = { kind: 'efi', ...facts.efi, ...(hasPersistentEfi(vmi.spec) && { persistent: true }) };
      if (bootloader.efi.secureBoot !== false)
        plan.unsupported.push('secure boot is not offered by this node; the guest boots by UEFI without it');
    } else plan.unsupported.push('this node has no UEFI firmware (install OVMF); the guest boots by BIOS');
  }
  if (bootloader?.bios?.useSerial) plan.machine.options['graphics'] = 'off';

  const container = kernelBoot?.container;
  if (container) {
    plan.kernelBoot = {
      kernel: container.kernelPath !== undefined,
      initrd: container.initrdPath !== undefined,
      ...(kernelBoot?.kernelArgs !== undefined && {
        args: plainText('firmware.kernelBoot.kernelArgs', kernelBoot.kernelArgs, MAX_KERNEL_ARGS),
      }),
    };
  }
}

const present = (section: string, fields: readonly [string, string | undefined][]): [string, string][] =>
  fields.flatMap(([name, text]): [string, string][] =>
    text ? [[name, plainText(`${section}.${name}`, text, MAX_SMBIOS_TEXT)]] : [],
  );
