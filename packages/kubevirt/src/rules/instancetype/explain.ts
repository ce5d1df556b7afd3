/** Which layer each field of an expanded virtual machine comes from: for `coracle expand`. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../machine-defaults/cluster-config.ts';
import { setInstanceSpecDefaults } from '../machine-defaults/instance-defaults.ts';
import { applyInstancetypeSpec } from './apply-instancetype.ts';
import { applyPreferenceSpec } from './apply-preference.ts';
import { type Layers, openTemplate, TEMPLATE_SPEC } from './expand.ts';

/** From the first to the last that may set a field. */
export type FieldLayer = 'user' | 'webhook' | 'instancetype' | 'preference' | 'cluster default';

/** One leaf of the result: its path, its value, and the layer that gave it this value. */
export interface ExplainedField {
  readonly path: string;
  readonly value: unknown;
  readonly layer: FieldLayer;
}

export interface ExplainInput extends Layers {
  readonly vm: ReadonlyVm;
  /** The machine as its user wrote it; what `vm` has beyond it then counts as the webhook's. */
  readonly submitted?: ReadonlyVm | undefined;
  readonly config: ClusterConfig;
}

/**
 * Every leaf below `spec.template` of the expansion, in the order of the result. Empty when the layers conflict: there
 * is no result to explain then.
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function explainExpansion(input: ExplainInput): ExplainedField[] {
  const { vm, config, instancetype, preference } = input;
  const origin = new Map<string, { layer: FieldLayer; value: unknown }>();
  const template = cloneJson<VirtualMachine['spec']['template']>(vm.spec.template ?? {});
  const mark = (layer: FieldLayer, tree: unknown): void => {
    for (const [path, value] of leaves(tree, 'spec.template')) {
      const known = origin.get(path);
      if (known === undefined || known.value !== value) origin.set(path, { layer, value });
    }
  };
  if (input.submitted !== undefined) mark('user', input.submitted.spec.template ?? {});
  mark(input.submitted === undefined ? 'user' : 'webhook', template);

  const { spec, metadata } = openTemplate(template, config);
  mark('cluster default', template);
  if (instancetype !== undefined) {
    const conflicts = applyInstancetypeSpec(TEMPLATE_SPEC, { type: instancetype, preference }, spec, metadata);
    if (conflicts.length > 0) return [];
    mark('instancetype', template);
  }
  if (preference !== undefined) {
    applyPreferenceSpec(preference, spec, metadata);
    mark('preference', template);
  }
  setInstanceSpecDefaults(spec, config);
  mark('cluster default', template);
  return [...leaves(template, 'spec.template')].map(([path, value]) => ({
    path,
    value,
    layer: origin.get(path)!.layer,
  }));
}

/** Scalars, and empty objects and lists: what says something by itself. */
function* leaves(value: unknown, path: string): Generator<[path: string, value: unknown]> {
  if (typeof value !== 'object' || value === null) {
    yield [path, value];
    return;
  }
  const entries: [string, unknown][] = Array.isArray(value)
    ? value.map((item, i) => [`${path}[${i}]`, item])
    : Object.entries(value).map(([key, member]) => [pathOf(path, key), member]);
  if (entries.length === 0) {
    yield [path, Array.isArray(value) ? '[]' : '{}'];
    return;
  }
  for (const [at, member] of entries) if (member !== undefined) yield* leaves(member, at);
}

/** Keys with dots or slashes (annotations) go in brackets. */
const pathOf = (path: string, key: string): string => (/[./]/.test(key) ? `${path}[${key}]` : `${path}.${key}`);
