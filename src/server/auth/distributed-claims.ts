/**
 * Distributed claims (OpenID Connect Core 5.6.2): a token that has too many groups to say names an endpoint that says
 * them, in a token of its own. Only the claim of the groups is looked for, as upstream has it.
 */
import { isJsonObject, type JsonObject } from '../../api/meta/own-property.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { BoundedMap } from './bounded-map.ts';
import { readToken, validityProblem } from './jwt.ts';
import { ClaimsRefused } from './jwt-claims.ts';
import { createIssuerKeys, fetchBytes, type IssuerKeys } from './oidc-keys.ts';

/** Issuers of such tokens whose keys are kept. */
const MAX_ISSUERS = 16;

interface Believed {
  readonly audiences: readonly string[];
  readonly signingAlgorithms: readonly string[];
  readonly ca?: string;
  /** None = nothing is looked for. */
  readonly distributedClaim?: string;
}

/** The claims with the one that is said elsewhere. Rejects with ClaimsRefused where it cannot be had. */
export type ResolveClaims = (claims: JsonObject) => JsonObject | Promise<JsonObject>;

/** Asks for each token that does not have the claim and says where it is. */
export function createClaimResolver(
  believed: Believed,
  { connect, clock }: { readonly connect: ConnectOutbound; readonly clock: Clock },
): ResolveClaims {
  const { distributedClaim: name, ca } = believed;
  if (name === undefined) return (claims) => claims;
  const reaching = { connect, clock, ...(ca !== undefined && { ca }) };
  const keysOf = new BoundedMap<string, IssuerKeys>(MAX_ISSUERS);

  const ask = async ({ endpoint, token }: Source): Promise<unknown> => {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    const text = new TextDecoder().decode(await fetchBytes(reaching, endpoint, headers)).trim();
    const parts = readToken(text);
    const issuerUrl = parts?.claims['iss'];
    if (!parts || typeof issuerUrl !== 'string') throw new Error(`${endpoint} answers with no token`);
    const problem = validityProblem(believed.audiences, parts.claims, clock.now());
    if (problem !== undefined) throw new Error(`${endpoint} answers with a token that is no good: ${problem}`);
    let keys = keysOf.get(issuerUrl);
    if (!keys) {
      keys = createIssuerKeys({ issuerUrl, ...reaching });
      keysOf.set(issuerUrl, keys);
    }
    const { alg: algorithm, kid } = parts.header;
    const { signature, text: signed } = parts;
    const isSigned =
      typeof algorithm === 'string' &&
      believed.signingAlgorithms.includes(algorithm) &&
      (await keys.verify({ algorithm, keyId: typeof kid === 'string' ? kid : undefined, signature, text: signed }));
    if (!isSigned) throw new Error(`${endpoint} answers with a token that its issuer did not sign`);
    if (!Object.hasOwn(parts.claims, name)) throw new Error(`${endpoint} says nothing of ${name}`);
    return parts.claims[name];
  };

  return (claims) => {
    const source = sourceOf(claims, name);
    if (source === undefined) return claims;
    return ask(source).then(
      (value) => ({ ...claims, [name]: value as JsonObject[string] }),
      (error: unknown) => {
        throw unexpanded((error as Error).message);
      },
    );
  };
}

const unexpanded = (why: string): ClaimsRefused =>
  new ClaimsRefused(`oidc: could not expand distributed claims: ${why}`);

interface Source {
  readonly endpoint: string;
  readonly token: string;
}

const own = (object: unknown, name: string): unknown =>
  isJsonObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;

/** Where a claim is said; undefined when it is in the token, or nowhere. Throws ClaimsRefused. */
function sourceOf(claims: JsonObject, name: string): Source | undefined {
  const names = own(claims, '_claim_names');
  if (Object.hasOwn(claims, name) || names === undefined) return undefined;
  const sources = own(claims, '_claim_sources');
  if (!isJsonObject(names) || !isJsonObject(sources)) throw unexpanded('oidc: no claim sources');
  const key = own(names, name);
  if (typeof key !== 'string') return undefined;
  const source = own(sources, key);
  if (!isJsonObject(source))
    throw unexpanded(`id token _claim_names contained a source ${key} missing in _claims_sources`);
  const [endpoint, token] = [own(source, 'endpoint'), own(source, 'access_token')];
  // Without an endpoint it may be an aggregated claim, which nobody reads.
  if (typeof endpoint !== 'string' || endpoint === '') return undefined;
  return { endpoint, token: typeof token === 'string' ? token : '' };
}
