/** One APIService for each served group and version, as the aggregator registers them: all of them local. */
import { apiVersionOf } from '../../api/meta/gvk.ts';
import { formatTime, type UnstructuredObject } from '../../api/meta/object.ts';

/** Group -> its priority; versions are in order of preference. Upstream's numbers, so that lists sort alike. */
const PRIORITIES: Readonly<Record<string, number>> = {
  '': 18_000,
  apps: 17_800,
  'events.k8s.io': 17_750,
  'authentication.k8s.io': 17_700,
  'authorization.k8s.io': 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  'certificates.k8s.io': 17_300,
  'networking.k8s.io': 17_200,
  policy: 17_100,
  'rbac.authorization.k8s.io': 17_000,
  'storage.k8s.io': 16_800,
  'apiextensions.k8s.io': 16_700,
  'admissionregistration.k8s.io': 16_700,
  'scheduling.k8s.io': 16_600,
  'coordination.k8s.io': 16_500,
  'node.k8s.io': 16_300,
  'discovery.k8s.io': 16_200,
  'flowcontrol.apiserver.k8s.io': 16_100,
  'resource.k8s.io': 15_900,
};
const CUSTOM_GROUP = { group: 1000, version: 100 };
const BUILTIN_VERSION = 15;

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
  const known = Object.hasOwn(PRIORITIES, group);
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `${version}.${group}`, labels: { 'kube-aggregator.kubernetes.io/automanaged': 'onstart' } },
    spec: {
      ...(group !== '' && { group }),
      version,
      groupPriorityMinimum: known ? PRIORITIES[group] : CUSTOM_GROUP.group,
      versionPriority: known ? BUILTIN_VERSION + (version === 'v2' ? BUILTIN_VERSION : 0) : CUSTOM_GROUP.version,
    },
    status: {
      conditions: [
        {
          type: 'Available',
          status: 'True',
          lastTransitionTime: formatTime(now),
          reason: 'Local',
          message: 'Local APIServices are always available',
        },
      ],
    },
  };
}
