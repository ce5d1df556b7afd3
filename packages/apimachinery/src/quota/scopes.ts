/** Scopes of a ResourceQuota: which objects it is about (pkg/quota/v1/evaluator/core). */
import type { UnstructuredObject } from '../meta/object.ts';
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

/** Whether a Pod is within one scope. */
export function podInScope(pod: Target, scope: ScopeRequirement): boolean {
  const spec = (pod['spec'] ?? {}) as PodSpecParts;
  switch (scope.scopeName) {
    case 'Terminating':
      return isTerminating(spec);
    case 'NotTerminating':
      return !isTerminating(spec);
    case 'BestEffort':
      return isBestEffort(pod);
    case 'NotBestEffort':
      return !isBestEffort(pod);
    case 'CrossNamespacePodAffinity':
      return usesOtherNamespaces(spec);
    case 'PriorityClass': {
      const { priorityClassName: name = '' } = spec;
      // Without operator and values (a plain scope) it is about every Pod that has a class.
      return name === '' && scope.operator === 'Exists' ? false : nameMatches(name, scope);
    }
    default:
      return false;
  }
}

/** Whether a claim is within one scope; only classes of volume attributes are known for claims. */
export function claimInScope(claim: Target, scope: ScopeRequirement): boolean {
  if (scope.scopeName !== 'VolumeAttributesClass') return false;
  const spec = claim['spec'] as { volumeAttributesClassName?: string } | undefined;
  const status = claim['status'] as
    | {
        currentVolumeAttributesClassName?: string;
        modifyVolumeStatus?: { targetVolumeAttributesClassName?: string };
      }
    | undefined;
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ].filter((name) => name !== undefined && name !== '') as string[];
  if (names.length === 0) return scope.operator === 'DoesNotExist' || scope.operator === 'NotIn';
  return names.some((name) => nameMatches(name, scope));
}

function nameMatches(name: string, { operator, values = [] }: ScopeRequirement): boolean {
  switch (operator) {
    case 'In':
      return name !== '' && values.includes(name);
    case 'NotIn':
      return !values.includes(name);
    case 'Exists':
      return name !== '';
    case 'DoesNotExist':
      return name === '';
    default:
      return false;
  }
}

const isTerminating = ({ activeDeadlineSeconds }: PodSpecParts): boolean =>
  typeof activeDeadlineSeconds === 'number' && activeDeadlineSeconds >= 0;

/** Nothing is asked for and nothing is limited: the class BestEffort, worked out from the spec. */
function isBestEffort(pod: Target): boolean {
  const spec = (pod['spec'] ?? {}) as PodSpecParts;
  const all = [...(spec.containers ?? []), ...(spec.initContainers ?? []), { resources: spec.resources }];
  return all.every(({ resources }) =>
    [resources?.requests, resources?.limits].every((list) =>
      ['cpu', 'memory'].every((name) => list?.[name] === undefined || Number.parseFloat(String(list[name])) === 0),
    ),
  );
}

interface AffinityTerm {
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: object | null;
}
interface AffinitySide {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly AffinityTerm[];
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly { readonly podAffinityTerm?: AffinityTerm }[];
}

function usesOtherNamespaces({ affinity }: PodSpecParts): boolean {
  const { podAffinity, podAntiAffinity } = (affinity ?? {}) as {
    podAffinity?: AffinitySide;
    podAntiAffinity?: AffinitySide;
  };
  const terms = [podAffinity, podAntiAffinity].flatMap((side) => [
    ...(side?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(side?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(
      ({ podAffinityTerm }) => podAffinityTerm ?? {},
    ),
  ]);
  return terms.some(
    ({ namespaces, namespaceSelector }: AffinityTerm) =>
      (namespaces?.length ?? 0) > 0 || (namespaceSelector !== undefined && namespaceSelector !== null),
  );
}
