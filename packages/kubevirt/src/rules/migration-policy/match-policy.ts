/** Which MigrationPolicy counts for an instance, and what it changes (pkg/virt-controller/watch/migration/migrationpolicy.go). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { MigrationOptions, MigrationPolicy } from '../../kinds/kinds.ts';

type Policy = DeepReadonly<MigrationPolicy>;
type Labels = Readonly<Record<string, string>>;

interface PolicySubject {
  readonly instanceLabels: Labels;
  readonly namespaceLabels: Labels;
}

/**
 * The policy with the most matched labels in all; of those the one with more of the instance's; of those the first by
 * name. A selector must match whole, and a policy that selects by nothing selects nobody.
 */
export function matchPolicy(policies: readonly Policy[], subject: PolicySubject): Policy | undefined {
  const matched = policies.flatMap((policy) => {
    const { virtualMachineInstanceSelector, namespaceSelector } = policy.spec.selectors ?? {};
    const instance = matchedLabels(virtualMachineInstanceSelector, subject.instanceLabels);
    const namespace = matchedLabels(namespaceSelector, subject.namespaceLabels);
    if (instance === undefined || namespace === undefined || instance + namespace === 0) return [];
    return [{ policy, instance, all: instance + namespace, name: policy.metadata.name ?? '' }];
  });
  matched.sort((a, b) => b.all - a.all || b.instance - a.instance || (a.name < b.name ? -1 : 1));
  return matched[0]?.policy;
}

/** How many labels the selector names, undefined when one of them does not match. */
function matchedLabels(selector: Labels | undefined, labels: Labels): number | undefined {
  const wanted = Object.entries(selector ?? {});
  return wanted.every(([key, value]) => labels[key] === value) ? wanted.length : undefined;
}

/** `changed` is false when the policy sets nothing: then it is not named on the migration either. */
export function applyPolicy(
  options: MigrationOptions,
  { spec }: Policy,
): { readonly options: MigrationOptions; readonly changed: boolean } {
  const { selectors: _, ...overrides } = cloneJson<MigrationPolicy['spec']>(spec);
  const set = Object.fromEntries(
    Object.entries(overrides).filter(([, value]) => value !== undefined && value !== null),
  );
  if (overrides.allowWorkloadDisruption === undefined && overrides.allowPostCopy !== undefined)
    set['allowWorkloadDisruption'] = overrides.allowPostCopy;
  return { options: { ...options, ...set } as MigrationOptions, changed: Object.keys(set).length > 0 };
}
