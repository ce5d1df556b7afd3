/** `pods/binding`: the scheduler's one write. A pod is bound once (core/pod/storage.go assignPod). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { conflict, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { PodParts } from '@coracle/apimachinery/types/types';
import { uidConflict } from './uid-conflict.ts';

/** Throws ApiError 422 when the Binding names no node. */
export function validateBinding(binding: Readonly<UnstructuredObject>, name: string): string {
  const target = (binding['target'] ?? {}) as { kind?: string; name?: string };
  const { kind: value = '' } = target;
  const errors: FieldError[] = [];
  if (value !== '' && value !== 'Node') {
    const detail = 'supported values: "Node", "<empty>"';
    errors.push({ type: 'FieldValueNotSupported', field: 'target.kind', value, detail });
  }
  if (!target.name) errors.push({ type: 'FieldValueRequired', field: 'target.name' });
  if (errors.length > 0) throw invalid({ group: '', kind: 'Binding' }, name, errors);
  return target.name!;
}

/** What upstream says a bound Pod is in the way of (BindingREST.assignPod). */
const BINDING = { group: '', resource: 'pods/binding' };

/** The pod as bound by `binding`. Throws ApiError 409 when it is bound, terminating, gated, or another than meant. */
export function boundPod(
  info: ResourceInfo,
  pod: Readonly<UnstructuredObject>,
  {
    binding,
    node,
    now,
  }: { readonly binding: Readonly<UnstructuredObject>; readonly node: string; readonly now: number },
): UnstructuredObject {
  const next = cloneJson(pod) as UnstructuredObject & PodParts;
  const name = next.metadata.name ?? '';
  if (next.metadata.deletionTimestamp !== undefined) {
    throw conflict(BINDING, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if (next.spec?.nodeName)
    throw conflict(BINDING, name, `pod ${name} is already assigned to node "${next.spec.nodeName}"`);
  if ((next.spec?.schedulingGates ?? []).length > 0) {
    throw conflict(BINDING, name, `pod ${name} has non-empty .spec.schedulingGates`);
  }
  next.spec = { ...next.spec, nodeName: node };
  const { annotations, labels, uid, resourceVersion } = binding.metadata;
  const found = pod.metadata.uid ?? '';
  if (uid && uid !== found) throw uidConflict(info, name, { wanted: uid, found });
  if (annotations) next.metadata.annotations = { ...next.metadata.annotations, ...annotations };
  if (labels) next.metadata.labels = { ...next.metadata.labels, ...labels };
  if (resourceVersion) next.metadata.resourceVersion = resourceVersion;
  const conditions = (next.status?.conditions ?? []).filter((condition) => condition.type !== 'PodScheduled');
  conditions.push({
    type: 'PodScheduled',
    observedGeneration: next.metadata.generation ?? 0,
    status: 'True',
    lastTransitionTime: formatTime(now),
  });
  // Room was made for it, and it has it.
  const { nominatedNodeName: _used, ...status } = next.status ?? {};
  next.status = { ...status, conditions };
  return next;
}
