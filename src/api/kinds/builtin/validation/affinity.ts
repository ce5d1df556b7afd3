/** Validation of affinities and topology spread constraints, of pods and of what becomes a pod (core/validation). */
import { checkLabelName, checkLabelValue, checkQualifiedName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { isObject, listAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { duplicate, forbidden, invalid, required, unsupported } from './field-errors.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const UNSATISFIABLE = ['DoNotSchedule', 'ScheduleAnyway'];
const NOT_AN_OPERATOR = 'not a valid selector operator';

/** Findings about an Affinity that stands at `path`; none when it is absent. */
export function validateAffinity(affinity: unknown, path: string): FieldError[] {
  if (!isObject(affinity)) return [];
  const errors: FieldError[] = [];
  const node = valueAt(affinity, 'nodeAffinity');
  if (isObject(node)) errors.push(...validateNodeAffinity(node, `${path}.nodeAffinity`));
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const pods = valueAt(affinity, kind);
    if (isObject(pods)) errors.push(...validatePodAffinity(pods, `${path}.${kind}`));
  }
  return errors;
}

function validateNodeAffinity(affinity: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const selector = valueAt(affinity, REQUIRED);
  if (isObject(selector)) {
    const at = `${path}.${REQUIRED}.nodeSelectorTerms`;
    const terms = objectsAt(selector, 'nodeSelectorTerms');
    if (terms.length === 0) errors.push(required(at, 'must have at least one node selector term'));
    terms.forEach((term, i) => {
      errors.push(...validateNodeTerm(term, `${at}[${i}]`));
    });
  }
  objectsAt(affinity, PREFERRED).forEach((term, i) => {
    const at = `${path}.${PREFERRED}[${i}]`;
    errors.push(...validateWeight(term, at), ...validateNodeTerm(valueAt(term, 'preference'), `${at}.preference`));
  });
  return errors;
}

function validateWeight(term: unknown, path: string): FieldError[] {
  const weight = valueAt(term, 'weight') ?? 0;
  return typeof weight === 'number' && weight >= 1 && weight <= 100
    ? []
    : [invalid(`${path}.weight`, weight, 'must be in the range 1-100')];
}

function validateNodeTerm(term: unknown, path: string): FieldError[] {
  return [
    ...objectsAt(term, 'matchExpressions').flatMap((one, i) =>
      validateNodeExpression(one, `${path}.matchExpressions[${i}]`),
    ),
    ...objectsAt(term, 'matchFields').flatMap((one, i) => validateNodeField(one, `${path}.matchFields[${i}]`)),
  ];
}

const valuesOf = (requirement: unknown): readonly unknown[] => listAt(requirement, 'values');

function validateNodeExpression(requirement: unknown, path: string): FieldError[] {
  const errors = validateOperator(requirement, path, ['Gt', 'Lt']);
  const key = textAt(requirement, 'key');
  return [...errors, ...checkQualifiedName(key).map((detail) => invalid(`${path}.key`, key, detail))];
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

function validateNodeField(requirement: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const values = valuesOf(requirement);
  const operator = textAt(requirement, 'operator');
  if (operator !== 'In' && operator !== 'NotIn') errors.push(invalid(`${path}.operator`, operator, NOT_AN_OPERATOR));
  else if (values.length !== 1) {
    const text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(required(`${path}.values`, text));
  }
  const key = textAt(requirement, 'key');
  if (key !== 'metadata.name') return [...errors, invalid(`${path}.key`, key, 'not a valid field selector key')];
  values.forEach((value, i) => {
    errors.push(...checkSubdomain(String(value)).map((detail) => invalid(`${path}.values[${i}]`, value, detail)));
  });
  return errors;
}

function validatePodAffinity(affinity: unknown, path: string): FieldError[] {
  return [
    ...objectsAt(affinity, REQUIRED).flatMap((term, i) => validatePodTerm(term, `${path}.${REQUIRED}[${i}]`)),
    ...objectsAt(affinity, PREFERRED).flatMap((term, i) => {
      const at = `${path}.${PREFERRED}[${i}]`;
      return [
        ...validateWeight(term, at),
        ...validatePodTerm(valueAt(term, 'podAffinityTerm'), `${at}.podAffinityTerm`),
      ];
    }),
  ];
}

function validatePodTerm(term: unknown, path: string): FieldError[] {
  const errors = [
    ...validateLabelSelector(valueAt(term, 'labelSelector'), `${path}.labelSelector`),
    ...validateLabelSelector(valueAt(term, 'namespaceSelector'), `${path}.namespaceSelector`),
  ];
  for (const name of textsAt(term, 'namespaces')) {
    errors.push(...checkLabelName(name).map((detail) => invalid(`${path}.namespace`, name, detail)));
  }
  const key = textAt(term, 'topologyKey');
  if (key === '') errors.push(required(`${path}.topologyKey`, 'can not be empty'));
  return [...errors, ...checkQualifiedName(key).map((detail) => invalid(`${path}.topologyKey`, key, detail))];
}

function validateLabelSelector(selector: unknown, path: string): FieldError[] {
  if (!isObject(selector)) return [];
  const errors: FieldError[] = [];
  const labels = valueAt(selector, 'matchLabels');
  for (const [key, value] of isObject(labels) ? Object.entries(labels) : []) {
    const at = `${path}.matchLabels`;
    errors.push(...checkQualifiedName(key).map((detail) => invalid(at, key, detail)));
    errors.push(...checkLabelValue(String(value)).map((detail) => invalid(at, value, detail)));
  }
  objectsAt(selector, 'matchExpressions').forEach((one, i) => {
    const at = `${path}.matchExpressions[${i}]`;
    errors.push(...validateOperator(one, at));
    const key = textAt(one, 'key');
    errors.push(...checkQualifiedName(key).map((detail) => invalid(`${at}.key`, key, detail)));
    valuesOf(one).forEach((value, j) => {
      errors.push(...checkLabelValue(String(value)).map((detail) => invalid(`${at}.values[${j}]`, value, detail)));
    });
  });
  return errors;
}

/** Findings about the topology spread constraints of `spec`, whose list stands at `path`. */
export function validateTopologySpread(spec: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const constraints = objectsAt(spec, 'topologySpreadConstraints');
  const pairOf = (constraint: unknown): string =>
    `{${textAt(constraint, 'topologyKey')}, ${textAt(constraint, 'whenUnsatisfiable')}}`;
  constraints.forEach((constraint, i) => {
    const at = `${path}[${i}]`;
    const skew = valueAt(constraint, 'maxSkew') ?? 0;
    if (typeof skew !== 'number' || skew <= 0) errors.push(invalid(`${at}.maxSkew`, skew, 'must be greater than zero'));
    if (textAt(constraint, 'topologyKey') === '') errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    const action = textAt(constraint, 'whenUnsatisfiable');
    if (!UNSATISFIABLE.includes(action)) {
      errors.push(unsupported(`${at}.whenUnsatisfiable`, action, UNSATISFIABLE));
    }
    const pair = pairOf(constraint);
    if (constraints.slice(i + 1).some((other) => pairOf(other) === pair)) {
      errors.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    }
  });
  return errors;
}
