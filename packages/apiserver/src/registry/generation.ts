/** When metadata.generation moves on an update. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

const OUTSIDE = new Set(['metadata', 'status', 'apiVersion', 'kind']);

/** True when the change from `old` to `object` is one that controllers must act on. */
export function movesGeneration(
  info: ResourceInfo,
  object: Readonly<UnstructuredObject>,
  old: Readonly<UnstructuredObject>,
): boolean {
  const rule = info.strategy.generation;
  switch (rule) {
    case 'none':
    case 'one':
      return false;
    case 'spec':
      // Deployments hand their annotations down to ReplicaSets, so those count as well (deployment/strategy.go).
      return (
        !deepEqual(object['spec'], old['spec']) ||
        (info.group === 'apps' &&
          info.resource === 'deployments' &&
          !deepEqual(object.metadata.annotations ?? {}, old.metadata.annotations ?? {}))
      );
    case 'except-status': {
      // Proxies choose their slices by label, so those count as well (endpointslice/strategy.go).
      if (
        info.group === 'discovery.k8s.io' &&
        info.resource === 'endpointslices' &&
        !deepEqual(object.metadata.labels ?? {}, old.metadata.labels ?? {})
      ) {
        return true;
      }
      const statusIsData = !info.strategy.statusSubresource;
      for (const field of new Set([...Object.keys(object), ...Object.keys(old)])) {
        if (OUTSIDE.has(field) && !(statusIsData && field === 'status')) continue;
        if (!deepEqual(object[field], old[field])) return true;
      }
      return false;
    }
    default:
      return rule satisfies never;
  }
}
