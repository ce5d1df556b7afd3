/** Rules about virtual machines. */
import { RUN_STRATEGIES, type VirtualMachine } from '../../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../../api/meta/deep-clone.ts';
import { deepEqual } from '../../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import type { FieldError } from '../../../api/meta/status.ts';
import {
  setInstanceSpecDefaults,
  setVirtualMachineDefaults,
} from '../../../domain/machine-defaults/instance-defaults.ts';
import { memoryHotplugObstacle } from '../../../domain/machine-defaults/live-update.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, countPresent, invalidValue, requiredValue, unsupportedValue } from './causes.ts';
import { validateVirtualMachineInstanceSpec } from './validate-instance-spec.ts';
import { validateMetadata } from './validate-metadata.ts';

type Vm = DeepReadonly<VirtualMachine>;

export const RUNNING_DEPRECATED = 'spec.running is deprecated, please use spec.runStrategy instead.';

/**
 * Judges a virtual machine as the validating webhook does: instance type, preference and defaults are applied to a
 * copy first. One that is being deleted is never refused, so that nothing keeps it from going.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export async function validateVirtualMachine(
  vm: Vm,
  old: Vm | undefined,
  context: AdmissionContext,
): Promise<FieldError[]> {
  if (vm.metadata.deletionTimestamp !== undefined) return [];
  if (vm.spec?.template === undefined) {
    return [requiredValue('spec.template', 'missing virtual machine template.')];
  }
  const copy = cloneJson<VirtualMachine>(vm);
  const conflicts = (await context.applyInstancetype?.(copy)) ?? [];
  if (conflicts.length > 0) return [...conflicts];
  setVirtualMachineDefaults(copy, context.config);
  if (copy.spec.template.spec !== undefined) setInstanceSpecDefaults(copy.spec.template.spec, context.config);

  const causes = validateSpec(copy, context);
  return causes.length > 0 || old === undefined ? causes : validateInProgress(vm, old);
}

function validateSpec(vm: VirtualMachine, context: AdmissionContext): Cause[] {
  const { template } = vm.spec;
  if (template.spec?.domain === undefined) {
    return [requiredValue('spec.template.spec.domain', 'spec.template.spec.domain must be given')];
  }
  return [
    ...validateMetadata('spec.template.metadata', template.metadata, context),
    ...validateVirtualMachineInstanceSpec('spec.template.spec', template.spec, context.config),
    ...validateDataVolumeTemplates(vm),
    ...validateRunStrategy(vm),
    ...validateLiveUpdate(vm, context),
  ];
}

function validateRunStrategy({ spec }: VirtualMachine): Cause[] {
  const causes: Cause[] = [];
  if (spec.running !== undefined && spec.runStrategy !== undefined) {
    causes.push(
      invalidValue(
        'spec.running',
        'Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead',
      ),
    );
  }
  if (spec.running === undefined && spec.runStrategy === undefined) {
    causes.push(invalidValue('spec.running', 'One of Running or RunStrategy must be specified'));
  }
  if (spec.runStrategy !== undefined && !RUN_STRATEGIES.includes(spec.runStrategy)) {
    causes.push(invalidValue('spec.runStrategy', `Invalid RunStrategy (${spec.runStrategy as string})`));
  }
  return causes;
}

function validateDataVolumeTemplates({ metadata, spec }: VirtualMachine): Cause[] {
  const volumes = spec.template.spec?.volumes ?? [];
  return (spec.dataVolumeTemplates ?? []).flatMap((template, i) => {
    const causes: Cause[] = [];
    const field = `spec.dataVolumeTemplates[${i}]`;
    const name = template.metadata?.name;
    if (!name) {
      causes.push(
        requiredValue(`${field}.name`, `'name' field must not be empty for DataVolumeTemplate entry ${field}.`),
      );
    }
    if (countPresent([template.spec.pvc, template.spec.storage]) !== 1) {
      causes.push(invalidValue(field, `${field} must have exactly one of pvc and storage`));
    }
    const { source, sourceRef } = template.spec;
    const claimSource = template.spec.pvc ?? template.spec.storage;
    const populated = claimSource?.dataSource !== undefined || claimSource?.dataSourceRef !== undefined;
    if (countPresent([source, sourceRef]) !== 1 && !populated) {
      causes.push(invalidValue(field, `${field} must have exactly one of source and sourceRef`));
    }
    if (source !== undefined && countPresent(Object.values(source)) !== 1) {
      causes.push(invalidValue(`${field}.spec.source`, `${field} must have exactly one source`));
    }
    const namespace = template.metadata?.['namespace'];
    if (namespace && metadata.namespace && namespace !== metadata.namespace) {
      causes.push(
        invalidValue(
          field,
          `Embedded DataVolume namespace ${namespace} differs from VM namespace ${metadata.namespace}`,
        ),
      );
    }
    const referenced = volumes.some(({ dataVolume, persistentVolumeClaim }) =>
      [dataVolume?.name, persistentVolumeClaim?.claimName].some((used) => Boolean(used) && used === name),
    );
    if (!referenced) {
      causes.push(
        requiredValue(
          field,
          `DataVolumeTemplate entry ${field} must be referenced in the VMI template's 'volumes' list`,
        ),
      );
    }
    return causes;
  });
}

function validateLiveUpdate({ spec }: VirtualMachine, { config }: AdmissionContext): Cause[] {
  const template = spec.template.spec;
  const maxGuest = template?.domain.memory?.maxGuest;
  if (!config.liveUpdate || template === undefined || maxGuest === undefined) return [];
  const obstacle = memoryHotplugObstacle(template, maxGuest);
  return obstacle === undefined ? [] : [invalidValue(`spec.template.spec.${obstacle.field}`, obstacle.message)];
}

/** While a snapshot or a restore works on it, the spec may not move under it. */
function validateInProgress(vm: Vm, old: Vm): Cause[] {
  const { snapshotInProgress, restoreInProgress } = vm.status ?? {};
  if ((snapshotInProgress === undefined && restoreInProgress === undefined) || deepEqual(vm.spec, old.spec)) return [];
  if (snapshotInProgress !== undefined) {
    return [
      unsupportedValue('spec', `Cannot update VM spec until snapshot ${JSON.stringify(snapshotInProgress)} completes`),
    ];
  }
  const halted = vm.spec.runStrategy === 'Halted' || vm.spec.running === false;
  return halted
    ? []
    : [unsupportedValue('spec', `Cannot start VM until restore ${JSON.stringify(restoreInProgress)} completes`)];
}

/** Texts for the client of an accepted virtual machine. */
export const virtualMachineWarnings = (vm: Vm): string[] =>
  vm.spec?.running !== undefined && vm.spec.running !== null ? [RUNNING_DEPRECATED] : [];
