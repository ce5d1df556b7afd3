/** The public keys of an OpenID Connect issuer: found through its discovery document, fetched again when one is missing. */
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type { Clock } from '@coracle/runtime/clock/clock';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { JWK } from 'jose';
import * as errors from 'jose/errors';
import { createLocalJWKSet } from 'jose/jwks/local';
import { compactVerify } from 'jose/jws/compact/verify';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { readWhole } from '../outbound/read-whole.ts';

export interface IssuerOptions {
  /** https, as the `iss` of tokens has it. */
  readonly issuerUrl: string;
  /** Where its discovery document is, when that is not below `issuerUrl`. */
  readonly discoveryUrl?: string;
  /** PEM certificates that the issuer's must chain to; absent = those the host trusts. */
  readonly ca?: string;
  readonly connect: ConnectOutbound;
  readonly clock: Clock;
}

/** Signature algorithms that an issuer may have, as JWS names them. */
export const SIGNING_ALGORITHMS: readonly string[] = ['RS', 'ES', 'PS'].flatMap((family) =>
  [256, 384, 512].map((bits) => `${family}${bits}`),
);

const TIMEOUT_MS = 30_000;
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** Keys looked at of one set. */
const MAX_KEYS = 64;
/** The issuer is asked no more often, whatever tokens come. */
const MIN_INTERVAL_MS = 10_000;

/**
 * What says whether one of the issuer's keys signed a token in a certain way. Rejects with an Error while the issuer cannot
 * be asked; that does not happen before the first signature.
 */
export function createIssuerKeys(options: IssuerOptions): (token: string, algorithm: string) => Promise<boolean> {
  const { clock, issuerUrl } = options;
  let keys: KeySet | undefined;
  let asked: Promise<void> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let failure: unknown;

  const ask = async (): Promise<void> => {
    const { discoveryUrl = `${issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration` } = options;
    const discovery = await fetchDocument(options, discoveryUrl);
    if (discovery['issuer'] !== issuerUrl) throw new Error('its discovery document names another issuer');
    const set = await fetchDocument(options, String(discovery['jwks_uri'] ?? ''));
    const found = Array.isArray(set['keys']) ? set['keys'] : [];
    keys = createLocalJWKSet({ keys: found.filter(isJsonObject).slice(0, MAX_KEYS) as unknown as JWK[] });
  };
  /** Everybody waits for the same question; within the interval its outcome stands. */
  const refresh = (): Promise<void> => {
    if (asked === undefined && clock.monotonic() - askedAt >= MIN_INTERVAL_MS) {
      askedAt = clock.monotonic();
      failure = undefined;
      asked = ask()
        .catch((error: unknown) => {
          failure = error;
        })
        .finally(() => {
          asked = undefined;
        });
    }
    return asked ?? Promise.resolve();
  };

  return async (token, algorithm) => {
    if (keys && (await isSignedBy(token, algorithm, keys))) return true;
    await refresh();
    if (failure !== undefined && keys === undefined) throw failure;
    return keys !== undefined && isSignedBy(token, algorithm, keys);
  };
}

type KeySet = ReturnType<typeof createLocalJWKSet>;

async function isSignedBy(token: string, algorithm: string, keys: KeySet): Promise<boolean> {
  const algorithms = [algorithm];
  const isMadeBy = async (key: CryptoKey): Promise<boolean> =>
    compactVerify(token, key, { algorithms }).then(
      () => true,
      () => false,
    );
  try {
    await compactVerify(token, keys, { algorithms });
    return true;
  } catch (error) {
    // A token need not name its key, and keys need not have names: then each is tried.
    if (error instanceof errors.JWKSMultipleMatchingKeys)
      for await (const key of error) if (await isMadeBy(key)) return true;
    return false;
  }
}

/** The object at an https URL: whole, bounded, in time. Rejects with an Error, also for any status but 200. */
async function fetchDocument({ connect, clock, ca }: IssuerOptions, url: string): Promise<JsonObject> {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'https:') throw new Error(`${JSON.stringify(url)} is not an https URL`);
  const timeout = new AbortController();
  const cancel = clock.schedule(TIMEOUT_MS, () => timeout.abort(new Error(`${url} does not answer`)));
  try {
    const response = await abortable(
      connect({ address: { url }, ...(ca !== undefined && { caBundle: ca }) })({
        method: 'GET',
        path: parsed.pathname,
        query: parsed.search.slice(1),
        headers: { accept: 'application/json' },
        body: new Uint8Array(),
        peer: { address: '' },
        signal: timeout.signal,
      }),
      timeout.signal,
    );
    const bytes = await readWhole(response, { limit: MAX_DOCUMENT_BYTES, signal: timeout.signal });
    if (response.status !== 200) throw new Error(`${url} answers with status ${response.status}`);
    const { value } = parseJson(bytes);
    if (!isJsonObject(value)) throw new Error(`${url} is not a JSON object`);
    return value;
  } finally {
    cancel();
  }
}
