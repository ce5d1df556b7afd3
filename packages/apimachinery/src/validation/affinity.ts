/** Validation of affinities and topology spread constraints, of pods and of what becomes a pod (core/validation). */
import { checkLabelName, checkLabelValue, checkQualifiedName, checkSubdomain } from '../meta/name-rules.ts';
import type { FieldError } from '../meta/status.ts';
import { isObject, listAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../types/read-value.ts';
import {
  duplicate,
  forbidden,
  invalid,
  invalidEach,
  required,
  unsupported,
  validateEach,
  validateLabels,
  validateNested,
} from './field-errors.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const UNSATISFIABLE = ['DoNotSchedule', 'ScheduleAnyway'];
const NONE: readonly FieldError[] = [];
const NOT_AN_OPERATOR = 'not a valid selector operator';

/** Validates an Affinity that stands at `path`; it may be absent. */
export function validateAffinity(errors: FieldError[], affinity: unknown, path: string): void {
  if (!isObject(affinity)) return;
  const node = valueAt(affinity, 'nodeAffinity');
  if (isObject(node)) validateNodeAffinity(errors, node, `${path}.nodeAffinity`);
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const pods = valueAt(affinity, kind);
    if (isObject(pods)) validatePodAffinity(errors, pods, `${path}.${kind}`);
  }
}

function validateNodeAffinity(errors: FieldError[], affinity: unknown, path: string): void {
  const selector = valueAt(affinity, REQUIRED);
  if (isObject(selector)) validateRequiredNodes(errors, selector, `${path}.${REQUIRED}`);
  for (const [i, term] of objectsAt(affinity, PREFERRED).entries()) {
    const at = `${path}.${PREFERRED}[${i}]`;
    errors.push(...validateWeight(term, at));
    validateNodeTerm(errors, valueAt(term, 'preference'), `${at}.preference`);
  }
}

/** Validates a NodeSelector: the terms of which one has to hold. */
export function validateRequiredNodes(errors: FieldError[], selector: unknown, path: string): void {
  const at = `${path}.nodeSelectorTerms`;
  const terms = objectsAt(selector, 'nodeSelectorTerms');
  if (terms.length === 0) errors.push(required(at, 'must have at least one node selector term'));
  for (const [i, term] of terms.entries()) validateNodeTerm(errors, term, `${at}[${i}]`);
}

function validateWeight(term: unknown, path: string): FieldError[] {
  const weight = valueAt(term, 'weight') ?? 0;
  return typeof weight === 'number' && weight >= 1 && weight <= 100
    ? []
    : [invalid(`${path}.weight`, weight, 'must be in the range 1-100')];
}

function validateNodeTerm(errors: FieldError[], term: unknown, path: string): void {
  validateEach(errors, objectsAt(term, 'matchExpressions'), (one, i) =>
    validateNodeExpression(one, `${path}.matchExpressions[${i}]`),
  );
  for (const [i, one] of objectsAt(term, 'matchFields').entries()) {
    validateNodeField(errors, one, `${path}.matchFields[${i}]`);
  }
}

const valuesOf = (requirement: unknown): readonly unknown[] => listAt(requirement, 'values');

function validateNodeExpression(requirement: unknown, path: string): readonly FieldError[] {
  const errors = validateOperator(requirement, path, ['Gt', 'Lt']);
  const key = textAt(requirement, 'key');
  const details = checkQualifiedName(key);
  return details.length === 0 ? errors : [...errors, ...invalidEach(`${path}.key`, key, details)];
}

/** `single` are the operators that compare with one number. */
function validateOperator(requirement: unknown, path: string, single: readonly string[] = []): readonly FieldError[] {
  const values = valuesOf(requirement);
  const operator = textAt(requirement, 'operator');
  const at = `${path}.values`;
  if (operator === 'In' || operator === 'NotIn') {
    return values.length > 0 ? NONE : [required(at, "must be specified when `operator` is 'In' or 'NotIn'")];
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    return values.length === 0 ? NONE : [forbidden(at, text)];
  }
  if (single.includes(operator)) {
    const text = "must be specified single value when `operator` is 'Lt' or 'Gt'";
    return values.length === 1 ? NONE : [required(at, text)];
  }
  return [invalid(`${path}.operator`, operator, NOT_AN_OPERATOR)];
}

function validateNodeField(errors: FieldError[], requirement: unknown, path: string): void {
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
  validateEach(errors, values, (value, i) => invalidEach(`${path}.values[${i}]`, value, checkSubdomain(String(value))));
}

function validatePodAffinity(errors: FieldError[], affinity: unknown, path: string): void {
  for (const [i, term] of objectsAt(affinity, REQUIRED).entries()) {
    validatePodTerm(errors, term, `${path}.${REQUIRED}[${i}]`);
  }
  for (const [i, term] of objectsAt(affinity, PREFERRED).entries()) {
    const at = `${path}.${PREFERRED}[${i}]`;
    errors.push(...validateWeight(term, at));
    validatePodTerm(errors, valueAt(term, 'podAffinityTerm'), `${at}.podAffinityTerm`);
  }
}

function validatePodTerm(errors: FieldError[], term: unknown, path: string): void {
  validateLabelSelector(errors, valueAt(term, 'labelSelector'), `${path}.labelSelector`);
  validateLabelSelector(errors, valueAt(term, 'namespaceSelector'), `${path}.namespaceSelector`);
  validateEach(errors, textsAt(term, 'namespaces'), (name) =>
    invalidEach(`${path}.namespace`, name, checkLabelName(name)),
  );
  const key = textAt(term, 'topologyKey');
  if (key === '') errors.push(required(`${path}.topologyKey`, 'can not be empty'));
  errors.push(...invalidEach(`${path}.topologyKey`, key, checkQualifiedName(key)));
}

/** Validates a label selector that stands at `path`; it may be absent (metav1validation.ValidateLabelSelector). */
export function validateLabelSelector(errors: FieldError[], selector: unknown, path: string): void {
  if (!isObject(selector)) return;
  validateLabels(errors, objectAt(selector, 'matchLabels'), `${path}.matchLabels`);
  validateNested(errors, objectsAt(selector, 'matchExpressions'), (one, i) => {
    const at = `${path}.matchExpressions[${i}]`;
    errors.push(...validateOperator(one, at));
    const key = textAt(one, 'key');
    errors.push(...invalidEach(`${at}.key`, key, checkQualifiedName(key)));
    validateEach(errors, valuesOf(one), (value, j) => {
      const details = checkLabelValue(String(value));
      // There may be half a million: no path is written for what is right.
      return details.length === 0 ? NONE : invalidEach(`${at}.values[${j}]`, value, details);
    });
  });
}

/** Validates the topology spread constraints of `spec`, whose list stands at `path`. */
export function validateTopologySpread(errors: FieldError[], spec: unknown, path: string): void {
  const constraints = objectsAt(spec, 'topologySpreadConstraints');
  const pairOf = (constraint: unknown): string =>
    `{${textAt(constraint, 'topologyKey')}, ${textAt(constraint, 'whenUnsatisfiable')}}`;
  const lastOf = new Map<string, number>();
  constraints.forEach((constraint, i) => {
    lastOf.set(pairOf(constraint), i);
  });
  validateEach(errors, constraints, (constraint, i) => {
    const at = `${path}[${i}]`;
    const errors: FieldError[] = [];
    const skew = valueAt(constraint, 'maxSkew') ?? 0;
    if (typeof skew !== 'number' || skew <= 0) errors.push(invalid(`${at}.maxSkew`, skew, 'must be greater than zero'));
    if (textAt(constraint, 'topologyKey') === '') errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    const action = textAt(constraint, 'whenUnsatisfiable');
    if (!UNSATISFIABLE.includes(action)) errors.push(unsupported(`${at}.whenUnsatisfiable`, action, UNSATISFIABLE));
    const pair = pairOf(constraint);
    // All but the last of a pair are reported.
    if (lastOf.get(pair) !== i) errors.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    return errors;
  });
}
