/** Validation of Pods: the spec on create, and on update that only the few mutable fields moved. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { checkQualifiedName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { stableText } from '@coracle/apimachinery/schema/list-types';
import {
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  forbidden,
  IMMUTABLE,
  invalid,
  invalidEach,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { validatePodSpec } from './pod-spec.ts';
import { legacyAddressProblem } from './strict-addresses.ts';

const SYSTEM_CONDITIONS = new Set(['PodScheduled', 'Ready', 'Initialized']);

/** The class is found out once, on create; the path of conditions is upstream's. */
function validatePodStatus(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  validateEach(errors, objectsAt(pod, 'status', 'conditions'), (condition, i) => {
    const type = textAt(condition, 'type');
    if (SYSTEM_CONDITIONS.has(type)) return [];
    return invalidEach(`metadata.conditions[${i}].Condition`, type, checkQualifiedName(type));
  });
  const node = textAt(pod, 'status', 'nominatedNodeName');
  if (node !== '' && node !== textAt(old, 'status', 'nominatedNodeName')) {
    errors.push(...invalidEach('status.nominatedNodeName', node, checkSubdomain(node)));
  }
  const [before, now] = [old, pod].map((one) => textAt(one, 'status', 'qosClass'));
  if (before !== '' && before !== now) errors.push(invalid('status.qosClass', now, IMMUTABLE));
  validateIps(errors, pod, old);
}

/** One address of each family; what stands there already may stay. */
function validateIps(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  const path = 'status.podIPs';
  const entries = objectsAt(pod, 'status', 'podIPs');
  const before = new Set(objectsAt(old, 'status', 'podIPs').map((entry) => textAt(entry, 'ip')));
  validateEach(errors, entries, (entry, i) => {
    const ip = textAt(entry, 'ip');
    const problem = before.has(ip) ? undefined : legacyAddressProblem(ip);
    return problem === undefined ? [] : [invalid(`${path}[${i}]`, ip, problem)];
  });
  const families = new Set(entries.map((entry) => textAt(entry, 'ip').includes(':')));
  if (entries.length < 2 || families.size === entries.length) return;
  errors.push(invalid(path, entries, 'may specify no more than one IP for each IP family'));
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const TERMS_AT = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;

/** Gates are taken away, never added, of any Pod. */
function validateKeptGates(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  const before = new Set(objectsAt(old, 'spec', 'schedulingGates').map((gate) => textAt(gate, 'name')));
  validateEach(errors, objectsAt(pod, 'spec', 'schedulingGates'), (gate, i) => {
    const name = textAt(gate, 'name');
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return before.has(name) ? [] : [forbidden(`spec.schedulingGates[${i}].name`, detail)];
  });
}

/** Validates what a gated Pod says about nodes: labels and requirements are added, none is taken away. */
function validatePlacement(errors: FieldError[], spec: unknown, before: unknown): void {
  const selector = objectAt(spec, 'nodeSelector');
  const labels = objectAt(before, 'nodeSelector');
  if (Object.keys(labels).some((key) => selector[key] !== labels[key])) {
    const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
    errors.push(invalid('spec.nodeSelector', selector, detail));
  }
  const was = termsOf(before);
  if (was.length === 0) return;
  const now = termsOf(spec);
  if (now.length !== was.length) {
    const detail = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    errors.push(invalid(TERMS_AT, now.length === 0 ? null : now, detail));
    return;
  }
  for (const [i, term] of now.entries()) {
    if (isNarrower(term, was[i]!)) continue;
    const detail = 'only additions are allowed (no mutations or deletions)';
    errors.push(invalid(`${TERMS_AT}[${i}]`, term, detail));
  }
}

const termsOf = (spec: unknown): readonly JsonObject[] =>
  objectsAt(spec, 'affinity', 'nodeAffinity', REQUIRED, 'nodeSelectorTerms');

/** True when a term still begins with all that it asked for; one that asked for nothing chose no node. */
function isNarrower(now: JsonObject, was: JsonObject): boolean {
  const lists = ['matchExpressions', 'matchFields'];
  if (lists.every((list) => listAt(was, list).length === 0)) {
    return lists.every((list) => listAt(now, list).length === 0);
  }
  return lists.every((list) => {
    const before = listAt(was, list);
    return deepEqual(listAt(now, list).slice(0, before.length), before);
  });
}

/** The affinity of a gated Pod with what it says about nodes as it was: the rest may not change. */
function affinityBesideNodes(spec: unknown, before: unknown): JsonObject | undefined {
  const now = valueAt(spec, 'affinity');
  const nodes = valueAt(before, 'affinity', 'nodeAffinity');
  if (!isObject(now)) return nodes === undefined ? undefined : { nodeAffinity: nodes };
  const { nodeAffinity: _nodes, ...rest } = now;
  if (valueAt(before, 'affinity') === undefined && Object.keys(rest).length === 0) return undefined;
  return { ...rest, ...(nodes !== undefined && { nodeAffinity: nodes }) };
}

const ONLY_THESE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

export function validatePod(pod: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  validatePodSpec(errors, valueAt(pod, 'spec'), valueAt(old, 'spec'));
  validateGates(errors, pod);
  if (old !== undefined) {
    validatePodUpdate(errors, pod, old);
    validatePodStatus(errors, pod, old);
  }
  // Writes through some subresources are validated without what was before: only what is new has no version.
  else if (valueAt(pod, 'metadata', 'resourceVersion') === undefined) errors.push(...newPodErrors(pod));
  return errors;
}

function validateGates(errors: FieldError[], pod: JsonObject): void {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(pod, 'spec', 'schedulingGates'), (gate, i) => {
    const name = textAt(gate, 'name');
    const field = `spec.schedulingGates[${i}]`;
    const errors = invalidEach(field, name, checkQualifiedName(name));
    if (seen.has(name)) errors.push(duplicate(field, name));
    seen.add(name);
    return errors;
  });
}

function newPodErrors(pod: JsonObject): FieldError[] {
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

function validatePodUpdate(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  errors.push(...deadlineErrors(pod, old));
  validateTolerations(errors, pod, old);
  validateKeptGates(errors, pod, old);
  if (isGated(old)) validatePlacement(errors, valueAt(pod, 'spec'), valueAt(old, 'spec'));
  const now = withMutableFieldsOf(pod, old);
  const before = valueAt(old, 'spec');
  const changed = changedFields(now, before);
  if (changed.length > 0) errors.push(forbidden('spec', `${ONLY_THESE}\n${changed.sort().join(', ')}`));
}

/** The new spec with every field that may change put back as it was: what still differs may not. */
function withMutableFieldsOf(pod: JsonObject, old: JsonObject): Record<string, unknown> {
  const spec = { ...objectAt(pod, 'spec') };
  const before = valueAt(old, 'spec');
  for (const list of ['containers', 'initContainers']) {
    const previous = objectsAt(before, list);
    // What comes here is valid: each item is a container.
    if (!Array.isArray(spec[list])) continue;
    spec[list] = spec[list].map((container: unknown, i) => {
      if (!isObject(container) || previous[i] === undefined) return container;
      const kept = { ...container };
      restore(kept, previous[i], 'image');
      return kept;
    });
  }
  for (const field of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates']) restore(spec, before, field);
  if (numberAt(before, 'terminationGracePeriodSeconds') < 0 && spec['terminationGracePeriodSeconds'] === 1) {
    restore(spec, before, 'terminationGracePeriodSeconds');
  }
  if (!isGated(old)) return spec;
  restore(spec, before, 'nodeSelector');
  const affinity = affinityBesideNodes(spec, before);
  if (affinity === undefined) delete spec['affinity'];
  else spec['affinity'] = affinity;
  return spec;
}

const isGated = (pod: JsonObject): boolean => listAt(pod, 'spec', 'schedulingGates').length > 0;

function restore(object: Record<string, unknown>, before: unknown, field: string): void {
  const value = valueAt(before, field);
  if (value === undefined) delete object[field];
  else object[field] = value;
}

/** The top-level fields of spec that differ, so that the user need not search. */
function changedFields(now: JsonObject, before: unknown): string[] {
  const was = isObject(before) ? before : {};
  const changed = Object.keys({ ...now, ...was }).filter((name) => !deepEqual(now[name], was[name]));
  return changed.map((name) => `spec.${name}`);
}

/** A deadline may be set and shortened, never lengthened or removed. */
function deadlineErrors(pod: JsonObject, old: JsonObject): FieldError[] {
  const before = valueAt(old, 'spec', 'activeDeadlineSeconds');
  if (typeof before !== 'number') return [];
  const path = 'spec.activeDeadlineSeconds';
  const now = valueAt(pod, 'spec', 'activeDeadlineSeconds');
  if (typeof now !== 'number') return [invalid(path, null, 'must not update from a positive integer to nil value')];
  return now > before ? [invalid(path, now, 'must be less than or equal to previous value')] : [];
}

/** Every toleration stays, but for how long it lasts. */
function validateTolerations(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  const kept = new Set(objectsAt(pod, 'spec', 'tolerations').map(timeless));
  if (objectsAt(old, 'spec', 'tolerations').every((toleration) => kept.has(timeless(toleration)))) return;
  errors.push(forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds'));
}

const timeless = (toleration: JsonObject): string => stableText({ ...toleration, tolerationSeconds: null });
