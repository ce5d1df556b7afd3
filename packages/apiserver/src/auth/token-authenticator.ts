/** Bearer tokens of every kind, asked one after the other: the first that knows the token decides. */
import type { UserInfo } from './identity.ts';
import type { TokenIssuer, TokenUse } from './service-account-tokens.ts';
import type { VerifiedToken } from './token-validity.ts';

export interface TokenAuthenticator {
  /** For the API itself when no audiences are given. */
  verify(token: string, use?: TokenUse): Promise<VerifiedToken | undefined>;
  /** The audiences of the API itself. */
  readonly audiences: readonly string[];
}

/** A kind of token that names no audience: it is good for the API and for nobody else. */
export type FindTokenUser = (token: string) => UserInfo | undefined;

/** The same, of somebody else. Never rejects: who cannot be asked knows nobody. `refused`: as in TokenUse. */
export type LookUpTokenUser = (token: string, refused?: (why: string) => void) => Promise<UserInfo | undefined>;

/** Service-account tokens first, then the others. */
export function createTokenAuthenticator(
  issuer: Pick<TokenIssuer, 'verify' | 'issuer'>,
  others: readonly (FindTokenUser | LookUpTokenUser)[],
): TokenAuthenticator {
  const own = [issuer.issuer];
  return {
    audiences: own,
    async verify(token, { audiences = own, notes, refused } = {}) {
      const verified = await issuer.verify(token, { audiences, notes, refused });
      if (verified) return verified;
      const meant = own.filter((audience) => audiences.includes(audience));
      if (meant.length === 0) return undefined;
      for (const find of others) {
        const found = find(token, refused);
        const user = found instanceof Promise ? await found : found;
        if (user) return { user: authenticated(user), audiences: meant };
      }
      return undefined;
    },
  };
}

const AUTHENTICATED = 'system:authenticated';

const authenticated = (user: UserInfo): UserInfo =>
  user.groups.includes(AUTHENTICATED) ? user : { ...user, groups: [...user.groups, AUTHENTICATED] };
