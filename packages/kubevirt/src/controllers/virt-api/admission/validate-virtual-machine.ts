/** Rules about virtual machines. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ReadonlyVm, RunStrategy, VirtualMachine, VirtualMachineInstanceSpec } from '../../../kinds/kinds.ts';
import { valuesOf } from '../../../kinds/structural-schema.ts';
import type { ExpandedTemplate } from '../../../rules/instancetype/expand-template.ts';
import { NO_VOLUME_MIGRATION, unservedFields } from '../../../rules/machine/unserved-fields.ts';
import {
  setInstanceSpecDefaults,
  setVirtualMachineDefaults,
} from '../../../rules/machine-defaults/instance-defaults.ts';
import { memoryHotplugObstacle } from '../../../rules/machine-defaults/live-update.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, requiredValue, unsupportedValue } from './causes.ts';
import { validateDataVolumeTemplates, validateTemplateNamespaces } from './validate-data-volume-templates.ts';
import { validateInstanceSpec } from './validate-instance-spec.ts';
import { validateMetadata } from './validate-metadata.ts';

export const RUNNING_DEPRECATED = 'spec.running is deprecated, please use spec.runStrategy instead.';
const RUN_STRATEGIES = valuesOf<RunStrategy>('VirtualMachineSpec', 'runStrategy');

/**
 * Validates a virtual machine as the validating webhook does: instance type, preference (`expand`) and defaults are applied
 * to a copy first. One that is being deleted is never refused, so that nothing keeps it from going; nor is what a
 * write leaves as it was: what the spec stands for may have become invalid since, and still the machine can be stopped and
 * its labels, which decide whether it may go, can be changed.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export async function validateVirtualMachine(
  vm: ReadonlyVm,
  old: ReadonlyVm | undefined,
  context: AdmissionContext,
  expand: () => Promise<ExpandedTemplate | undefined>,
): Promise<FieldError[]> {
  if (isDeleting(vm)) return [];
  if (old !== undefined && deepEqual(rest(vm), rest(old))) {
    const found = new Findings();
    validateRunStrategy(found, vm);
    return found.causes.length > 0 ? found.causes : validateInProgress(vm, old, context);
  }
  if (vm.spec?.template === undefined) return [requiredValue('spec.template', 'missing virtual machine template.')];
  const copy = cloneJson(vm) as VirtualMachine;
  const expanded = await expand();
  if (expanded?.ok === false) return [...expanded.causes];
  if (expanded !== undefined) copy.spec.template.spec = expanded.spec;
  setVirtualMachineDefaults(copy, context.config);
  if (copy.spec.template.spec !== undefined) setInstanceSpecDefaults(copy.spec.template.spec, context.config);

  const found = new Findings();
  validateSpec(found, copy, context);
  if (found.causes.length === 0) validateTemplateNamespaces(found, vm, old);
  return found.causes.length > 0 || old === undefined ? found.causes : validateInProgress(vm, old, context);
}

function validateSpec(found: Findings, vm: VirtualMachine, context: AdmissionContext): void {
  const { template } = vm.spec;
  if (template.spec?.domain === undefined) {
    found.required('spec.template.spec.domain', 'spec.template.spec.domain must be given');
    return;
  }
  // No component has a reserved label to put into a template; a restore may bring one that a user wrote into a patch.
  validateMetadata(found.at('spec.template.metadata'), template.metadata, { ...context, trusted: false });
  validateInstanceSpec(found.at('spec.template.spec'), template.spec, context.config);
  validateDataVolumeTemplates(found, vm.spec);
  validateRunStrategy(found, vm);
  validateLiveUpdate(found, vm, context);
}

/** The spec without what starts and stops the machine. */
function rest({ spec }: ReadonlyVm): object {
  const { running: _, runStrategy: __, ...others } = spec ?? {};
  return others;
}

function validateRunStrategy(found: Findings, { spec }: ReadonlyVm): void {
  if (spec === undefined) return;
  const { running, runStrategy } = spec;
  if (running !== undefined && runStrategy !== undefined) {
    const text = 'Note that Running is deprecated, please use RunStrategy instead';
    found.invalid('spec.running', `Running and RunStrategy are mutually exclusive. ${text}`);
  }
  if (running === undefined && runStrategy === undefined)
    found.invalid('spec.running', 'One of Running or RunStrategy must be specified');
  if (runStrategy !== undefined && !RUN_STRATEGIES.includes(runStrategy))
    found.invalid('spec.runStrategy', `Invalid RunStrategy (${runStrategy as string})`);
}

function validateLiveUpdate(found: Findings, { spec }: VirtualMachine, { config }: AdmissionContext): void {
  const template = spec.template.spec;
  const maxGuest = template?.domain.memory?.maxGuest;
  if (!config.liveUpdate || template === undefined || maxGuest === undefined) return;
  const obstacle = memoryHotplugObstacle(template, maxGuest);
  if (obstacle !== undefined) found.invalid(`spec.template.spec.${obstacle.field}`, obstacle.message);
}

/**
 * While a snapshot works on it, its volumes and its run strategy stay as they are; while a restore does, it must not
 * start (kubevirt pkg/storage/admitters/vm-storage-status). The restore itself writes the machine with its run strategy
 * whatever that is: the VirtualMachine controller starts none until it is done.
 */
function validateInProgress(vm: ReadonlyVm, old: ReadonlyVm, { trusted }: AdmissionContext): Cause[] {
  const { snapshotInProgress, restoreInProgress } = vm.status ?? {};
  const refuse = (text: string): Cause[] => [unsupportedValue('spec', text)];
  if (snapshotInProgress !== undefined) {
    const name = JSON.stringify(snapshotInProgress);
    if (!deepEqual(volumesOf(vm), volumesOf(old)))
      return refuse(`Cannot update vm disks or volumes until snapshot ${name} completes`);
    if (!runsAlike(vm, old)) return refuse(`Cannot update vm running state until snapshot ${name} completes`);
  }
  if (restoreInProgress === undefined || trusted || deepEqual(vm.spec, old.spec)) return [];
  const halted = vm.spec.runStrategy === 'Halted' || vm.spec.running === false;
  return halted ? [] : refuse(`Cannot start VM until restore ${JSON.stringify(restoreInProgress)} completes`);
}

const volumesOf = ({ spec }: ReadonlyVm): readonly unknown[] => spec.template?.spec?.volumes ?? [];

/** One must not take the place of the other, even if they mean the same. */
function runsAlike({ spec }: ReadonlyVm, old: ReadonlyVm): boolean {
  if (spec.running !== undefined && old.spec.running !== undefined) return spec.running === old.spec.running;
  return spec.runStrategy !== undefined && spec.runStrategy === old.spec.runStrategy;
}

/** Texts for the client of an accepted virtual machine. */
export const virtualMachineWarnings = (vm: ReadonlyVm): string[] => [
  ...(vm.spec?.running !== undefined && vm.spec.running !== null ? [RUNNING_DEPRECATED] : []),
  ...(vm.spec?.updateVolumesStrategy === 'Migration' ? [`spec.updateVolumesStrategy: ${NO_VOLUME_MIGRATION}`] : []),
  ...guestWarnings('spec.template', vm.spec?.template),
];

/** What a guest here does not get of what an accepted instance, or a template of some, asks for: each by its field. */
export function guestWarnings(path: string, of: GuestTemplate | undefined | null): string[] {
  const at = (member: string): string => (path === '' ? member : `${path}.${member}`);
  const found = unservedFields(of?.spec);
  const rest = found.length - MAX_WARNINGS;
  return [
    ...found.slice(0, MAX_WARNINGS).map(({ field, text }) => `${at('spec')}.${field}: ${text}`),
    ...(rest > 0 ? [`${at('spec')}: ${rest} more fields are not followed`] : []),
    // Upstream's label for the log of a launcher. Launchers here are parts of their node's agent.
    ...(of?.metadata?.labels?.['logVerbosity'] === undefined
      ? []
      : [`${at('metadata')}.labels.logVerbosity: ${NO_VERBOSITY}`]),
    ...Object.entries(UNSERVED_ANNOTATIONS)
      .filter(([name]) => of?.metadata?.annotations?.[name] !== undefined)
      .map(([name, text]) => `${at('metadata')}.annotations[${name}]: ${text}`),
  ];
}
/** Of one object; what is beyond is counted. */
const MAX_WARNINGS = 20;
const NO_VERBOSITY = 'has no effect here; the environment variable CORACLE_LOG sets the level of the program';
/** Of upstream's that its feature gates let pass. */
const UNSERVED_ANNOTATIONS: Readonly<Record<string, string>> = {
  'hooks.kubevirt.io/hookSidecars': 'no sidecars are run here, and no hooks called',
  'kubevirt.io/ignitiondata': 'guests get no data for Ignition here; cloud-init volumes are served',
};
type GuestTemplate = DeepReadonly<{
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: VirtualMachineInstanceSpec;
}>;
