/** Short-lived tokens for one purpose, which nobody takes for a user of the API: JWTs signed by a key derived for it. */

import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';

export interface PurposeTokens {
  /** Signs claims for so many seconds. */
  sign(claims: Readonly<Record<string, string>>, seconds: number): Promise<string>;
  /** What was signed; undefined when it is over, or another's. */
  verify(token: string): Promise<Readonly<Record<string, unknown>> | undefined>;
}

const ALGORITHM = 'HS256';

/** `secret`: any that nobody else knows; tokens of another purpose are not believed. `now` in milliseconds. */
export async function createPurposeTokens({
  secret,
  purpose,
  now,
}: {
  readonly secret: string;
  readonly purpose: string;
  readonly now: () => number;
}): Promise<PurposeTokens> {
  const text = new TextEncoder().encode(`${purpose}\n${secret}`);
  const key = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  return {
    sign: (claims, seconds) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: ALGORITHM })
        .setIssuer(purpose)
        .setExpirationTime(Math.floor(now() / 1000) + seconds)
        .sign(key),
    async verify(token) {
      try {
        const options = { algorithms: [ALGORITHM], issuer: purpose, currentDate: new Date(now()) };
        return (await jwtVerify(token, key, { ...options, requiredClaims: ['exp'] })).payload;
      } catch {
        return undefined;
      }
    },
  };
}
