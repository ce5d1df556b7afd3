/** Validation of rbac, coordination, scheduling, nodes and workloads: tables, and what in them is no rule. */

import { objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { duplicate, invalid, validateNested } from '@coracle/apimachinery/validation/field-errors';
import apiServices from './api-service-rules.json' with { type: 'json' };
import cluster from './cluster-rules.json' with { type: 'json' };
import rbac from './rbac-rules.json' with { type: 'json' };
import { byRules, type RuleCheck, validateByRules } from './table-rules.ts';
import workloads from './workload-rules.json' with { type: 'json' };

export const validateRole = byRules(rbac.role, { name: 'Role' });
export const validateClusterRole = byRules([...rbac.role, ...rbac.aggregation], { name: 'ClusterRole' });
export const validateRoleBinding = byRules(rbac.binding, { name: 'RoleBinding' });
export const validateClusterRoleBinding = byRules(rbac.binding, { name: 'ClusterRoleBinding' });
export const validatePriorityClass = byRules(cluster.priorityClass);
export const validateApiService = byRules(apiServices);
export const validateLease = byRules(cluster.lease);
export const validateControllerRevision = byRules(workloads.controllerRevision);

/** They differ by key or effect. */
const taints: RuleCheck = (errors, value, { at: path }) => {
  const seen = new Set<string>();
  validateNested(errors, objectsAt(value), (taint, i) => {
    const at = `${path}[${i}]`;
    validateByRules(errors, cluster.taint, { self: taint, at });
    const pair = `${textAt(taint, 'key')}:${textAt(taint, 'effect')}`;
    const detail = 'taints must be unique by key and effect pair';
    if (seen.has(pair)) errors.push({ ...duplicate(at, taint), detail });
    seen.add(pair);
  });
};

export const validateNode = byRules(cluster.node, { checks: { taints } });

const PERCENT = /^[0-9]+%$/;
const PERCENT_RULE =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** How many Pods stay, or go: a number from 0 on, or a share of them. */
const disruptions: RuleCheck = (errors, spec, { at }) => {
  const fields = ['minAvailable', 'maxUnavailable'];
  if (fields.every((field) => (valueAt(spec, field) ?? null) !== null)) {
    errors.push(invalid(at, spec, 'minAvailable and maxUnavailable cannot be both set'));
    return;
  }
  for (const field of fields) {
    const amount = valueAt(spec, field);
    const refuse = (detail: string): unknown => errors.push(invalid(`${at}.${field}`, amount, detail));
    if (typeof amount === 'number' && amount < 0) refuse('must be greater than or equal to 0');
    if (typeof amount !== 'string') continue;
    if (!PERCENT.test(amount)) refuse(PERCENT_RULE);
    else if (Number.parseInt(amount, 10) > 100) refuse('must not be greater than 100%');
  }
};

export const validateBudget = byRules(workloads.budget, { checks: { disruptions } });
