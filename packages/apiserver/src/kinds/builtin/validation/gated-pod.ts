/** What may change of a Pod that waits at scheduling gates: gates go, and its placement gets narrower (core/validation). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  listAt,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { forbidden, invalid, validateEach } from '@coracle/apimachinery/validation/field-errors';

const TERMS_AT = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

/** Gates are taken away, never added, of any Pod. */
export function validateKeptGates(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  const before = new Set(objectsAt(old, 'spec', 'schedulingGates').map((gate) => textAt(gate, 'name')));
  validateEach(errors, objectsAt(pod, 'spec', 'schedulingGates'), (gate, i) => {
    const name = textAt(gate, 'name');
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return before.has(name) ? [] : [forbidden(`spec.schedulingGates[${i}].name`, detail)];
  });
}

/** Validates what a gated Pod says about nodes: labels and requirements are added, none is taken away. */
export function validatePlacement(errors: FieldError[], spec: unknown, before: unknown): void {
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
  for (const list of lists) {
    const before = listAt(was, list);
    const after = listAt(now, list);
    if (after.length < before.length) return false;
    if (!deepEqual(after.slice(0, before.length), before)) return false;
  }
  return true;
}

/** The affinity of a gated Pod with what it says about nodes as it was: the rest may not change. */
export function affinityBesideNodes(spec: unknown, before: unknown): JsonObject | undefined {
  const now = valueAt(spec, 'affinity');
  const nodes = valueAt(before, 'affinity', 'nodeAffinity');
  if (!isObject(now)) return nodes === undefined ? undefined : { nodeAffinity: nodes };
  const { nodeAffinity: _nodes, ...rest } = now;
  if (valueAt(before, 'affinity') === undefined && Object.keys(rest).length === 0) return undefined;
  return { ...rest, ...(nodes !== undefined && { nodeAffinity: nodes }) };
}
