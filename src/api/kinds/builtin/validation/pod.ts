/** Validation of Pods: the spec on create, and on update that only the few mutable fields moved. */
import { cloneJson } from '../../../meta/deep-clone.ts';
import { deepEqual } from '../../../meta/deep-equal.ts';
import { checkQualifiedName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { isObject, type JsonObject, listAt, numberAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { duplicate, forbidden, invalid } from './field-errors.ts';
import { validatePodSpec } from './pod-spec.ts';
import { validatePodStatus } from './pod-status.ts';

const ONLY_THESE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

export function* validatePod(pod: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const errors = yield* validatePodSpec(valueAt(pod, 'spec'), { path: 'spec' });
  for (const error of judgeGates(pod)) errors.push(error);
  if (old !== undefined) yield;
  if (old !== undefined) return [...errors, ...validatePodUpdate(pod, old), ...validatePodStatus(pod, old)];
  // Writes through some subresources are judged without what was before: only what is new has no version.
  return valueAt(pod, 'metadata', 'resourceVersion') === undefined ? [...errors, ...judgeNewPod(pod)] : errors;
}

function judgeGates(pod: JsonObject): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(pod, 'spec', 'schedulingGates').flatMap((gate, i) => {
    const name = textAt(gate, 'name');
    const field = `spec.schedulingGates[${i}]`;
    const errors = checkQualifiedName(name).map((detail) => invalid(field, name, detail));
    if (seen.has(name)) errors.push(duplicate(field, name));
    seen.add(name);
    return errors;
  });
}

function judgeNewPod(pod: JsonObject): FieldError[] {
  const spec = valueAt(pod, 'spec');
  const errors: FieldError[] = [];
  if (listAt(spec, 'ephemeralContainers').length > 0) {
    errors.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if (textAt(spec, 'nodeName') !== '' && listAt(spec, 'schedulingGates').length > 0) {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors;
}

function validatePodUpdate(pod: JsonObject, old: JsonObject): FieldError[] {
  const errors = [...validateDeadline(pod, old), ...validateTolerations(pod, old)];
  const now = withMutableFieldsOf(pod, old);
  const before = valueAt(old, 'spec');
  if (deepEqual(now, before)) return errors;
  return [...errors, forbidden('spec', `${ONLY_THESE}\n${changedFields(now, before)}`)];
}

/** The new spec with every field that may change put back as it was: what still differs may not. */
function withMutableFieldsOf(pod: JsonObject, old: JsonObject): Record<string, unknown> {
  const spec = cloneJson(valueAt(pod, 'spec') ?? {}) as Record<string, unknown>;
  const before = valueAt(old, 'spec');
  for (const list of ['containers', 'initContainers']) {
    const previous = objectsAt(before, list);
    objectsAt(spec, list).forEach((container, i) => {
      const was = previous[i];
      if (was !== undefined) restore(container, was, 'image');
    });
  }
  restore(spec, before, 'activeDeadlineSeconds');
  restore(spec, before, 'tolerations');
  if (numberAt(before, 'terminationGracePeriodSeconds') < 0 && spec['terminationGracePeriodSeconds'] === 1) {
    restore(spec, before, 'terminationGracePeriodSeconds');
  }
  if (listAt(before, 'schedulingGates').length > 0) restoreGated(spec, before);
  return spec;
}

/** A gated Pod may lose gates and narrow its placement. */
function restoreGated(spec: Record<string, unknown>, before: unknown): void {
  const gates = new Set(objectsAt(before, 'schedulingGates').map((gate) => textAt(gate, 'name')));
  if (objectsAt(spec, 'schedulingGates').every((gate) => gates.has(textAt(gate, 'name')))) {
    restore(spec, before, 'schedulingGates');
  }
  for (const field of ['nodeSelector', 'affinity']) restore(spec, before, field);
}

function restore(object: Record<string, unknown>, before: unknown, field: string): void {
  const value = valueAt(before, field);
  if (value === undefined) delete object[field];
  else object[field] = value;
}

/** The top-level fields of spec that differ, so that the user need not search. */
function changedFields(now: Record<string, unknown>, before: unknown): string {
  const was = isObject(before) ? before : {};
  const names = new Set([...Object.keys(now), ...Object.keys(was)]);
  return [...names]
    .filter((name) => !deepEqual(now[name], was[name]))
    .map((name) => `spec.${name}`)
    .sort()
    .join(', ');
}

/** A deadline may be set and shortened, never lengthened or removed. */
function validateDeadline(pod: JsonObject, old: JsonObject): FieldError[] {
  const before = valueAt(old, 'spec', 'activeDeadlineSeconds');
  if (typeof before !== 'number') return [];
  const path = 'spec.activeDeadlineSeconds';
  const now = valueAt(pod, 'spec', 'activeDeadlineSeconds');
  if (typeof now !== 'number') return [invalid(path, null, 'must not update from a positive integer to nil value')];
  return now > before ? [invalid(path, now, 'must be less than or equal to previous value')] : [];
}

function validateTolerations(pod: JsonObject, old: JsonObject): FieldError[] {
  const now = objectsAt(pod, 'spec', 'tolerations');
  const kept = (was: JsonObject): boolean =>
    now.some((toleration) =>
      deepEqual({ ...toleration, tolerationSeconds: null }, { ...was, tolerationSeconds: null }),
    );
  return objectsAt(old, 'spec', 'tolerations').every(kept)
    ? []
    : [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')];
}
