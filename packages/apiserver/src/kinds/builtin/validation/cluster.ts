/** Validation of rbac, coordination, scheduling and admission configuration. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { checkPathSegment } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  forbidden,
  immutable,
  invalid,
  nonNegative,
  oneOf,
  required,
  requiredText,
  unsupported,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { validateSelector } from './admission-rules.ts';
import rules from './rbac-rules.json' with { type: 'json' };
import { validateByRules } from './table-rules.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';

export function validateRole(object: JsonObject, namespaced: boolean): readonly FieldError[] {
  const errors: FieldError[] = [];
  validateByRules(errors, rules.role, { self: object, at: '', name: namespaced ? 'Role' : 'ClusterRole' });
  if (!namespaced) validateAggregation(errors, object);
  return errors;
}

/** A role that is made of others must say of which. */
function validateAggregation(errors: FieldError[], object: JsonObject): void {
  const at = 'aggregationRule.clusterRoleSelectors';
  if (!isObject(valueAt(object, 'aggregationRule'))) return;
  const selectors = objectsAt(object, 'aggregationRule', 'clusterRoleSelectors');
  if (selectors.length === 0) {
    errors.push(required(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil'));
  }
  validateNested(errors, selectors, (selector, i) => validateSelector(errors, selector, `${at}[${i}]`));
}

export const validateBinding =
  (kinds: readonly string[]) =>
  (object: JsonObject, old?: JsonObject): readonly FieldError[] => {
    const errors: FieldError[] = [];
    const group = textAt(object, 'roleRef', 'apiGroup');
    if (group !== RBAC_GROUP) errors.push(unsupported('roleRef.apiGroup', group, [RBAC_GROUP]));
    const kind = textAt(object, 'roleRef', 'kind');
    if (!kinds.includes(kind)) errors.push(unsupported('roleRef.kind', kind, kinds));
    const name = textAt(object, 'roleRef', 'name');
    errors.push(...requiredText('roleRef.name', name, checkPathSegment));
    const own = kinds.includes('Role') ? 'RoleBinding' : 'ClusterRoleBinding';
    validateByRules(errors, rules.subjects, { self: object, at: '', name: own });
    if (old !== undefined && immutable({ object, old, path: 'roleRef' }).length > 0) {
      errors.push(invalid('roleRef', object['roleRef'], 'cannot change roleRef'));
    }
    return errors;
  };

const HIGHEST_USER_PRIORITY = 1_000_000_000;
const SYSTEM_CLASSES: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
};

export function validatePriorityClass(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const name = textAt(object, 'metadata', 'name');
  const value = valueAt(object, 'value');
  const errors: FieldError[] = [];
  if (name.startsWith('system-')) {
    if (SYSTEM_CLASSES[name] !== value) {
      errors.push(
        forbidden('metadata.name', "priority class names with 'system-' prefix are reserved for system use only"),
      );
    }
  } else if (typeof value === 'number' && value > HIGHEST_USER_PRIORITY) {
    errors.push(forbidden('value', `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`));
  }
  errors.push(
    ...oneOf(object, { name: 'preemptionPolicy', path: 'preemptionPolicy' }, ['Never', 'PreemptLowerPriority']),
  );
  if (old === undefined) return errors;
  if (!deepEqual(value, valueAt(old, 'value'))) errors.push(forbidden('value', 'may not be changed in an update.'));
  return [...errors, ...immutable({ object, old, path: 'preemptionPolicy' })];
}

export function validateLease(lease: JsonObject): readonly FieldError[] {
  const seconds = valueAt(lease, 'spec', 'leaseDurationSeconds');
  return [
    ...(typeof seconds === 'number' && seconds <= 0
      ? [invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0')]
      : []),
    ...nonNegative(lease, 'spec.leaseTransitions'),
  ];
}
