/** The APIService of each group and version served here, as the aggregator registers them: all of them local. */

import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { localCondition } from '../kinds/builtin/preparations/api-services.ts';
import { builtinPriority, CUSTOM_PRIORITY } from '../kinds/discovery/discovery.ts';

/** On objects the server keeps: `onstart` for its own groups, `true` for those of custom resources. */
export const AUTO_MANAGED = 'kube-aggregator.kubernetes.io/automanaged';

/** The APIServices of these groups and versions; the aggregator's own group needs none. */
export function apiServices(
  served: Iterable<{ readonly group: string; readonly version: string }>,
  now: number,
): UnstructuredObject[] {
  const objects = new Map<string, UnstructuredObject>();
  for (const { group, version } of served) {
    if (group === 'apiregistration.k8s.io') continue;
    const key = apiVersionOf({ group, version });
    if (!objects.has(key)) objects.set(key, apiService({ group, version }, now));
  }
  return [...objects.values()];
}

function apiService({ group, version }: { group: string; version: string }, now: number): UnstructuredObject {
  const builtin = builtinPriority(group, version);
  const priority = builtin ?? CUSTOM_PRIORITY;
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `${version}.${group}`, labels: { [AUTO_MANAGED]: builtin ? 'onstart' : 'true' } },
    spec: {
      ...(group !== '' && { group }),
      version,
      groupPriorityMinimum: priority.group,
      versionPriority: priority.version,
    },
    status: { conditions: [localCondition(now)] },
  };
}
