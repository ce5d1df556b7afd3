/**
 * `authorizer` and `authorizer.requestResource` for one request, over the server's own authoriser. Expressions cannot
 * wait and an authoriser may have to (a webhook): an answer that is not there yet makes the expression fail, the answer
 * is waited for, and the expression is evaluated anew with it (`whenAnswered`).
 */

import {
  authorizerValue,
  type CelAuthorizer,
  type CelAuthorizerAttributes,
  CelEvaluationError,
  resourceCheckValue,
} from '@coracle/cel/cel';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer, UserInfo } from '../../auth/identity.ts';
import { accessSelectors } from '../../auth/review-selectors.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { AuthorizerFor } from './expression-environment.ts';
import { namespaceOf } from './selectors.ts';

/** What was asked in the name of one request. Bounded by what its policies may cost. */
interface Questions {
  readonly answers: Map<string, AuthorizationDecision>;
  readonly open: Map<string, Promise<void>>;
}

/** Asks about the request's user, or about the service account that the expression names. */
export function requestAuthorizer(authorize: Authorizer): AuthorizerFor {
  const asked = new WeakMap<AdmissionAttributes, Questions>();
  const make = (attributes: AdmissionAttributes) => {
    const decide: CelAuthorizer = (question) => {
      const known = asked.get(attributes)?.answers.get(JSON.stringify(question));
      if (known) return known;
      const { serviceAccount } = question;
      const user = serviceAccount ? accountUser(serviceAccount) : attributes.user;
      const decision = authorize(user, attributesOf(question));
      if (!(decision instanceof Promise)) return decision;
      const { answers, open } = getOrInsert(asked, attributes, () => ({ answers: new Map(), open: new Map() }));
      const name = JSON.stringify(question);
      const answered = decision.then((answer) => {
        answers.set(name, answer);
        open.delete(name);
      });
      open.set(name, answered);
      throw new CelEvaluationError('the authorizer has not answered yet');
    };
    const { info, subresource, name } = attributes;
    return {
      authorizer: authorizerValue(decide),
      requestResource: resourceCheckValue(decide, {
        group: info.group,
        resource: info.resource,
        ...(subresource !== '' && { subresource }),
        ...(name !== '' && { name }),
        ...(namespaceOf(attributes) !== '' && { namespace: namespaceOf(attributes) }),
      }),
    };
  };
  return Object.assign(make, {
    open: (attributes: AdmissionAttributes) => {
      const open = asked.get(attributes)?.open;
      return open && open.size > 0 ? Promise.all(open.values()) : undefined;
    },
  });
}

/**
 * Evaluates, and again as long as answers had to be waited for: a promise only then. `evaluate` changes nothing but what
 * it returns; what it threw or returned without the answers counts for nothing.
 */
export function whenAnswered<T>(
  authorizer: AuthorizerFor,
  attributes: AdmissionAttributes,
  evaluate: () => T,
): T | Promise<T> {
  let outcome: { readonly value: T } | { readonly error: unknown };
  try {
    outcome = { value: evaluate() };
  } catch (error) {
    outcome = { error };
  }
  const open = authorizer.open?.(attributes);
  if (open) return open.then(() => whenAnswered(authorizer, attributes, evaluate));
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

function attributesOf({ verb, path, ...asked }: CelAuthorizerAttributes): AuthorizationAttributes {
  if (path !== undefined) return { type: 'path', verb, path };
  const { group = '', resource = '', subresource = '', namespace = '', name = '' } = asked;
  const { fieldSelector, labelSelector } = asked;
  const { problems: _problems, ...selectors } = accessSelectors({
    ...(fieldSelector && { fieldSelector: { rawSelector: fieldSelector } }),
    ...(labelSelector && { labelSelector: { rawSelector: labelSelector } }),
  });
  const named = { group, version: '*', resource, subresource, namespace, name };
  return { type: 'resource', verb, ...named, ...selectors };
}

const accountUser = ({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
});
