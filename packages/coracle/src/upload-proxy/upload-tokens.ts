/** Tokens that let their holder upload to one claim (CDI pkg/token). */
import { createPurposeTokens } from '@coracle/apiserver/auth/purpose-tokens';

export interface UploadClaim {
  readonly namespace: string;
  readonly name: string;
  /** Of the claim: another one of that name is another claim. */
  readonly uid: string;
}

export interface UploadTokens {
  sign(claim: UploadClaim): Promise<string>;
  /** The claim; undefined for a token that is over, or none of ours. */
  verify(token: string): Promise<UploadClaim | undefined>;
}

/** As long as CDI's. */
const LIFE_S = 5 * 60;

/** Makes them on the cluster's signing key. `now` in milliseconds. */
export async function createUploadTokens(secret: string, now: () => number): Promise<UploadTokens> {
  const tokens = await createPurposeTokens({ secret, purpose: 'cdi-apiserver', now });
  return {
    sign: (claim) => tokens.sign({ ...claim }, LIFE_S),
    async verify(token) {
      const { namespace, name, uid } = (await tokens.verify(token)) ?? {};
      return typeof namespace === 'string' && typeof name === 'string' && typeof uid === 'string'
        ? { namespace, name, uid }
        : undefined;
    },
  };
}
