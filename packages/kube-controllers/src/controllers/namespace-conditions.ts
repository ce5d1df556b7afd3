/** What a terminating namespace says about what holds it up: the five conditions of upstream's namespace controller. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { Condition } from '@coracle/apimachinery/types/types';
import type { Discovery } from '@coracle/client/discovery/discover';
import type { NamespaceContent } from './namespace-content.ts';

interface Finding {
  readonly type: string;
  /** The message when something is wrong, undefined when all is well. */
  readonly trouble: string | undefined;
  readonly bad: string;
  readonly good: readonly [reason: string, message: string];
}

const joined = (counts: ReadonlyMap<string, number>, word: (name: string, count: number) => string): string =>
  [...counts]
    .map(([name, count]) => word(name, count))
    .sort()
    .join(', ');

function findings(content: NamespaceContent, failures: Discovery['failures']): Finding[] {
  // As long as Pods are waited for, upstream says nothing of what is left.
  const nothing: ReadonlyMap<string, number> = new Map();
  const { remaining, finalizers } = content.waitsForPods ? { remaining: nothing, finalizers: nothing } : content;
  // Upstream reads one document in which such a group is marked stale: these are the words it has for that.
  const unknown = failures
    .map(({ groupVersion }) => `${groupVersion}: stale GroupVersion discovery: ${groupVersion}`)
    .sort();
  const failed = [...content.failures].sort();
  return [
    {
      type: 'NamespaceDeletionDiscoveryFailure',
      trouble:
        unknown.length > 0
          ? `Discovery failed for some groups, ${unknown.length} failing: unable to retrieve the complete list of server APIs: ${unknown.join(', ')}`
          : undefined,
      bad: 'DiscoveryFailed',
      good: ['ResourcesDiscovered', 'All resources successfully discovered'],
    },
    {
      type: 'NamespaceDeletionGroupVersionParsingFailure',
      trouble: undefined,
      bad: 'GroupVersionParsingFailed',
      good: ['ParsedGroupVersions', 'All legacy kube types successfully parsed'],
    },
    {
      type: 'NamespaceDeletionContentFailure',
      trouble:
        failed.length > 0
          ? `Failed to delete all resource types, ${failed.length} remaining: ${failed.join(', ')}`
          : undefined,
      bad: 'ContentDeletionFailed',
      good: ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    },
    {
      type: 'NamespaceContentRemaining',
      trouble:
        remaining.size > 0
          ? `Some resources are remaining: ${joined(remaining, (name, count) => `${name} has ${count} resource instances`)}`
          : undefined,
      bad: 'SomeResourcesRemain',
      good: ['ContentRemoved', 'All content successfully removed'],
    },
    {
      type: 'NamespaceFinalizersRemaining',
      trouble:
        finalizers.size > 0
          ? `Some content in the namespace has finalizers remaining: ${joined(finalizers, (name, count) => `${name} in ${count} resource instances`)}`
          : undefined,
      bad: 'SomeFinalizersRemain',
      good: ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    },
  ];
}

/** The conditions after one round; each keeps its place, those of others are kept, and times move only where a status does. */
export function namespaceConditions(
  held: readonly DeepReadonly<Condition>[],
  content: NamespaceContent,
  options: { readonly failures: Discovery['failures']; readonly now: number },
): Condition[] {
  const conditions = held.map((one): Condition => ({ ...one }));
  for (const { type, trouble, bad, good } of findings(content, options.failures)) {
    const status = trouble === undefined ? 'False' : 'True';
    const place = conditions.findIndex((one) => one.type === type);
    const before = conditions[place];
    const lastTransitionTime =
      before?.status === status && before.lastTransitionTime ? before.lastTransitionTime : formatTime(options.now);
    const [reason, message] = trouble === undefined ? good : ([bad, trouble] as const);
    conditions[before ? place : conditions.length] = { type, status, lastTransitionTime, reason, message };
  }
  return conditions;
}
