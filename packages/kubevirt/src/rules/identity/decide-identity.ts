/**
 * The one rule that says which firmware identity (SMBIOS UUID and serial number) a machine gets, in every case there
 * is. Admission, the controllers of virtual machines, restores and clones, and `coracle identity pin` ask it; nobody
 * else makes or changes an identity.
 *
 * A field that a user wrote always holds. What is missing is decided by the case:
 *
 * | case               | when                                                   | UUID                                  | serial                | origin            |
 * | ------------------ | ------------------------------------------------------ | ------------------------------------- | --------------------- | ----------------- |
 * | `create-vm`        | admission, CREATE of a VirtualMachine                  | random                                | random                | Given, Generated  |
 * | `create-vmi`       | admission, CREATE of an instance of no VirtualMachine  | random                                | none                  | Given, Generated  |
 * | `instance-of-vm`   | the instance a VirtualMachine starts                   | the template's, else legacy           | the template's        | as the VM's       |
 * | `existing-vm`      | controller: stored without UUID, of an older server    | its running guest's, else legacy      | as stored             | Legacy            |
 * | `update-vm`        | admission, UPDATE that leaves out what was stored      | the stored one; none when none was    | the stored one        | as it was         |
 * | `restore-same`     | restore to the VM the snapshot was taken from          | the snapshot's, else legacy           | the snapshot's        | Restored          |
 * | `restore-other`    | restore to a VM of another name                        | random                                | random                | Generated         |
 * | `clone`            | VirtualMachineClone, of a VM or of a snapshot          | random                                | asked for, or random  | Generated         |
 * | `fork`             | copy of a running guest                                | random                                | random                | Generated         |
 * | `import`           | a manifest or backup of another server brought back    | the written one, else legacy          | as written            | Given, Legacy     |
 *
 * `legacy` is the UUID v5 of the VM's name: what the guest of a VM without UUID has always seen. It is never made for
 * something new, as two VMs of one name in two namespaces share it. Random UUIDs are of version 4. A serial is never
 * added to a VM that exists: its guest has seen none. What the patches of a restore to another VM or of a clone say is
 * written after this, so a user may still ask for a UUID.
 *
 * (Rules: kubevirt pkg/virt-api/webhooks/mutating-webhook/mutators/vm-mutator.go, pkg/virt-controller/watch/vm/firmware.go,
 * pkg/storage/snapshot/restore.go, pkg/virt-controller/watch/clone. Ours: `update-vm`, the guest's UUID in `existing-vm`,
 * and a new identity in `restore-other` where upstream keeps the snapshot's.)
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Firmware, ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { legacyFirmwareUuid } from './firmware-identity.ts';

type Written = DeepReadonly<Firmware> | undefined;

/** Annotation of a VirtualMachine and of an instance without one: how its UUID came to be (an `IdentityOrigin`). */
export const IDENTITY_ORIGIN = 'coracle.dev/firmware-identity';

/**
 * `Given` by a user, `Generated` at creation, `Legacy`: follows from the name, `Restored` with a snapshot of the same
 * machine.
 */
export const IDENTITY_ORIGINS = ['Given', 'Generated', 'Legacy', 'Restored'] as const;
export type IdentityOrigin = (typeof IDENTITY_ORIGINS)[number];

/** A random version 4 UUID at each call. */
type RandomUuid = () => string;

/** `firmware` is what the object in question has written; `vmName` the name a legacy UUID follows from. */
export type IdentityCase =
  | { readonly type: 'create-vm' | 'create-vmi'; readonly firmware: Written; readonly randomUuid: RandomUuid }
  | { readonly type: 'instance-of-vm' | 'import'; readonly firmware: Written; readonly vmName: string }
  | {
      readonly type: 'existing-vm';
      readonly firmware: Written;
      readonly vmName: string;
      /** UUID in the instance that runs now; absent for a stopped VM. */
      readonly guestUuid?: string | undefined;
    }
  | { readonly type: 'update-vm'; readonly firmware: Written; readonly stored: Written }
  | {
      readonly type: 'restore-same';
      /** Of the virtual machine in the snapshot's content. */
      readonly firmware: Written;
      /** Name of the virtual machine the snapshot was taken from. */
      readonly vmName: string;
    }
  | { readonly type: 'restore-other' | 'fork'; readonly randomUuid: RandomUuid }
  | { readonly type: 'clone'; readonly newSerial?: string | undefined; readonly randomUuid: RandomUuid };

export interface Identity {
  /** Absent only where an update found none and wrote none: the controller decides then (`existing-vm`). */
  readonly uuid?: string;
  /** Absent = the guest sees none. */
  readonly serial?: string;
  /** How the UUID came to be; absent where the case does not change it. */
  readonly origin?: IdentityOrigin;
}

/** Decides a case. */
export function decideIdentity(of: IdentityCase): Identity {
  switch (of.type) {
    case 'create-vm':
      return {
        ...givenOr(of.firmware?.uuid, of.randomUuid, 'Generated'),
        serial: of.firmware?.serial || of.randomUuid(),
      };
    case 'create-vmi':
      return { ...givenOr(of.firmware?.uuid, of.randomUuid, 'Generated'), ...serialOf(of.firmware) };
    case 'instance-of-vm':
      return { uuid: of.firmware?.uuid || legacyFirmwareUuid(of.vmName), ...serialOf(of.firmware) };
    case 'import':
      return {
        ...givenOr(of.firmware?.uuid, () => legacyFirmwareUuid(of.vmName), 'Legacy'),
        ...serialOf(of.firmware),
      };
    case 'existing-vm':
      return {
        uuid: of.firmware?.uuid || of.guestUuid || legacyFirmwareUuid(of.vmName),
        ...serialOf(of.firmware),
        ...(!of.firmware?.uuid && { origin: 'Legacy' }),
      };
    case 'update-vm': {
      const uuid = of.firmware?.uuid || of.stored?.uuid;
      const changed = uuid !== undefined && uuid !== (of.stored?.uuid ?? '');
      return {
        ...(uuid && { uuid }),
        ...serialOf({ serial: of.firmware?.serial || of.stored?.serial }),
        ...(changed && { origin: 'Given' }),
      };
    }
    case 'restore-same':
      return {
        uuid: of.firmware?.uuid || legacyFirmwareUuid(of.vmName),
        ...serialOf(of.firmware),
        origin: 'Restored',
      };
    case 'restore-other':
    case 'fork':
      return { uuid: of.randomUuid(), serial: of.randomUuid(), origin: 'Generated' };
    case 'clone':
      return { uuid: of.randomUuid(), serial: of.newSerial || of.randomUuid(), origin: 'Generated' };
    default:
      return of satisfies never;
  }
}

/** `firmware` with this identity in it and no other. */
export function withIdentity(firmware: Written, { uuid, serial }: Identity): Firmware {
  const { uuid: _, serial: __, ...rest } = (firmware ?? {}) as Firmware;
  return { ...rest, ...(uuid !== undefined && { uuid }), ...(serial !== undefined && { serial }) };
}

/** True when all that an update changes of a spec is that a machine without UUID gets one. */
export function onlyAddsUuid(before: ReadonlyVm, after: ReadonlyVm): boolean {
  const firmware = after.spec?.template?.spec?.domain?.firmware;
  const old = before.spec?.template?.spec?.domain?.firmware;
  if (!firmware?.uuid || old?.uuid) return false;
  const spec = cloneJson<VirtualMachine['spec']>(after.spec);
  const { uuid: _, ...rest } = firmware as Firmware;
  const { domain } = spec.template.spec!;
  if (old !== undefined) domain.firmware = { ...rest, ...(old.uuid !== undefined && { uuid: old.uuid }) };
  else if (Object.keys(rest).length === 0) delete domain.firmware;
  return deepEqual(spec, before.spec);
}

const givenOr = (
  given: string | undefined,
  other: () => string,
  origin: IdentityOrigin,
): { uuid: string; origin: IdentityOrigin } => (given ? { uuid: given, origin: 'Given' } : { uuid: other(), origin });

const serialOf = (firmware: { readonly serial?: string | undefined } | undefined): { serial?: string } =>
  firmware?.serial ? { serial: firmware.serial } : {};
