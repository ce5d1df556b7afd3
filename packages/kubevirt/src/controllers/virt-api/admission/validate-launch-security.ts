/** Rules about encrypted guests (kubevirt pkg/virt-api/webhooks/amd64). */
import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import type { Findings } from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const TYPES = ['sev', 'snp', 'tdx'] as const;

/** Exactly one way of encryption, with its gate, and nothing that it cannot do. Asked of amd64 guests only. */
export function validateLaunchSecurity(found: Findings, spec: Spec, config: ClusterConfig): void {
  const { launchSecurity, firmware, devices, features } = spec.domain;
  const architecture = spec.architecture || config.defaultArchitecture;
  if (launchSecurity === undefined || architecture !== 'amd64') return;
  const [type, ...more] = TYPES.filter((each) => launchSecurity[each] !== undefined);
  if (type === undefined || more.length > 0) {
    found.forbidden('.launchSecurity', 'One and only one launchSecurity type can be set');
    return;
  }
  const gate = type === 'tdx' ? 'WorkloadEncryptionTDX' : 'WorkloadEncryptionSEV';
  if (!config.isEnabled(gate)) {
    found.gated('.launchSecurity', gate, config);
    return;
  }

  const refuse = (text: string, member = ''): void => found.invalid(`.launchSecurity${member}`, text);
  const name = type.toUpperCase();
  const smm = features?.smm !== undefined && features.smm.enabled !== false;
  if (type === 'tdx' && smm) refuse('TDX does not work along with SMM');
  const efi = firmware?.bootloader?.efi;
  if (efi === undefined) refuse(`${name} requires OVMF (UEFI)`);
  else {
    if (type !== 'tdx' && efi.secureBoot !== false) refuse(`${name} does not work along with SecureBoot`);
    if (type !== 'sev' && efi.persistent) refuse(`${name} does not work along with Persistent EFI variables`);
  }
  if (launchSecurity.sev?.attestation !== undefined && spec.startStrategy !== 'Paused')
    refuse("SEV attestation requires VMI StartStrategy 'Paused'");
  const { snp } = launchSecurity;
  if (snp?.policy && !isUint64(snp.policy)) refuse(`${snp.policy} is not a valid SEV-SNP Policy Config`);
  const identity = [snp?.authorKey, snp?.idBlock, snp?.idAuth].filter(Boolean).length;
  if (identity !== 0 && identity !== 3)
    refuse('AuthorKey, IdBlock, and IdAuth must all be set together for guest identity attestation', '.snp');
  if (snp?.kernelHashes && firmware?.kernelBoot?.container === undefined) {
    const text = 'KernelHashes requires direct kernel boot configuration (spec.domain.firmware.kernelBoot)';
    refuse(text, '.snp.kernelHashes');
  }
  for (const { name: nic, bootOrder } of devices.interfaces ?? [])
    if (bootOrder !== undefined) refuse(`${name} does not work with bootable NICs: ${nic}`);
}

const isUint64 = (text: string): boolean =>
  text.length <= 66 &&
  /^(0[xX][0-9a-fA-F]+|0[oO]?[0-7]*|0[bB][01]+|[1-9][0-9]*)$/.test(text) &&
  BigInt(numeral(text)) < 2n ** 64n;

/** Octal may be written with a bare zero. */
const numeral = (text: string): string => (/^0[0-7]+$/.test(text) ? `0o${text.slice(1)}` : text);
