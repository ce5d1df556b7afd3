/** The flags of `coracle up` about who users are and what they may do, named as kube-apiserver's; the `*-choice.ts` read them. */
import { flagTable } from './command.ts';

export const OIDC_FLAGS = flagTable({
  'oidc-issuer-url URL': 'https URL of the OpenID Connect issuer whose ID tokens are accepted (default: none)',
  'oidc-client-id ID': 'the audience that those tokens must have',
  'oidc-username-claim CLAIM': "claim that is the user's name (default: sub)",
  'oidc-username-prefix PREFIX':
    "prefix of every user name; '-' = none (default: the issuer's URL and #, none for the claim email)",
  'oidc-groups-claim CLAIM': "claim that is the user's groups (default: none)",
  'oidc-groups-prefix PREFIX': 'prefix of every group (default: none)',
  'oidc-required-claim CLAIM=VALUE...': 'a claim that tokens must have; may be given again',
  'oidc-signing-algs LIST': 'signature algorithms allowed (default: RS256)',
  'oidc-ca-file FILE': "PEM certificates that the issuer's must chain to (default: those this host trusts)",
});

export const TOKEN_WEBHOOK_FLAGS = flagTable({
  'authentication-token-webhook-config-file FILE':
    'kubeconfig of a webhook that authenticates tokens no other authenticator knows (default: none)',
  'authentication-token-webhook-version VERSION':
    'version of the TokenReview it is sent, v1 or v1beta1 (default: v1beta1)',
  'authentication-token-webhook-cache-ttl DURATION': 'how long its answers are cached (default: 2m)',
});

export const AUTHENTICATION_FLAGS = flagTable({
  'authentication-config FILE':
    'AuthenticationConfiguration: issuers of tokens, in place of --oidc-*; read again when it changes',
  'anonymous-auth BOOL': 'whether requests without a credential are served as system:anonymous (default: true)',
});

export const AUTHORIZATION_FLAGS = flagTable({
  'authorization-mode LIST':
    'authorizers in their order: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny (default: Node,RBAC)',
  'authorization-webhook-config-file FILE': 'kubeconfig of the webhook that mode Webhook asks',
  'authorization-webhook-version VERSION':
    'version of the SubjectAccessReview it is sent, v1 or v1beta1 (default: v1beta1)',
  'authorization-webhook-cache-authorized-ttl DURATION': 'how long an answer that allows is cached (default: 5m)',
  'authorization-webhook-cache-unauthorized-ttl DURATION': 'how long an answer that does not is cached (default: 30s)',
  'authorization-config FILE': 'AuthorizationConfiguration, in place of the flags above; read again when it changes',
});
