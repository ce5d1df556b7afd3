/** RuntimeClass: overhead, node selector and tolerations of a Pod's runtime (plugin/pkg/admission/runtimeclass). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type ApiError, forbidden } from '@coracle/apimachinery/meta/status';
import { sameAmounts, toAmounts } from '@coracle/apimachinery/quota/amounts';
import type * as types from '@coracle/apimachinery/types/types';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const CLASSES_PREFIX = 'node.k8s.io/runtimeclasses';
const PODS = { group: '', resource: 'pods' };

type RuntimeClassParts = DeepReadonly<Partial<types.RuntimeClass>>;
type PodSpec = Partial<types.PodSpec>;

const isSame = (a: Readonly<Record<string, string>> | undefined, b: Readonly<Record<string, string>>): boolean =>
  sameAmounts(toAmounts(a), toAmounts(b));
const rejected = (pod: string, why: string): ApiError => forbidden(PODS, pod, `pod rejected: ${why}`);
const MISMATCH = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const UNDEFINED = 'Pod Overhead set without corresponding RuntimeClass defined Overhead';

/** The plug-in over this store's classes. */
export function runtimeClass(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  const classOf = (spec: PodSpec, pod: string): RuntimeClassParts | undefined => {
    const { runtimeClassName: name } = spec;
    if (!name) return undefined;
    const found = store.peek({ prefix: CLASSES_PREFIX, namespace: '', name });
    if (!found) throw rejected(pod, `RuntimeClass ${JSON.stringify(name)} not found`);
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
        if (Object.keys(spec.overhead ?? {}).length > 0 && !isSame(spec.overhead, fixed))
          throw rejected(name, MISMATCH);
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
      const fixed = classOf(spec, name)?.overhead?.podFixed;
      // Somebody behind the mutating plug-in may have changed it.
      if (fixed && !isSame(spec.overhead, fixed)) throw rejected(name, MISMATCH);
      if (!fixed && Object.keys(spec.overhead ?? {}).length > 0) throw rejected(name, UNDEFINED);
    },
  };
}

/** The tolerations of both, without those that another one covers; of equal ones the first stays (util/tolerations). */
function mergeTolerations(first: readonly types.Toleration[], second: readonly types.Toleration[]): types.Toleration[] {
  const all = [...first, ...second];
  const merged: types.Toleration[] = [];
  all.forEach((one, i) => {
    if (merged.some((kept) => covers(kept, one))) return;
    if (all.slice(i + 1).some((later) => !deepEqual(later, one) && covers(later, one))) return;
    merged.push(one);
  });
  return merged;
}

/** True when everything `narrow` tolerates, `wide` does too. */
function covers(wide: types.Toleration, narrow: types.Toleration): boolean {
  if (deepEqual(wide, narrow)) return true;
  const { key = '', operator = 'Equal', value = '', effect = '', tolerationSeconds } = wide;
  // No key with Exists means every key.
  if ((narrow.key ?? '') !== key && (key !== '' || operator !== 'Exists')) return false;
  if ((narrow.effect ?? '') !== effect && effect !== '') return false;
  if (effect === 'NoExecute' && tolerationSeconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || narrow.tolerationSeconds > tolerationSeconds) return false;
  }
  if (operator === 'Exists') return true;
  return operator === 'Equal' && (narrow.operator ?? 'Equal') === 'Equal' && (narrow.value ?? '') === value;
}
