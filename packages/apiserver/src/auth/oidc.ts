/** Users by ID tokens of one OpenID Connect issuer, as flags describe it: the user is named in one of its claims. */
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import type { UserInfo } from './identity.ts';
import { groupsIn, requireClaim, usernameIn } from './jwt-claims.ts';
import { createJwtUsers, type JwtIssuer, type JwtServices } from './jwt-users.ts';
import type { LookUpTokenUser } from './token-authenticator.ts';

export interface OidcSettings extends Pick<JwtIssuer, 'issuerUrl' | 'signingAlgorithms' | 'ca'> {
  readonly clientId: string;
  readonly usernameClaim: string;
  /** Put before every name; '' = nothing. */
  readonly usernamePrefix: string;
  /** None when absent: users have no groups but `system:authenticated`. */
  readonly groupsClaim?: string;
  readonly groupsPrefix: string;
  /** Claims a token must have, with these values. */
  readonly requiredClaims: Readonly<Record<string, string>>;
}

/** As kube-apiserver has them when the flags are not given. */
export const oidcDefaults = ({ issuerUrl, usernameClaim = 'sub' }: { issuerUrl: string; usernameClaim?: string }) => ({
  usernameClaim,
  // Names of different issuers must not meet; addresses are theirs alone.
  usernamePrefix: usernameClaim === 'email' ? '' : `${issuerUrl}#`,
  groupsPrefix: '',
  signingAlgorithms: ['RS256'],
  requiredClaims: {},
});

/** Knows the tokens of one issuer; of all others it says nothing. */
export const createOidcUsers = (settings: OidcSettings, services: JwtServices): LookUpTokenUser =>
  createJwtUsers(
    { ...settings, audiences: [settings.clientId], userOf: (claims) => userOf(settings, claims) },
    services,
  );

function userOf(settings: OidcSettings, claims: JsonObject): UserInfo {
  const { usernameClaim, usernamePrefix, groupsClaim, groupsPrefix, requiredClaims } = settings;
  for (const [name, value] of Object.entries(requiredClaims)) requireClaim(claims, name, value);
  return {
    username: `${usernamePrefix}${usernameIn(claims, usernameClaim)}`,
    groups: groupsClaim === undefined ? [] : groupsIn(claims, groupsClaim).map((group) => `${groupsPrefix}${group}`),
  };
}
