/** Policies with their bindings: watched in the store, compiled once per revision, indexed by what they are about. */

import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ObjectStore, StoredObject } from '../../cache/object-store.ts';
import { ActionIndex } from '../matching/action-index.ts';
import { isExemptFromPolicies, matchRules, type OperationRule, type RuleSubject } from '../matching/rules.ts';
import { compileSelectors, matchesSelectors } from '../matching/selectors.ts';
import type { Equivalents } from '../matching/served-kinds.ts';
import type { AdmissionAttributes, AdmissionOperation } from '../plugin.ts';
import type { BindingSpec, MatchResources, PolicySpec, WithSpec } from './policy-types.ts';

interface ResourceMatcher {
  /** False when no request of this action can match: what an index is made of. */
  mayMatch(subject: RuleSubject): boolean;
  /**
   * The resource in whose version the object is shown; undefined when the write is none of this matcher's business.
   * Throws ApiError: 404 when the namespace whose labels decide does not exist, 400 when a selector is none.
   */
  match(attributes: AdmissionAttributes): ResourceInfo | undefined;
}

interface MatchServices {
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly equivalents: Equivalents;
}

/** Never throws: a selector that is none is said by `match`. */
function compileMatchResources(resources: MatchResources, services: MatchServices): ResourceMatcher {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = resources;
  const selectors = compileSelectors(resources);
  const facesOf = ({ info, subresource }: RuleSubject): readonly ResourceInfo[] =>
    matchPolicy === 'Exact' ? [] : services.equivalents(info, subresource);
  const included = (subject: RuleSubject): ResourceInfo | undefined =>
    resourceRules.length === 0 ? subject.info : matchRules(resourceRules, subject, facesOf(subject));
  const named = resourceRules.some(hasNames) || excludeResourceRules.some(hasNames);

  const decide = (subject: RuleSubject): ResourceInfo | undefined => {
    const excluded = excludeResourceRules.length > 0 && matchRules(excludeResourceRules, subject, facesOf(subject));
    return excluded ? undefined : included(subject);
  };
  // Without names in its rules, all writes of one action are decided alike.
  const decided = new ActionIndex((operation, info, subresource) =>
    decide({ operation, info, subresource, name: undefined }),
  );
  return {
    mayMatch: (subject) => included({ ...subject, name: undefined }) !== undefined,
    match(attributes) {
      const { operation, info, subresource } = attributes;
      const matched = named ? decide(attributes) : decided.get(operation, info, subresource);
      return matched && matchesSelectors(selectors, attributes, services.store) ? matched : undefined;
    },
  };
}

const hasNames = ({ resourceNames }: OperationRule): boolean => (resourceNames?.length ?? 0) > 0;

export interface PolicyBinding {
  readonly name: string;
  readonly spec: BindingSpec;
  readonly matcher: ResourceMatcher;
}

/** A policy that at least one binding puts to work. */
export interface BoundPolicy<S, C> {
  readonly name: string;
  readonly spec: S;
  readonly matcher: ResourceMatcher;
  readonly compiled: C;
  readonly bindings: readonly PolicyBinding[];
}

export interface PolicySource<S, C> {
  /** By policy name, bindings by theirs; the same array until something changes. */
  candidates(operation: AdmissionOperation, info: ResourceInfo, subresource: string): readonly BoundPolicy<S, C>[];
}

interface PolicySourceOptions<S, C> extends MatchServices {
  readonly store: ObjectStore;
  readonly generation: () => number;
  readonly kind: 'mutating' | 'validating';
  readonly compile: (spec: S) => C;
}

/** Shared, so that a write that no policy concerns costs nothing. */
const NONE: readonly never[] = [];

/** Watches both kinds. A policy works from the moment it and its binding are published. */
export function createPolicySource<S extends PolicySpec, C>(options: PolicySourceOptions<S, C>): PolicySource<S, C> {
  const { store } = options;
  const group = `admissionregistration.k8s.io/${options.kind}admission`;
  const prefixes = { policies: `${group}policies`, bindings: `${group}policybindings` };
  const compiledPolicies = new WeakMap<StoredObject, Omit<BoundPolicy<S, C>, 'bindings'>>();
  const compiledBindings = new WeakMap<StoredObject, PolicyBinding>();
  let policies: readonly BoundPolicy<S, C>[] | undefined;
  const index = new ActionIndex<readonly BoundPolicy<S, C>[]>((operation, info, subresource) =>
    isExemptFromPolicies(info)
      ? NONE
      : (policies ?? []).filter(({ matcher }) => matcher.mayMatch({ operation, info, subresource, name: undefined })),
  );
  let generation = options.generation();
  const stale = (): void => {
    policies = undefined;
  };
  for (const prefix of Object.values(prefixes)) store.watch(prefix, store.revision(), stale);

  const policyOf = (item: StoredObject): Omit<BoundPolicy<S, C>, 'bindings'> =>
    getOrInsert(compiledPolicies, item, () => {
      const spec = (item.object as WithSpec<S>).spec ?? ({} as S);
      const matcher = compileMatchResources(spec.matchConstraints ?? {}, options);
      return { name: item.name, spec, matcher, compiled: options.compile(spec) };
    });
  const bindingOf = (item: StoredObject): PolicyBinding =>
    getOrInsert(compiledBindings, item, () => {
      const spec = (item.object as WithSpec<BindingSpec>).spec ?? {};
      return { name: item.name, spec, matcher: compileMatchResources(spec.matchResources ?? {}, options) };
    });
  const load = (): readonly BoundPolicy<S, C>[] => {
    const byPolicy = Map.groupBy(
      byName(store.list(prefixes.bindings).items).map(bindingOf),
      ({ spec }) => spec.policyName,
    );
    return byName(store.list(prefixes.policies).items)
      .filter(({ name }) => byPolicy.has(name))
      .map((item) => ({ ...policyOf(item), bindings: byPolicy.get(item.name)! }));
  };

  return {
    candidates(operation, info, subresource) {
      if (policies === undefined || generation !== options.generation()) {
        generation = options.generation();
        policies = load();
        index.clear();
      }
      return policies.length === 0 ? NONE : index.get(operation, info, subresource);
    },
  };
}

const byName = (items: readonly StoredObject[]): readonly StoredObject[] =>
  items.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
