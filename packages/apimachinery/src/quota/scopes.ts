/** Scopes of a ResourceQuota: which objects it is about (pkg/quota/v1/evaluator/core). */
import type { UnstructuredObject } from '../meta/object.ts';
import { isObject, listAt, textAt, valueAt } from '../types/read-value.ts';
import type { PodSpecParts } from './pod-amounts.ts';

export interface ScopeRequirement {
  readonly scopeName: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface QuotaSpec {
  readonly hard?: Readonly<Record<string, string>>;
  readonly scopes?: readonly string[];
  readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeRequirement[] };
}

type Target = Readonly<UnstructuredObject>;

/** All scopes of a quota as requirements; every one has to hold. */
export const scopesOf = (spec: QuotaSpec | undefined): readonly ScopeRequirement[] => [
  ...(spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' })),
  ...(spec?.scopeSelector?.matchExpressions ?? []),
];

const POD_SCOPES: Readonly<Record<string, (spec: PodSpecParts, scope: ScopeRequirement) => boolean>> = {
  Terminating: (spec) => isTerminating(spec),
  NotTerminating: (spec) => !isTerminating(spec),
  BestEffort: (spec) => isBestEffort(spec),
  NotBestEffort: (spec) => !isBestEffort(spec),
  CrossNamespacePodAffinity: (spec) => usesOtherNamespaces(spec),
  // Without operator and values (a plain scope) it is about every Pod that has a class.
  PriorityClass: ({ priorityClassName = '' }, scope) => nameMatches(priorityClassName, scope),
};

/** Whether a Pod is within one scope. */
export const podInScope = (pod: Target, scope: ScopeRequirement): boolean =>
  Object.hasOwn(POD_SCOPES, scope.scopeName) &&
  POD_SCOPES[scope.scopeName]!((pod['spec'] ?? {}) as PodSpecParts, scope);

/** Whether a claim is within one scope; only classes of volume attributes are known for claims. */
export function claimInScope(claim: Target, scope: ScopeRequirement): boolean {
  if (scope.scopeName !== 'VolumeAttributesClass') return false;
  const names = [
    textAt(claim, 'spec', 'volumeAttributesClassName'),
    textAt(claim, 'status', 'currentVolumeAttributesClassName'),
    textAt(claim, 'status', 'modifyVolumeStatus', 'targetVolumeAttributesClassName'),
  ].filter((name) => name !== '');
  if (names.length === 0) return scope.operator === 'DoesNotExist' || scope.operator === 'NotIn';
  return names.some((name) => nameMatches(name, scope));
}

const OPERATORS: Readonly<Record<string, (name: string, values: readonly string[]) => boolean>> = {
  In: (name, values) => name !== '' && values.includes(name),
  NotIn: (name, values) => !values.includes(name),
  Exists: (name) => name !== '',
  DoesNotExist: (name) => name === '',
};

const nameMatches = (name: string, { operator, values = [] }: ScopeRequirement): boolean =>
  Object.hasOwn(OPERATORS, operator) && OPERATORS[operator]!(name, values);

const isTerminating = ({ activeDeadlineSeconds }: PodSpecParts): boolean =>
  typeof activeDeadlineSeconds === 'number' && activeDeadlineSeconds >= 0;

/** Nothing is asked for and nothing is limited: the class BestEffort, worked out from the spec. */
function isBestEffort(spec: PodSpecParts): boolean {
  const all = [...(spec.containers ?? []), ...(spec.initContainers ?? []), { resources: spec.resources }];
  return all.every(({ resources }) =>
    [resources?.requests, resources?.limits].every((list) =>
      ['cpu', 'memory'].every((name) => list?.[name] === undefined || Number.parseFloat(String(list[name])) === 0),
    ),
  );
}

function usesOtherNamespaces(spec: PodSpecParts): boolean {
  const terms = ['podAffinity', 'podAntiAffinity'].flatMap((side) => [
    ...listAt(spec, 'affinity', side, 'requiredDuringSchedulingIgnoredDuringExecution'),
    ...listAt(spec, 'affinity', side, 'preferredDuringSchedulingIgnoredDuringExecution').map((preferred) =>
      valueAt(preferred, 'podAffinityTerm'),
    ),
  ]);
  return terms.some((term) => listAt(term, 'namespaces').length > 0 || isObject(valueAt(term, 'namespaceSelector')));
}
