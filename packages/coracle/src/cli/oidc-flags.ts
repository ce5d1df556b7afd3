/** The OpenID Connect flags of `coracle up`, named as kube-apiserver's; `oidc-choice.ts` reads them. */
import type { FlagSpec } from './command.ts';

export const OIDC_FLAGS: Readonly<Record<string, FlagSpec>> = {
  'oidc-issuer-url': {
    type: 'string',
    value: 'URL',
    summary: 'https URL of the OpenID Connect issuer whose ID tokens are believed (default: none)',
  },
  'oidc-client-id': { type: 'string', value: 'ID', summary: 'the audience that those tokens must have' },
  'oidc-username-claim': { type: 'string', value: 'CLAIM', summary: "claim that is the user's name (default: sub)" },
  'oidc-username-prefix': {
    type: 'string',
    value: 'PREFIX',
    summary: "put before every name; '-' = nothing (default: the issuer's URL and #, nothing for the claim email)",
  },
  'oidc-groups-claim': {
    type: 'string',
    value: 'CLAIM',
    summary: "claim that is the user's groups (default: none)",
  },
  'oidc-groups-prefix': { type: 'string', value: 'PREFIX', summary: 'put before every group (default: nothing)' },
  'oidc-required-claim': {
    type: 'string',
    value: 'CLAIM=VALUE',
    multiple: true,
    summary: 'a claim that tokens must have; may be given again',
  },
  'oidc-signing-algs': { type: 'string', value: 'LIST', summary: 'signature algorithms allowed (default: RS256)' },
  'oidc-ca-file': {
    type: 'string',
    value: 'FILE',
    summary: "PEM certificates that the issuer's must chain to (default: those this host trusts)",
  },
};
