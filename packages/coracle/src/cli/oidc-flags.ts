/** The OpenID Connect flags of `coracle up`, named as kube-apiserver's; `oidc-choice.ts` reads them. */
import { type FlagSpec, valueFlag } from './command.ts';

export const OIDC_FLAGS: Readonly<Record<string, FlagSpec>> = {
  'oidc-issuer-url': valueFlag(
    'URL',
    'https URL of the OpenID Connect issuer whose ID tokens are accepted (default: none)',
  ),
  'oidc-client-id': valueFlag('ID', 'the audience that those tokens must have'),
  'oidc-username-claim': valueFlag('CLAIM', "claim that is the user's name (default: sub)"),
  'oidc-username-prefix': valueFlag(
    'PREFIX',
    "prefix of every user name; '-' = none (default: the issuer's URL and #, none for the claim email)",
  ),
  'oidc-groups-claim': valueFlag('CLAIM', "claim that is the user's groups (default: none)"),
  'oidc-groups-prefix': valueFlag('PREFIX', 'prefix of every group (default: none)'),
  'oidc-required-claim': valueFlag('CLAIM=VALUE', 'a claim that tokens must have; may be given again', {
    multiple: true,
  }),
  'oidc-signing-algs': valueFlag('LIST', 'signature algorithms allowed (default: RS256)'),
  'oidc-ca-file': valueFlag(
    'FILE',
    "PEM certificates that the issuer's must chain to (default: those this host trusts)",
  ),
};
