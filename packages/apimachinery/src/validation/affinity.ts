/** Validation of affinities and topology spread constraints, of pods and of what becomes a pod (core/validation). */
import { checkLabelName, checkLabelValue, checkQualifiedName, checkSubdomain } from '../meta/name-rules.ts';
import type { FieldError } from '../meta/status.ts';
import type { Steps } from '../meta/steps.ts';
import { isObject, listAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../types/read-value.ts';
import {
  duplicate,
  faults,
  forbidden,
  invalid,
  required,
  unsupported,
  type Validation,
  validateEach,
  validateLabels,
} from './field-errors.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const UNSATISFIABLE = ['DoNotSchedule', 'ScheduleAnyway'];
const NOT_AN_OPERATOR = 'not a valid selector operator';
/** What a term or an expression counts as, beside what it lists. */
const TERM = 2;

/** Validates an Affinity that stands at `path`; it may be absent. */
export function* validateAffinity(checking: Validation, affinity: unknown, path: string): Steps<void> {
  if (!isObject(affinity)) return;
  const node = valueAt(affinity, 'nodeAffinity');
  if (isObject(node)) yield* validateNodeAffinity(checking, node, `${path}.nodeAffinity`);
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const pods = valueAt(affinity, kind);
    if (isObject(pods)) yield* validatePodAffinity(checking, pods, `${path}.${kind}`);
  }
}

function* validateNodeAffinity(checking: Validation, affinity: unknown, path: string): Steps<void> {
  const selector = valueAt(affinity, REQUIRED);
  if (isObject(selector)) yield* validateRequiredNodes(checking, selector, `${path}.${REQUIRED}`);
  for (const [i, term] of objectsAt(affinity, PREFERRED).entries()) {
    const at = `${path}.${PREFERRED}[${i}]`;
    checking.errors.push(...validateWeight(term, at));
    yield* validateNodeTerm(checking, valueAt(term, 'preference'), `${at}.preference`);
  }
}

/** Validates a NodeSelector: the terms of which one has to hold. */
export function* validateRequiredNodes(checking: Validation, selector: unknown, path: string): Steps<void> {
  const at = `${path}.nodeSelectorTerms`;
  const terms = objectsAt(selector, 'nodeSelectorTerms');
  if (terms.length === 0) checking.errors.push(required(at, 'must have at least one node selector term'));
  for (const [i, term] of terms.entries()) yield* validateNodeTerm(checking, term, `${at}[${i}]`);
}

function validateWeight(term: unknown, path: string): FieldError[] {
  const weight = valueAt(term, 'weight') ?? 0;
  return typeof weight === 'number' && weight >= 1 && weight <= 100
    ? []
    : [invalid(`${path}.weight`, weight, 'must be in the range 1-100')];
}

function* validateNodeTerm(checking: Validation, term: unknown, path: string): Steps<void> {
  if (checking.pace.due(TERM)) yield;
  yield* validateEach(checking, objectsAt(term, 'matchExpressions'), (one, i) =>
    validateNodeExpression(one, `${path}.matchExpressions[${i}]`),
  );
  for (const [i, one] of objectsAt(term, 'matchFields').entries()) {
    yield* validateNodeField(checking, one, `${path}.matchFields[${i}]`);
  }
}

const valuesOf = (requirement: unknown): readonly unknown[] => listAt(requirement, 'values');

function validateNodeExpression(requirement: unknown, path: string): FieldError[] {
  const errors = validateOperator(requirement, path, ['Gt', 'Lt']);
  const key = textAt(requirement, 'key');
  return [...errors, ...faults(`${path}.key`, key, checkQualifiedName(key))];
}

/** `single` are the operators that compare with one number. */
function validateOperator(requirement: unknown, path: string, single: readonly string[] = []): FieldError[] {
  const values = valuesOf(requirement);
  const operator = textAt(requirement, 'operator');
  const at = `${path}.values`;
  if (operator === 'In' || operator === 'NotIn') {
    return values.length > 0 ? [] : [required(at, "must be specified when `operator` is 'In' or 'NotIn'")];
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    return values.length === 0 ? [] : [forbidden(at, text)];
  }
  if (single.includes(operator)) {
    return values.length === 1 ? [] : [required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
  }
  return [invalid(`${path}.operator`, operator, NOT_AN_OPERATOR)];
}

function* validateNodeField(checking: Validation, requirement: unknown, path: string): Steps<void> {
  const { errors, pace } = checking;
  if (pace.due(TERM)) yield;
  const values = valuesOf(requirement);
  const operator = textAt(requirement, 'operator');
  if (operator !== 'In' && operator !== 'NotIn') errors.push(invalid(`${path}.operator`, operator, NOT_AN_OPERATOR));
  else if (values.length !== 1) {
    const text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(required(`${path}.values`, text));
  }
  const key = textAt(requirement, 'key');
  if (key !== 'metadata.name') {
    errors.push(invalid(`${path}.key`, key, 'not a valid field selector key'));
    return;
  }
  yield* validateEach(checking, values, (value, i) =>
    faults(`${path}.values[${i}]`, value, checkSubdomain(String(value))),
  );
}

function* validatePodAffinity(checking: Validation, affinity: unknown, path: string): Steps<void> {
  for (const [i, term] of objectsAt(affinity, REQUIRED).entries()) {
    yield* validatePodTerm(checking, term, `${path}.${REQUIRED}[${i}]`);
  }
  for (const [i, term] of objectsAt(affinity, PREFERRED).entries()) {
    const at = `${path}.${PREFERRED}[${i}]`;
    checking.errors.push(...validateWeight(term, at));
    yield* validatePodTerm(checking, valueAt(term, 'podAffinityTerm'), `${at}.podAffinityTerm`);
  }
}

function* validatePodTerm(checking: Validation, term: unknown, path: string): Steps<void> {
  const { errors, pace } = checking;
  if (pace.due(TERM)) yield;
  yield* validateLabelSelector(checking, valueAt(term, 'labelSelector'), `${path}.labelSelector`);
  yield* validateLabelSelector(checking, valueAt(term, 'namespaceSelector'), `${path}.namespaceSelector`);
  yield* validateEach(checking, textsAt(term, 'namespaces'), (name) =>
    faults(`${path}.namespace`, name, checkLabelName(name)),
  );
  const key = textAt(term, 'topologyKey');
  if (key === '') errors.push(required(`${path}.topologyKey`, 'can not be empty'));
  errors.push(...faults(`${path}.topologyKey`, key, checkQualifiedName(key)));
}

function* validateLabelSelector(checking: Validation, selector: unknown, path: string): Steps<void> {
  if (!isObject(selector)) return;
  const { errors, pace } = checking;
  yield* validateLabels(checking, objectAt(selector, 'matchLabels'), `${path}.matchLabels`);
  for (const [i, one] of objectsAt(selector, 'matchExpressions').entries()) {
    if (pace.due(TERM)) yield;
    const at = `${path}.matchExpressions[${i}]`;
    errors.push(...validateOperator(one, at));
    const key = textAt(one, 'key');
    errors.push(...faults(`${at}.key`, key, checkQualifiedName(key)));
    yield* validateEach(checking, valuesOf(one), (value, j) =>
      faults(`${at}.values[${j}]`, value, checkLabelValue(String(value))),
    );
  }
}

/** Validates the topology spread constraints of `spec`, whose list stands at `path`. */
export function* validateTopologySpread(checking: Validation, spec: unknown, path: string): Steps<void> {
  const constraints = objectsAt(spec, 'topologySpreadConstraints');
  const pairOf = (constraint: unknown): string =>
    `{${textAt(constraint, 'topologyKey')}, ${textAt(constraint, 'whenUnsatisfiable')}}`;
  const lastOf = new Map<string, number>();
  yield* validateEach(checking, constraints, (constraint, i) => {
    lastOf.set(pairOf(constraint), i);
    return [];
  });
  yield* validateEach(checking, constraints, (constraint, i) => {
    const at = `${path}[${i}]`;
    const errors: FieldError[] = [];
    const skew = valueAt(constraint, 'maxSkew') ?? 0;
    if (typeof skew !== 'number' || skew <= 0) errors.push(invalid(`${at}.maxSkew`, skew, 'must be greater than zero'));
    if (textAt(constraint, 'topologyKey') === '') errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    const action = textAt(constraint, 'whenUnsatisfiable');
    if (!UNSATISFIABLE.includes(action)) {
      errors.push(unsupported(`${at}.whenUnsatisfiable`, action, UNSATISFIABLE));
    }
    const pair = pairOf(constraint);
    // All but the last of a pair are reported.
    if (lastOf.get(pair) !== i) errors.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    return errors;
  });
}
