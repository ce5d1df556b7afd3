/** What the mutating webhooks fill in. Each function returns a new object and leaves its argument alone. */
import type {
  VirtualMachine,
  VirtualMachineInstance,
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceSpec,
} from '../../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../../api/meta/deep-clone.ts';
import { type DeepReadonly, formatTime } from '../../../api/meta/object.ts';
import { withNewIdentity } from '../../../domain/identity/firmware-identity.ts';
import { setInstanceDefaults, setVirtualMachineDefaults } from '../../../domain/machine-defaults/instance-defaults.ts';
import type { AdmissionContext } from './admission-context.ts';

export const VMI_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';
export const MIGRATION_FINALIZER = 'kubevirt.io/migrationJobFinalize';
export const MIGRATION_SELECTOR_LABEL = 'kubevirt.io/vmi-name';
const PCI_TOPOLOGY_ANNOTATION = 'kubevirt.io/pci-topology-version';
const PCI_TOPOLOGY = 'v3';
/** The user that launchers run QEMU as, unless the gate Root makes it 0. */
const RUNTIME_USER = 107;

/** Fills architecture and machine type, and on creation the identity. */
export function mutateVirtualMachine(vm: DeepReadonly<VirtualMachine>, context: AdmissionContext): VirtualMachine {
  const next = cloneJson<VirtualMachine>(vm);
  const { template } = next.spec ?? {};
  // Validation says what is missing; there is nothing to fill in without a template.
  if (template === undefined || next.metadata.deletionTimestamp !== undefined) return next;
  template.spec = withDomain(template.spec);
  setVirtualMachineDefaults(next, context.config);
  if (context.operation === 'CREATE') {
    template.spec.domain.firmware = withNewIdentity(template.spec.domain.firmware, context.randomUuid);
    if (hasPcieTopology(template.spec)) {
      // Kept in the template for good: the guest's devices keep their addresses when the layout changes one day.
      template.metadata ??= {};
      template.metadata.annotations = { [PCI_TOPOLOGY_ANNOTATION]: PCI_TOPOLOGY, ...template.metadata.annotations };
    }
  }
  return next;
}

/**
 * Fills in everything an instance needs on creation. On update it takes back status changes of foreign users.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function mutateVirtualMachineInstance(
  vmi: DeepReadonly<VirtualMachineInstance>,
  context: AdmissionContext,
  old?: DeepReadonly<VirtualMachineInstance>,
): VirtualMachineInstance {
  const next = cloneJson<VirtualMachineInstance>(vmi);
  if (context.operation === 'UPDATE') {
    if (!context.trusted && old !== undefined) {
      if (old.status === undefined) delete next.status;
      else next.status = cloneJson<NonNullable<VirtualMachineInstance['status']>>(old.status);
    }
    return next;
  }
  next.spec = withDomain(next.spec);
  if (hasEmptyElement(next.spec)) return next;
  setInstanceDefaults(next, context.config);
  const { domain } = next.spec;
  domain.firmware = { ...domain.firmware, uuid: domain.firmware?.uuid || context.randomUuid() };
  if (hasPcieTopology(next.spec)) {
    next.metadata.annotations = { [PCI_TOPOLOGY_ANNOTATION]: PCI_TOPOLOGY, ...next.metadata.annotations };
  }
  const finalizers = next.metadata.finalizers ?? [];
  if (!finalizers.includes(VMI_FINALIZER)) next.metadata.finalizers = [...finalizers, VMI_FINALIZER];
  next.status = {
    ...next.status,
    phase: 'Pending',
    phaseTransitionTimestamps: [{ phase: 'Pending', phaseTransitionTimestamp: formatTime(context.now) }],
    runtimeUser: context.config.isEnabled('Root') ? 0 : RUNTIME_USER,
  };
  return next;
}

/** Labels a migration with its instance, and holds it until the controller is done with it. */
export function mutateMigration(
  migration: DeepReadonly<VirtualMachineInstanceMigration>,
  context: AdmissionContext,
): VirtualMachineInstanceMigration {
  const next = cloneJson<VirtualMachineInstanceMigration>(migration);
  if (context.operation !== 'CREATE') return next;
  // Validation says that a spec is missing; this comes before it.
  const { vmiName = '' } = (next.spec as Partial<VirtualMachineInstanceMigration['spec']> | undefined) ?? {};
  next.metadata.labels = { ...next.metadata.labels, [MIGRATION_SELECTOR_LABEL]: vmiName };
  const finalizers = next.metadata.finalizers ?? [];
  if (!finalizers.includes(MIGRATION_FINALIZER)) next.metadata.finalizers = [...finalizers, MIGRATION_FINALIZER];
  return next;
}

/** A spec whose domain, devices and resources are there: users may leave them out. */
export function withDomain(spec: Partial<VirtualMachineInstanceSpec> | undefined): VirtualMachineInstanceSpec {
  const domain: Partial<VirtualMachineInstanceSpec['domain']> = spec?.domain ?? {};
  return { ...spec, domain: { ...domain, devices: domain.devices ?? {}, resources: domain.resources ?? {} } };
}

/** True when a list holds a null. The schema refuses that after this; there is nothing to fill in until then. */
function hasEmptyElement(value: unknown): boolean {
  if (Array.isArray(value)) return value.some((element) => element === null || hasEmptyElement(element));
  return typeof value === 'object' && value !== null && Object.values(value).some(hasEmptyElement);
}

function hasPcieTopology(spec: VirtualMachineInstanceSpec): boolean {
  const type = spec.domain.machine?.type ?? '';
  return spec.architecture !== 's390x' && (type === '' || type.includes('q35') || type.startsWith('virt'));
}
