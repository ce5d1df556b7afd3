/** Who every machine and snapshot is to its guest, and how that came to be: the rows of `coracle identity audit`. Pure. */

import type { ReadonlyContent, ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { IDENTITY_ORIGIN, IDENTITY_ORIGINS, type IdentityOrigin } from './decide-identity.ts';
import { canonicalUuid, legacyFirmwareUuid } from './firmware-identity.ts';
import { effectiveUuid, findSharedUuids, machineOfVmi, machineText, type SharedUuid } from './shared-uuids.ts';

export interface AuditInput {
  readonly vms: readonly ReadonlyVm[];
  readonly vmis: readonly ReadonlyVmi[];
  readonly snapshotContents: readonly ReadonlyContent[];
}

export interface AuditRow {
  readonly kind: 'VirtualMachine' | 'VirtualMachineInstance' | 'VirtualMachineSnapshot';
  readonly namespace: string;
  readonly name: string;
  /** Canonical. Of a snapshot: what a restore to the same machine brings back. */
  readonly uuid: string;
  readonly serial?: string;
  readonly origin: IdentityOrigin;
  /** False where nobody noted the origin and it is concluded from the object. */
  readonly noted: boolean;
  /** False where the UUID stands in no field: it is decided when it is needed. */
  readonly written: boolean;
  /** Other machines with this UUID, as `Kind namespace/name`. */
  readonly sharedWith: readonly string[];
}

/** All rows, sorted by namespace, name and kind. */
export function auditIdentities({ vms, vmis, snapshotContents }: AuditInput): AuditRow[] {
  const shared = new Map(findSharedUuids(vms, vmis).map((each) => [each.uuid, each]));
  const byName = new Map(vms.map((vm) => [`${vm.metadata.namespace}/${vm.metadata.name}`, vm]));
  const rows = [
    ...vms.map((vm) => machineRow(vm, shared)),
    ...vmis.map((vmi) => instanceRow(vmi, byName.get(`${vmi.metadata.namespace}/${machineOfVmi(vmi).name}`), shared)),
    ...snapshotContents.flatMap((content) => snapshotRow(content)),
  ];
  return rows.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

const sortKey = ({ namespace, name, kind }: AuditRow): string => `${namespace}/${name}/${kind}`;

function machineRow(vm: ReadonlyVm, shared: ReadonlyMap<string, SharedUuid>): AuditRow {
  const self = `VirtualMachine ${vm.metadata.namespace ?? ''}/${vm.metadata.name ?? ''}`;
  return {
    kind: 'VirtualMachine',
    namespace: vm.metadata.namespace ?? '',
    name: vm.metadata.name ?? '',
    ...identityOf(vm),
    sharedWith: othersOf(self, shared.get(effectiveUuid(vm))),
  };
}

function instanceRow(vmi: ReadonlyVmi, vm: ReadonlyVm | undefined, shared: ReadonlyMap<string, SharedUuid>): AuditRow {
  const machine = machineOfVmi(vmi);
  const { firmware } = vmi.spec.domain;
  const uuid = canonicalUuid(firmware?.uuid ?? '');
  const owned = machine.kind === 'VirtualMachine';
  // An instance got what its machine said when it was started.
  const of = owned && vm && effectiveUuid(vm) === uuid ? identityOf(vm) : undefined;
  const { origin, noted } = of ?? originOf(vmi, firmware?.uuid, owned ? machine.name : undefined);
  return {
    kind: 'VirtualMachineInstance',
    namespace: vmi.metadata.namespace ?? '',
    name: vmi.metadata.name ?? '',
    uuid,
    ...(firmware?.serial && { serial: firmware.serial }),
    origin,
    noted,
    written: Boolean(firmware?.uuid),
    sharedWith: othersOf(machineText(machine), shared.get(uuid)),
  };
}

function snapshotRow({ metadata, spec }: ReadonlyContent): AuditRow[] {
  const { virtualMachine } = spec.source;
  if (!virtualMachine?.spec) return [];
  const vm = { ...virtualMachine, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' } as unknown as ReadonlyVm;
  return [
    {
      kind: 'VirtualMachineSnapshot',
      namespace: metadata.namespace ?? '',
      name: spec.virtualMachineSnapshotName ?? metadata.name ?? '',
      ...identityOf(vm),
      sharedWith: [],
    },
  ];
}

function identityOf(vm: ReadonlyVm): Pick<AuditRow, 'uuid' | 'serial' | 'origin' | 'noted' | 'written'> {
  const firmware = vm.spec?.template?.spec?.domain?.firmware;
  return {
    uuid: effectiveUuid(vm),
    ...(firmware?.serial && { serial: firmware.serial }),
    ...originOf(vm, firmware?.uuid, vm.metadata?.name ?? ''),
    written: Boolean(firmware?.uuid),
  };
}

const RESTORED = 'restore.kubevirt.io/lastRestoreUID';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** How a UUID came to be: as noted, else concluded from what can be seen. `vmName`: a legacy UUID follows from it. */
function originOf(
  { metadata }: Pick<ReadonlyVm, 'metadata'>,
  uuid: string | undefined,
  vmName: string | undefined,
): Pick<AuditRow, 'origin' | 'noted'> {
  const annotations = metadata?.annotations ?? {};
  const said = IDENTITY_ORIGINS.find((each) => each === annotations[IDENTITY_ORIGIN]);
  if (!uuid) return { origin: 'Legacy', noted: false };
  if (said) return { origin: said, noted: true };
  return { origin: concluded(uuid, vmName, annotations), noted: false };
}

function concluded(
  uuid: string,
  vmName: string | undefined,
  annotations: Readonly<Record<string, string>>,
): IdentityOrigin {
  const canonical = canonicalUuid(uuid);
  if (vmName !== undefined && canonical === legacyFirmwareUuid(vmName)) return 'Legacy';
  if (annotations[RESTORED] !== undefined) return 'Restored';
  if (annotations[LAST_APPLIED]?.includes(uuid)) return 'Given';
  // Version 4 is what is made at creation; anything else a user has written.
  return canonical[14] === '4' ? 'Generated' : 'Given';
}

const othersOf = (self: string, shared: SharedUuid | undefined): readonly string[] =>
  (shared?.machines ?? []).map(machineText).filter((text) => text !== self);
