/** Validation of ResourceQuotas (pkg/apis/core/validation, ValidateResourceQuota). */
import type { FieldError } from '../../../meta/status.ts';
import { isObject, type JsonObject, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { IMMUTABLE, invalid, required } from './field-errors.ts';
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
  const errors = [
    ...checkAmounts(object, 'spec.hard'),
    ...checkScopes(object),
    ...checkSelector(object),
    ...checkAmounts(object, 'status.hard'),
    ...checkAmounts(object, 'status.used'),
  ];
  if (!old) return errors;
  const scopes = textsAt(object, 'spec', 'scopes');
  const before = new Set(textsAt(old, 'spec', 'scopes'));
  const now = new Set(scopes);
  if (before.size !== now.size || [...now].some((scope) => !before.has(scope))) {
    errors.push(invalid('spec.scopes', scopes, IMMUTABLE));
  }
  return errors;
}

function checkAmounts(object: JsonObject, path: string): FieldError[] {
  const list = objectAt(object, ...path.split('.'));
  return Object.keys(list)
    .sort()
    .flatMap((name) => {
      const field = `${path}[${name}]`;
      return [...checkQuotaResourceName(name, field), ...checkResourceAmount(name, list[name], field)];
    });
}

/** The quota's standard resources that a scope has no say over. */
const unscoped = (object: JsonObject, scope: string): string[] => {
  const allowed = SCOPES[scope];
  const names = Object.keys(objectAt(object, 'spec', 'hard'));
  return allowed ? names.filter((name) => isQuotaResource(name) && !allowed.includes(name)) : [];
};
const conflicts = (scopes: readonly string[]): number =>
  OPPOSITES.filter((pair) => pair.every((one) => scopes.includes(one))).length;

function checkScopes(object: JsonObject): FieldError[] {
  const scopes = textsAt(object, 'spec', 'scopes');
  const refuse = (detail: string): FieldError => invalid('spec.scopes', scopes, detail);
  const errors = scopes.flatMap((scope) => [
    ...(Object.hasOwn(SCOPES, scope) ? [] : [refuse('unsupported scope')]),
    ...unscoped(object, scope).map(() => refuse('unsupported scope applied to resource')),
  ]);
  for (let i = conflicts(scopes); i > 0; i--) errors.push(refuse('conflicting scopes'));
  return errors;
}

function checkSelector(object: JsonObject): FieldError[] {
  const selector = valueAt(object, 'spec', 'scopeSelector');
  if (!isObject(selector)) return [];
  const path = 'spec.scopeSelector.matchExpressions';
  const errors: FieldError[] = [];
  const expressions = objectsAt(selector, 'matchExpressions');
  for (const expression of expressions) {
    const scope = textAt(expression, 'scopeName');
    const operator = textAt(expression, 'operator');
    const values = textsAt(expression, 'values');
    if (!Object.hasOwn(SCOPES, scope)) errors.push(invalid(`${path}.scopeName`, scope, 'unsupported scope'));
    for (const _ of unscoped(object, scope)) {
      errors.push(invalid(path, selector, 'unsupported scope applied to resource'));
    }
    if (ONLY_EXISTS.has(scope) && operator !== 'Exists') {
      errors.push(invalid(`${path}.operator`, operator, EXISTS_RULE));
    }
    if (operator === 'In' || operator === 'NotIn') {
      if (values.length === 0) {
        const detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
        errors.push(required(`${path}.values`, detail));
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values.length > 0) {
        const detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
        errors.push(invalid(`${path}.values`, values, detail));
      }
    } else {
      errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
    }
  }
  const scopes = expressions.map((expression) => textAt(expression, 'scopeName'));
  for (let i = conflicts(scopes); i > 0; i--) {
    errors.push(invalid(path, valueAt(object, 'spec', 'scopes') ?? null, 'conflicting scopes'));
  }
  return errors;
}
