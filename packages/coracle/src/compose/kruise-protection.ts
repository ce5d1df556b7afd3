/**
 * OpenKruise's label against deletion, without OpenKruise: what its webhooks refuse is refused here, in the words a client
 * of theirs sees, and counted under their names. It stands where webhooks stand, before them: where OpenKruise itself is
 * installed its webhooks are asked about what was not refused here.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import { denial } from '@coracle/apiserver/admission/webhook/webhook-failure';
import type { ObjectStore, StoredObject } from '@coracle/apiserver/cache/object-store';
import { type KruiseHook, kruiseHookOf } from '@coracle/kubevirt/rules/protection/kruise-label';
import {
  isActivePod,
  isBoundClaim,
  type KruiseCounts,
  type KruiseSubject,
  kruiseRefusal,
} from '@coracle/kubevirt/rules/protection/kruise-refusal';
import { createCounter } from '@coracle/runtime/metrics/counter';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import type { RefusalEvidence } from './refusal-evidence.ts';

export interface KruiseProtection {
  readonly plugin: AdmissionPlugin;
  families(): MetricFamily[];
}

/** Makes the plug-in over a store. */
export function createKruiseProtection({
  store,
  evidence,
}: {
  readonly store: Pick<ObjectStore, 'list'>;
  readonly evidence: RefusalEvidence;
}): KruiseProtection {
  const counts = countsIn(store);
  const denials = createDenials();
  return {
    plugin: {
      name: 'KruiseDeletionProtection',
      matches: (operation, { group, resource }, subresource) =>
        operation === 'DELETE' && subresource === '' && kruiseHookOf(group, resource) !== undefined,
      validate(attributes) {
        const { info, oldObject } = attributes;
        const hook = kruiseHookOf(info.group, info.resource)!;
        const message = oldObject && kruiseRefusal(hook, oldObject as unknown as KruiseSubject, counts);
        if (message === undefined) return;
        denials.add(hook, attributes);
        evidence.refused(attributes, { policy: hook.name, reason: 'KruiseDeleteProtected', message });
        throw denial(hook.name, { code: 403, message });
      },
    },
    families: denials.families,
  };
}

/** How many there are now: in the state that is published, not in a cache behind it. */
function countsIn(store: Pick<ObjectStore, 'list'>): KruiseCounts {
  const count = (prefix: string, match: (item: StoredObject) => boolean, namespace?: string): number =>
    store.list(prefix, { match, ...(namespace !== undefined && { namespace }) }).items.length;
  return {
    activePods: (namespace) => count('/pods', ({ object }) => isActivePod(object), namespace),
    boundClaims: (namespace) => count('/persistentvolumeclaims', ({ object }) => isBoundClaim(object), namespace),
    customResources: (group, resource) =>
      count(`${group}/${resource}`, ({ metadata }) => metadata.deletionTimestamp === undefined),
  };
}

/** OpenKruise counts no Services and no Ingresses. */
function createDenials() {
  const namespaces = createCounter('namespace_deletion_protection', 'Namespace Deletion Protection');
  const definitions = createCounter('crd_deletion_protection', 'CustomResourceDefinition Deletion Protection');
  const workloads = createCounter('workload_deletion_protection', 'Workload Deletion Protection');
  return {
    add({ cascade }: KruiseHook, { info, namespace, oldObject, user }: AdmissionAttributes): void {
      const { username } = user;
      // Of the object: the request of a collection names none.
      const { name = '' } = (oldObject as Readonly<UnstructuredObject>).metadata;
      if (cascade === 'namespace') namespaces.add({ name, username });
      if (cascade === 'definition') definitions.add({ name, username });
      if (cascade === 'replicas') workloads.add({ kind_namespace_name: `${info.kind}_${namespace}_${name}`, username });
    },
    families: (): MetricFamily[] => [namespaces, definitions, workloads].map(({ family }) => family()),
  };
}
