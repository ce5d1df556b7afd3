/** What the mutating webhooks fill in. Each function returns a new object and leaves its argument alone. */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type {
  ReadonlyMigration,
  ReadonlyVm,
  ReadonlyVmi,
  VirtualMachine,
  VirtualMachineInstance,
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceSpec,
} from '../../../kinds/kubevirt.ts';
import {
  decideIdentity,
  IDENTITY_ORIGIN,
  IDENTITY_ORIGINS,
  type IdentityOrigin,
  withIdentity,
} from '../../../rules/identity/decide-identity.ts';
import { FOREGROUND_FINALIZER, MIGRATION_FINALIZER } from '../../../rules/launcher/launcher-labels.ts';
import { holdMachine } from '../../../rules/machine-defaults/hold-machine.ts';
import { setInstanceDefaults, setVirtualMachineDefaults } from '../../../rules/machine-defaults/instance-defaults.ts';
import { DUMP_CLAIM_ANNOTATION } from '../../../rules/memory-dump/memory-dump.ts';
import type { AdmissionContext } from './admission-context.ts';
import { writeNumbersAsQuantities } from './number-quantities.ts';

export const MIGRATION_SELECTOR_LABEL = 'kubevirt.io/vmi-name';
const PCI_TOPOLOGY_ANNOTATION = 'kubevirt.io/pci-topology-version';
const PCI_TOPOLOGY = 'v3';
/** The user that launchers run QEMU as, unless the gate Root makes it 0. */
const RUNTIME_USER = 107;

/**
 * Fills architecture and machine type, and the identity: a new one on creation, on update the one that was left out. What
 * is created is held for its controller from then on.
 */
export function mutateVirtualMachine(vm: ReadonlyVm, context: AdmissionContext, old?: ReadonlyVm): VirtualMachine {
  const next = cloneJson(vm) as VirtualMachine;
  const { template } = next.spec ?? {};
  // Validation says what is missing; there is nothing to fill in without a template.
  if (template === undefined || isDeleting(next)) return next;
  writeNumbersAsQuantities('VirtualMachine', next);
  template.spec = withDomain(template.spec);
  setVirtualMachineDefaults(next, context.config);
  identifyMachine(next, template.spec, context, old);
  if (context.operation === 'CREATE') {
    holdMachine(next);
    if (hasPcieTopology(template.spec)) {
      // Kept in the template for good: the guest's devices keep their addresses when the layout changes one day.
      template.metadata ??= {};
      template.metadata.annotations = { [PCI_TOPOLOGY_ANNOTATION]: PCI_TOPOLOGY, ...template.metadata.annotations };
    }
  }
  return next;
}

/**
 * Fills in everything an instance needs on creation. The status is what KubeVirt's components and nodes say: of anybody
 * else it is not taken, at creation and on update.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function mutateVirtualMachineInstance(
  vmi: ReadonlyVmi,
  context: AdmissionContext,
  old?: ReadonlyVmi,
): VirtualMachineInstance {
  const next = cloneJson(vmi) as VirtualMachineInstance;
  if (context.operation === 'UPDATE') {
    if (!context.reports && old !== undefined) {
      if (old.status === undefined) delete next.status;
      else next.status = cloneJson(old.status) as NonNullable<VirtualMachineInstance['status']>;
    }
    return next;
  }
  writeNumbersAsQuantities('VirtualMachineInstance', next);
  next.spec = withDomain(next.spec);
  if (!context.reports) delete next.status;
  // Names a volume of a node: the controller writes it, for a dump of a guest that runs; a template may hold whatever it likes.
  delete next.metadata.annotations?.[DUMP_CLAIM_ANNOTATION];
  if (holdsTooMany(next.spec) || hasEmptyElement(next.spec)) return next;
  setInstanceDefaults(next, context.config);
  const { domain } = next.spec;
  const machine = controllerOf(next, 'VirtualMachine')?.name;
  const identity = decideIdentity(
    machine === undefined
      ? { type: 'create-vmi', firmware: domain.firmware, randomUuid: context.randomUuid }
      : { type: 'instance-of-vm', firmware: domain.firmware, vmName: machine },
  );
  domain.firmware = withIdentity(domain.firmware, identity);
  if (machine === undefined) noteOrigin(next, identity.origin);
  if (hasPcieTopology(next.spec))
    next.metadata.annotations = { [PCI_TOPOLOGY_ANNOTATION]: PCI_TOPOLOGY, ...next.metadata.annotations };
  hold(next, FOREGROUND_FINALIZER);
  next.status = {
    ...next.status,
    phase: 'Pending',
    phaseTransitionTimestamps: [{ phase: 'Pending', phaseTransitionTimestamp: formatTime(context.now) }],
    runtimeUser: context.config.isEnabled('Root') ? 0 : RUNTIME_USER,
  };
  return next;
}

/**
 * The firmware identity of a virtual machine. What an update leaves out stays as it is stored, as an address of a Service
 * does: a manifest from before the identity was written must not take it away. KubeVirt's components say what they mean.
 */
function identifyMachine(
  vm: VirtualMachine,
  spec: VirtualMachineInstanceSpec,
  context: AdmissionContext,
  old: ReadonlyVm | undefined,
): void {
  const { firmware } = spec.domain;
  if (context.operation === 'CREATE') {
    const identity = decideIdentity({ type: 'create-vm', firmware, randomUuid: context.randomUuid });
    spec.domain.firmware = withIdentity(firmware, identity);
    noteOrigin(vm, identity.origin);
    return;
  }
  if (context.trusted || old === undefined) return;
  const stored = old.spec?.template?.spec?.domain?.firmware;
  const identity = decideIdentity({ type: 'update-vm', firmware, stored });
  if (identity.uuid !== firmware?.uuid || identity.serial !== firmware?.serial)
    spec.domain.firmware = withIdentity(firmware, identity);
  const noted = identity.origin ?? old.metadata.annotations?.[IDENTITY_ORIGIN];
  if (noted !== undefined) vm.metadata.annotations = { ...vm.metadata.annotations, [IDENTITY_ORIGIN]: noted };
}

/**
 * Says on an object how its UUID came to be. What a manifest says of the UUID it brings is kept: it was written by the
 * server it comes from, by `coracle identity pin`, or by an earlier round of the admission.
 */
function noteOrigin({ metadata }: Pick<VirtualMachine, 'metadata'>, origin: IdentityOrigin | undefined): void {
  const said = metadata.annotations?.[IDENTITY_ORIGIN];
  const isKept = origin === 'Given' && IDENTITY_ORIGINS.some((each) => each === said);
  if (origin === undefined || isKept || said === origin) return;
  metadata.annotations = { ...metadata.annotations, [IDENTITY_ORIGIN]: origin };
}

/** Labels a migration with its instance, and holds it until the controller is done with it. */
export function mutateMigration(
  migration: ReadonlyMigration,
  context: AdmissionContext,
): VirtualMachineInstanceMigration {
  const next = cloneJson(migration) as VirtualMachineInstanceMigration;
  if (context.operation !== 'CREATE') return next;
  // Validation says that a spec is missing; this comes before it.
  const { vmiName = '' } = (next.spec as Partial<VirtualMachineInstanceMigration['spec']> | undefined) ?? {};
  next.metadata.labels = { ...next.metadata.labels, [MIGRATION_SELECTOR_LABEL]: vmiName };
  hold(next, MIGRATION_FINALIZER);
  return next;
}

function hold({ metadata }: Pick<VirtualMachineInstance, 'metadata'>, finalizer: string): void {
  if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
}

/** A spec whose domain, devices and resources are there: users may leave them out. */
export function withDomain(spec: Partial<VirtualMachineInstanceSpec> | undefined): VirtualMachineInstanceSpec {
  const domain: Partial<VirtualMachineInstanceSpec['domain']> = spec?.domain ?? {};
  return { ...spec, domain: { ...domain, devices: domain.devices ?? {}, resources: domain.resources ?? {} } };
}

/** What the schema allows of each. */
const MOST_ITEMS = 256;

/** True when there are more disks and the like than the schema allows: it refuses them after this. */
function holdsTooMany({ domain: { devices }, networks, volumes }: VirtualMachineInstanceSpec): boolean {
  return [devices.disks, devices.interfaces, networks, volumes].some((list) => (list?.length ?? 0) > MOST_ITEMS);
}

/** True when a list holds a null. The schema refuses that after this; there is nothing to fill in until then. */
function hasEmptyElement(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  return (Array.isArray(value) && members.includes(null)) || members.some(hasEmptyElement);
}

function hasPcieTopology(spec: VirtualMachineInstanceSpec): boolean {
  const type = spec.domain.machine?.type ?? '';
  return spec.architecture !== 's390x' && (type === '' || type.includes('q35') || type.startsWith('virt'));
}
