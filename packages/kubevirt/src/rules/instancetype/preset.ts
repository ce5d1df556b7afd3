/**
 * VirtualMachineInstancePreset, the forerunner of instance types: defaults that a label selector hands to new
 * instances (kubevirt virt-api mutators/preset). Applied when an instance is created, before everything else.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { compareQuantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { DomainSpec, VirtualMachineInstance, VirtualMachineInstancePreset } from '../../kinds/kubevirt.ts';

/** An instance with this annotation set to `true` takes no presets. */
export const PRESET_EXCLUSION = 'virtualmachineinstancepresets.admission.kubevirt.io/exclude';
/** Written for each preset that was applied; its value is the version of the core group. */
export const presetAnnotation = (name: string): string => `virtualmachinepreset.kubevirt.io/${name}`;
const CORE_VERSION = 'kubevirt.io/v1';

type Preset = DeepReadonly<VirtualMachineInstancePreset>;
type Domain = DeepReadonly<Partial<DomainSpec>>;
type Timer = NonNullable<NonNullable<DomainSpec['clock']>['timer']>;

export interface PresetOutcome {
  /** Presets that left their annotation. */
  readonly applied: readonly string[];
  /** Settings that an instance kept as its own: one text for each preset that met them. */
  readonly warnings: readonly string[];
  /** The presets contradict each other, or one has a broken selector: nothing was applied, and the instance is refused with this text. */
  readonly error?: string;
}

/**
 * Applies the presets whose selector matches to `vmi`, which changes. What the instance says itself stays; a preset
 * counts as applied when at least one of its members holds in the result.
 */
export function applyPresets(vmi: VirtualMachineInstance, presets: readonly Preset[]): PresetOutcome {
  if (vmi.metadata.annotations?.[PRESET_EXCLUSION] === 'true') return { applied: [], warnings: [] };
  const labels = vmi.metadata.labels ?? {};
  const matching: Preset[] = [];
  for (const preset of presets) {
    const selected = selects(preset, labels);
    // A broken selector could have meant this instance: all new instances of the namespace are refused until it is corrected.
    if (typeof selected === 'string') return { applied: [], warnings: [], error: selected };
    if (selected) matching.push(preset);
  }
  const error = contradictions(matching);
  if (error !== undefined) return { applied: [], warnings: [], error };

  const applied: string[] = [];
  const warnings: string[] = [];
  for (const { metadata, spec } of matching) {
    const name = metadata.name ?? '';
    const own = vmi.spec.domain;
    const conflicts = domainConflicts(spec.domain ?? {}, own);
    if (mergeDomain(spec.domain ?? {}, own)) {
      applied.push(name);
      vmi.metadata.annotations = { ...vmi.metadata.annotations, [presetAnnotation(name)]: CORE_VERSION };
      if (conflicts.length > 0)
        warnings.push(`Some settings were not applied for VirtualMachineInstancePreset '${name}': ${join(conflicts)}`);
    } else {
      warnings.push(`Unable to apply VirtualMachineInstancePreset '${name}': ${join(conflicts)}`);
    }
  }
  return { applied, warnings };
}

/** Whether a preset is for an instance with such labels; a text when its selector cannot be read. */
function selects({ spec }: Preset, labels: Readonly<Record<string, string>>): boolean | string {
  try {
    const selector = spec.selector as Parameters<typeof fromLabelSelectorObject>[0];
    return matchesLabels(fromLabelSelectorObject(selector), labels);
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/** Several errors in one text, as Go's aggregate shows them. */
const join = (texts: readonly string[]): string => (texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]`);

function contradictions(presets: readonly Preset[]): string | undefined {
  const errors: string[] = [];
  presets.forEach((preset, i) => {
    for (const visited of presets.slice(0, i)) {
      const conflicts = domainConflicts(preset.spec.domain ?? {}, visited.spec.domain ?? {});
      if (conflicts.length > 0)
        errors.push(`presets '${preset.metadata.name}' and '${visited.metadata.name}' conflict: ${join(conflicts)}`);
    }
  });
  return errors.length === 0 ? undefined : `VirtualMachinePresets cannot be applied due to conflicts: ${join(errors)}`;
}

/** What two domains both say, and differently. */
function domainConflicts(preset: Domain, own: Domain): string[] {
  const errors: string[] = [];
  const compare = (path: string, wanted: unknown, actual: unknown): void => {
    if (wanted == null || actual == null || deepEqual(wanted, actual)) return;
    errors.push(`spec.${path}: ${JSON.stringify(wanted)} != ${JSON.stringify(actual)}`);
  };
  const requests = own.resources?.requests ?? {};
  for (const [resource, amount] of Object.entries(preset.resources?.requests ?? {})) {
    const actual = requests[resource];
    if (actual !== undefined && !isSameAmount(amount, actual))
      errors.push(`spec.resources.requests[${resource}]: ${amount} != ${actual}`);
  }
  compare('cpu', preset.cpu, own.cpu);
  compare('firmware', preset.firmware, own.firmware);
  if (preset.clock != null && own.clock != null) {
    compare('clock.clockoffset', clockOffset(preset.clock), clockOffset(own.clock));
    compare('clock.timer', preset.clock.timer, own.clock.timer);
  }
  compare('features', preset.features, own.features);
  compare('devices.watchdog', preset.devices?.watchdog, own.devices?.watchdog);
  compare('ioThreadsPolicy', preset.ioThreadsPolicy, own.ioThreadsPolicy);
  return errors;
}

function isSameAmount(a: string | number, b: string | number): boolean {
  const [left, right] = [readQuantity(a), readQuantity(b)];
  return left === undefined || right === undefined ? a === b : compareQuantity(left, right) === 0;
}

const clockOffset = ({ utc, timezone }: DeepReadonly<NonNullable<DomainSpec['clock']>>): object => ({ utc, timezone });

const isSameAmounts = (a: Readonly<Record<string, string | number>>, b: typeof a): boolean =>
  Object.keys(a).length === Object.keys(b).length &&
  Object.entries(a).every(([resource, amount]) => b[resource] !== undefined && isSameAmount(amount, b[resource]));

/** Fills the gaps of `own`, which changes. True when at least one member of the preset holds afterwards. */
function mergeDomain(preset: Domain, own: DomainSpec): boolean {
  let applied = false;
  const requests = preset.resources?.requests ?? {};
  if (Object.keys(requests).length > 0) {
    own.resources ??= {};
    own.resources.requests ??= { ...requests };
    applied ||= isSameAmounts(own.resources.requests, requests);
  }
  for (const member of ['cpu', 'firmware', 'features', 'ioThreadsPolicy'] as const)
    applied = mergeMember(preset, own, member) || applied;
  applied = mergeClock(preset.clock, own) || applied;
  if (preset.devices?.watchdog != null) {
    own.devices ??= {};
    applied = mergeMember(preset.devices, own.devices, 'watchdog') || applied;
  }
  return applied;
}

/** `preset` is a read-only `T` that may lack members. */
function mergeMember<T extends object, K extends keyof T>(preset: object, own: T, member: K): boolean {
  const wanted = (preset as Partial<T>)[member];
  if (wanted == null) return false;
  own[member] ??= cloneJson(wanted) as T[K];
  return deepEqual(own[member], wanted);
}

/** Offset and timers are taken over apart. */
function mergeClock(preset: Domain['clock'] | undefined, own: DomainSpec): boolean {
  if (preset == null) return false;
  const { timer, ...offset } = preset;
  own.clock ??= cloneJson<NonNullable<DomainSpec['clock']>>(offset);
  const same = deepEqual(own.clock, preset);
  if (timer == null) return same;
  const { clock } = own;
  clock.timer ??= cloneJson<Timer>(timer);
  return same || deepEqual(clock.timer, timer);
}
