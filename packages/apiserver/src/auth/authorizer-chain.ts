/**
 * The authorizers of a server in the order in which they are asked (pkg/kubeapiserver/authorizer): members of
 * system:masters may everything, before anybody is asked. The list may become another one while the server runs.
 */

import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Authorizer, UserInfo } from './identity.ts';
import { nodeIdentity } from './node-authorizer.ts';
import { EVERYTHING, type Rbac } from './rbac.ts';
import { unionAuthorizer } from './union.ts';
import type { AuthorizationWebhook, createWebhookAuthorizer } from './webhook-authorizer.ts';

export type AuthorizerSetup =
  | { readonly type: 'Node' | 'RBAC' | 'AlwaysAllow' | 'AlwaysDeny' }
  | { readonly type: 'Webhook'; readonly webhook: AuthorizationWebhook };

/** The authorizers of a server that is given no other setting. */
export const DEFAULT_AUTHORIZERS: readonly AuthorizerSetup[] = [{ type: 'Node' }, { type: 'RBAC' }];

export interface AuthorizerChain {
  readonly authorize: Authorizer;
  /** Every rule a user is known to hold in a namespace and cluster-wide; `problems` = who knows more than rules can say. */
  rulesFor(
    user: UserInfo,
    namespace: string,
  ): { readonly rules: readonly PolicyRule[]; readonly problems: readonly string[] };
}

export interface AuthorizerChainOptions {
  /** Asked before each decision: the same list as long as nothing has changed. */
  readonly setup: () => readonly AuthorizerSetup[];
  readonly node: Authorizer;
  readonly rbac: Pick<Rbac, 'authorize' | 'rulesFor'>;
  /** Asks webhooks, where the server has them; a setup with one throws without it. */
  readonly webhook?: typeof createWebhookAuthorizer | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const MASTERS = 'system:masters';

/** Puts the chain together, and anew when the setup changes: webhooks of the new one begin with nothing remembered. */
export function createAuthorizerChain(options: AuthorizerChainOptions): AuthorizerChain {
  let built: { readonly setup: readonly AuthorizerSetup[]; readonly authorize: Authorizer } | undefined;
  return {
    authorize(user, attributes) {
      if (user.groups.includes(MASTERS)) return { allowed: true, reason: '' };
      const setup = options.setup();
      if (built?.setup !== setup) {
        built = { setup, authorize: unionAuthorizer(setup.map((one) => authorizerOf(one, options))) };
      }
      return built.authorize(user, attributes);
    },
    rulesFor(user, namespace) {
      const rules: PolicyRule[] = [];
      const problems: string[] = [];
      for (const { type } of options.setup()) {
        if (type === 'RBAC') rules.push(...options.rbac.rulesFor(user, namespace));
        else if (type === 'AlwaysAllow') rules.push(...EVERYTHING);
        // What a node may do depends on its Pods, and is no list of rules.
        else if (type === 'Node' && nodeIdentity(user) !== undefined)
          problems.push('node authorizer does not support user rule resolution');
        else if (type === 'Webhook') problems.push('webhook authorizer does not support user rule resolution');
      }
      return { rules, problems };
    },
  };
}

function authorizerOf(setup: AuthorizerSetup, { node, rbac, webhook, clock, log }: AuthorizerChainOptions): Authorizer {
  switch (setup.type) {
    case 'Node':
      return node;
    case 'RBAC':
      return rbac.authorize;
    case 'AlwaysAllow':
      return () => ({ allowed: true, reason: '' });
    case 'AlwaysDeny':
      return () => ({ allowed: false, reason: 'Everything is forbidden.' });
    case 'Webhook':
      if (webhook === undefined)
        throw new Error('this server asks no authorization webhooks: leave them out of its set-up');
      return webhook(setup.webhook, { clock, log });
  }
}
