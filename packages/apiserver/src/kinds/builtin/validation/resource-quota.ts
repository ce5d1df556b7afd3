/** Validation of ResourceQuotas (pkg/apis/core/validation, ValidateResourceQuota). */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  IMMUTABLE,
  invalid,
  required,
  sortedKeys,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { checkQuotaResourceName, checkResourceAmount, isQuotaResource } from './resource-names.ts';

const PODS: readonly string[] = ['pods'];
const PODS_AND_COMPUTE: readonly string[] = [
  ...PODS,
  ...['', 'requests.', 'limits.'].flatMap((kind) => [`${kind}cpu`, `${kind}memory`]),
];
/** Scope -> the resources it can be applied to. */
const SCOPES: Readonly<Record<string, readonly string[]>> = {
  BestEffort: PODS,
  CrossNamespacePodAffinity: PODS_AND_COMPUTE,
  NotBestEffort: PODS_AND_COMPUTE,
  NotTerminating: PODS_AND_COMPUTE,
  PriorityClass: PODS_AND_COMPUTE,
  Terminating: PODS_AND_COMPUTE,
  VolumeAttributesClass: ['persistentvolumeclaims', 'requests.storage'],
};
const OPPOSITES = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const;
const ONLY_EXISTS = new Set([
  'BestEffort',
  'NotBestEffort',
  'Terminating',
  'NotTerminating',
  'CrossNamespacePodAffinity',
]);
const EXISTS_RULE =
  "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

export function validateResourceQuota(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const unscoped = unscopedOf(object);
  validateAmounts(errors, object, 'spec.hard');
  validateScopes(errors, object, unscoped);
  validateSelector(errors, object, unscoped);
  validateAmounts(errors, object, 'status.hard');
  validateAmounts(errors, object, 'status.used');
  if (!old) return errors;
  const scopes = textsAt(object, 'spec', 'scopes');
  const isSame = new Set(scopes).symmetricDifference(new Set(textsAt(old, 'spec', 'scopes'))).size === 0;
  return isSame ? errors : [...errors, invalid('spec.scopes', scopes, IMMUTABLE)];
}

function validateAmounts(errors: FieldError[], object: JsonObject, path: string): void {
  const list = objectAt(object, ...path.split('.'));
  validateEach(errors, sortedKeys(list), (name) => {
    const field = `${path}[${name}]`;
    return [...checkQuotaResourceName(name, field), ...checkResourceAmount(name, list[name], field)];
  });
}

/** The quota's standard resources that a scope has no say over. */
type Unscoped = (scope: string) => readonly string[];

/** There are few scopes, which may be named very often, and there may be very many resources: each is asked for once. */
function unscopedOf(object: JsonObject): Unscoped {
  const known = new Map<string, readonly string[]>();
  return (scope) => {
    const allowed = Object.hasOwn(SCOPES, scope) ? SCOPES[scope] : undefined;
    if (!allowed) return [];
    return getOrInsert(known, scope, () =>
      Object.keys(objectAt(object, 'spec', 'hard')).filter((name) => isQuotaResource(name) && !allowed.includes(name)),
    );
  };
}

const conflicts = (scopes: readonly string[]): number =>
  OPPOSITES.filter((pair) => pair.every((one) => scopes.includes(one))).length;

function validateScopes(errors: FieldError[], object: JsonObject, unscoped: Unscoped): void {
  const scopes = textsAt(object, 'spec', 'scopes');
  const refuse = (detail: string): FieldError => invalid('spec.scopes', scopes, detail);
  validateNested(errors, scopes, (scope) => {
    if (!Object.hasOwn(SCOPES, scope)) errors.push(refuse('unsupported scope'));
    validateEach(errors, unscoped(scope), () => [refuse('unsupported scope applied to resource')]);
  });
  for (let i = conflicts(scopes); i > 0; i--) errors.push(refuse('conflicting scopes'));
}

function validateSelector(errors: FieldError[], object: JsonObject, unscoped: Unscoped): void {
  const selector = valueAt(object, 'spec', 'scopeSelector');
  if (!isObject(selector)) return;
  const path = 'spec.scopeSelector.matchExpressions';
  const expressions = objectsAt(selector, 'matchExpressions');
  validateNested(errors, expressions, (expression) => validateExpression(errors, expression, { selector, unscoped }));
  const scopes = expressions.map((expression) => textAt(expression, 'scopeName'));
  for (let i = conflicts(scopes); i > 0; i--) {
    errors.push(invalid(path, valueAt(object, 'spec', 'scopes') ?? null, 'conflicting scopes'));
  }
}

function validateExpression(
  errors: FieldError[],
  expression: JsonObject,
  { selector, unscoped }: { readonly selector: JsonObject; readonly unscoped: Unscoped },
): void {
  const path = 'spec.scopeSelector.matchExpressions';
  const scope = textAt(expression, 'scopeName');
  const operator = textAt(expression, 'operator');
  const values = textsAt(expression, 'values');
  if (!Object.hasOwn(SCOPES, scope)) errors.push(invalid(`${path}.scopeName`, scope, 'unsupported scope'));
  const wrong = invalid(path, selector, 'unsupported scope applied to resource');
  validateEach(errors, unscoped(scope), () => [wrong]);
  if (ONLY_EXISTS.has(scope) && operator !== 'Exists') {
    errors.push(invalid(`${path}.operator`, operator, EXISTS_RULE));
  }
  if (operator === 'In' || operator === 'NotIn') {
    const detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    if (values.length === 0) errors.push(required(`${path}.values`, detail));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    if (values.length > 0) errors.push(invalid(`${path}.values`, values, detail));
  } else errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
}
