/** RuntimeClass: overhead, node selector and tolerations of a Pod's runtime (plugin/pkg/admission/runtimeclass). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import { sameAmounts, toAmounts } from '@coracle/apimachinery/quota/amounts';
import type * as types from '@coracle/apimachinery/types/types';
import type { RuntimeClass } from '@coracle/apimachinery/types/types';
import type { ObjectStore } from '../cache/object-store.ts';
import { mergeTolerations } from './merge-tolerations.ts';
import type { AdmissionPlugin } from './plugin.ts';

const CLASSES_PREFIX = 'node.k8s.io/runtimeclasses';
const PODS = { group: '', resource: 'pods' };

type RuntimeClassParts = DeepReadonly<Partial<RuntimeClass>>;
type PodSpec = Partial<types.PodSpec>;

const isSame = (a: Readonly<Record<string, string>> | undefined, b: Readonly<Record<string, string>>): boolean =>
  sameAmounts(toAmounts(a), toAmounts(b));
const mismatch = (pod: string): ApiError =>
  forbidden(PODS, pod, `pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`);

/** The plug-in over this store's classes. */
export function runtimeClass(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  const classOf = (spec: PodSpec, pod: string): RuntimeClassParts | undefined => {
    const { runtimeClassName: name } = spec;
    if (!name) return undefined;
    const found = store.peek({ prefix: CLASSES_PREFIX, namespace: '', name });
    if (!found) throw forbidden(PODS, pod, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
    return found.object as RuntimeClassParts;
  };
  return {
    name: 'RuntimeClass',
    matches: (operation, info, subresource) =>
      operation === 'CREATE' && info.resource === 'pods' && info.group === '' && subresource === '',
    mutate({ object, name }) {
      if (!isJsonObject(object!['spec'])) return;
      const spec = object!['spec'] as PodSpec;
      const found = classOf(spec, name);
      if (!found) return;
      const fixed = found.overhead?.podFixed;
      if (fixed) {
        if (Object.keys(spec.overhead ?? {}).length > 0 && !isSame(spec.overhead, fixed)) throw mismatch(name);
        spec.overhead = { ...fixed };
      }
      const { nodeSelector, tolerations } = found.scheduling ?? {};
      for (const [key, value] of Object.entries(nodeSelector ?? {})) {
        const own = spec.nodeSelector?.[key];
        if (own !== undefined && own !== value) {
          throw forbidden(
            PODS,
            name,
            `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
          );
        }
        spec.nodeSelector = { ...spec.nodeSelector, [key]: value };
      }
      if (tolerations) spec.tolerations = mergeTolerations(spec.tolerations ?? [], cloneJson(tolerations));
    },
    validate({ object, name }) {
      if (!isJsonObject(object!['spec'])) return;
      const spec = object!['spec'] as PodSpec;
      const found = classOf(spec, name);
      const fixed = found?.overhead?.podFixed;
      // Somebody behind the mutating plug-in may have changed it.
      if (fixed && !isSame(spec.overhead, fixed)) throw mismatch(name);
      if (!fixed && Object.keys(spec.overhead ?? {}).length > 0) {
        throw forbidden(
          PODS,
          name,
          'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
        );
      }
    },
  };
}
