/** Several authorizers as one: the first that allows decides; when none does, their reasons stand one a line. */
import type { AuthorizationAttributes, AuthorizationVerdict, Authorizer, UserInfo } from './identity.ts';

/** Asks in order (apiserver's authorizer/union). */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return (user: UserInfo, attributes: AuthorizationAttributes): AuthorizationVerdict => {
    const reasons: string[] = [];
    for (const authorize of authorizers) {
      const verdict = authorize(user, attributes);
      if (verdict.allowed) return verdict;
      if (verdict.reason !== '') reasons.push(verdict.reason);
    }
    return { allowed: false, reason: reasons.join('\n') };
  };
}
