/** matchConstraints of a policy and matchResources of a binding, compiled (admission/plugin/policy/matching). */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ObjectStore } from '../../cache/object-store.ts';
import { matchRules, type OperationRule, type RuleSubject } from '../matching/rules.ts';
import { compileSelectors, matchesSelectors } from '../matching/selectors.ts';
import type { Equivalents } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { MatchResources } from './policy-types.ts';

export interface ResourceMatcher {
  /** False when no request of this action can match: what an index is made of. */
  mayMatch(subject: RuleSubject): boolean;
  /**
   * The resource in whose version the object is shown; undefined when the write is none of this matcher's business.
   * Throws ApiError: 404 when the namespace whose labels decide does not exist, 400 when a selector is none.
   */
  match(attributes: AdmissionAttributes): ResourceInfo | undefined;
}

export interface MatchServices {
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly equivalents: Equivalents;
}

/** Never throws: a selector that is none is said by `match`. */
export function compileMatchResources(resources: MatchResources, services: MatchServices): ResourceMatcher {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = resources;
  const selectors = compileSelectors(resources);
  const facesOf = ({ info, subresource }: RuleSubject): readonly ResourceInfo[] =>
    matchPolicy === 'Exact' ? [] : services.equivalents(info, subresource);
  const included = (subject: RuleSubject): ResourceInfo | undefined =>
    resourceRules.length === 0 ? subject.info : matchRules(resourceRules, subject, facesOf(subject));
  const named = resourceRules.some(hasNames) || excludeResourceRules.some(hasNames);

  const decide = (subject: RuleSubject): ResourceInfo | undefined => {
    if (excludeResourceRules.length > 0 && matchRules(excludeResourceRules, subject, facesOf(subject))) {
      return undefined;
    }
    return included(subject);
  };
  // Without names in its rules, all writes of one action are decided alike.
  const known = named ? undefined : new WeakMap<ResourceInfo, Map<string, ResourceInfo | undefined>>();
  const decided = (subject: RuleSubject): ResourceInfo | undefined => {
    if (!known) return decide(subject);
    let actions = known.get(subject.info);
    if (!actions) {
      actions = new Map();
      known.set(subject.info, actions);
    }
    const action = `${subject.operation}/${subject.subresource}`;
    if (!actions.has(action)) actions.set(action, decide(subject));
    return actions.get(action);
  };
  return {
    mayMatch: (subject) => included({ ...subject, name: undefined }) !== undefined,
    match(attributes) {
      const matched = decided(attributes);
      return matched && matchesSelectors(selectors, attributes, services.store) ? matched : undefined;
    },
  };
}

const hasNames = ({ resourceNames }: OperationRule): boolean => (resourceNames?.length ?? 0) > 0;
