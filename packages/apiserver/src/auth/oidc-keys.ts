/** The public keys of an OpenID Connect issuer: found through its discovery document, fetched again when one is missing. */
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type { Clock } from '@coracle/runtime/clock/clock';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { readWhole } from '../outbound/read-whole.ts';

export interface IssuerOptions {
  readonly issuerUrl: string;
  /** Where its discovery document is, when that is not below `issuerUrl`. */
  readonly discoveryUrl?: string;
  /** PEM certificates that the issuer's must chain to; absent = those the host trusts. */
  readonly ca?: string;
  readonly connect: ConnectOutbound;
  readonly clock: Clock;
}

/** Signature algorithms as JWS names them, with what WebCrypto calls them. */
export const SIGNING_ALGORITHMS: ReadonlyMap<string, KeyAlgorithm> = new Map([
  ...[256, 384, 512].flatMap((bits): [string, KeyAlgorithm][] => {
    const hash = `SHA-${bits}`;
    return [
      [`RS${bits}`, { kty: 'RSA', parameters: { name: 'RSASSA-PKCS1-v1_5', hash } }],
      [`PS${bits}`, { kty: 'RSA', parameters: { name: 'RSA-PSS', hash, saltLength: bits / 8 } }],
    ];
  }),
  ['ES256', { kty: 'EC', parameters: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } }],
  ['ES384', { kty: 'EC', parameters: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' } }],
  ['ES512', { kty: 'EC', parameters: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' } }],
]);

interface KeyAlgorithm {
  readonly kty: 'RSA' | 'EC';
  readonly parameters: {
    readonly name: string;
    readonly hash: string;
    readonly namedCurve?: string;
    readonly saltLength?: number;
  };
}

export interface IssuerKeys {
  /** True when one of the issuer's keys made the signature. Rejects with an Error while the issuer cannot be asked. */
  verify(signed: {
    readonly algorithm: string;
    readonly keyId: string | undefined;
    readonly signature: Uint8Array<ArrayBuffer>;
    readonly text: Uint8Array<ArrayBuffer>;
  }): Promise<boolean>;
}

const TIMEOUT_MS = 30_000;
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** Keys looked at of one set. */
const MAX_KEYS = 64;
/** The issuer is asked no more often, whatever tokens come. */
const MIN_INTERVAL_MS = 10_000;

/** Asks nobody before the first signature. */
export function createIssuerKeys(options: IssuerOptions): IssuerKeys {
  const { clock, issuerUrl } = options;
  let keys: readonly JsonObject[] = [];
  let asked: Promise<void> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let failure: unknown;

  const ask = async (): Promise<void> => {
    const { discoveryUrl = `${issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration` } = options;
    const discovery = await fetchDocument(options, discoveryUrl);
    if (discovery['issuer'] !== issuerUrl) throw new Error('its discovery document names another issuer');
    const set = await fetchDocument(options, String(discovery['jwks_uri'] ?? ''));
    const found = Array.isArray(set['keys']) ? set['keys'] : [];
    keys = found.filter(isJsonObject).slice(0, MAX_KEYS);
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

  return {
    async verify({ algorithm, keyId, signature, text }) {
      const wanted = SIGNING_ALGORITHMS.get(algorithm);
      if (wanted === undefined) return false;
      const isMadeBy = async (key: JsonObject): Promise<boolean> => {
        try {
          const imported = await crypto.subtle.importKey('jwk', publicPart(key), wanted.parameters, false, ['verify']);
          return await crypto.subtle.verify(wanted.parameters, imported, signature, text);
        } catch {
          return false; // not a key of this algorithm
        }
      };
      const attempt = async (): Promise<boolean> => {
        for (const key of keys) {
          if (key['kty'] !== wanted.kty || (keyId !== undefined && key['kid'] !== keyId)) continue;
          if (key['use'] !== undefined && key['use'] !== 'sig') continue;
          if (key['alg'] !== undefined && key['alg'] !== algorithm) continue;
          if (await isMadeBy(key)) return true;
        }
        return false;
      };
      if (await attempt()) return true;
      await refresh();
      if (failure !== undefined && keys.length === 0) throw failure;
      return attempt();
    },
  };
}

/** Only what the key is made of: other members could forbid its use, or give away what nobody should have sent. */
function publicPart({ kty, n, e, crv, x, y }: JsonObject): JsonWebKey {
  return (kty === 'RSA' ? { kty, n, e } : { kty, crv, x, y }) as JsonWebKey;
}

async function fetchDocument(options: FetchOptions, url: string): Promise<JsonObject> {
  const { value } = parseJson(await fetchBytes(options, url, { accept: 'application/json' }));
  if (!isJsonObject(value)) throw new Error(`${url} is no JSON object`);
  return value;
}

/** What is needed to fetch something of an issuer. */
export type FetchOptions = Pick<IssuerOptions, 'connect' | 'clock' | 'ca'>;

/** The body of an https URL: whole, bounded, in time. Rejects with an Error, also for any status but 200. */
export async function fetchBytes(
  { connect, clock, ca }: FetchOptions,
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<Uint8Array> {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'https:') throw new Error(`${JSON.stringify(url)} is no https URL`);
  const timeout = new AbortController();
  const cancel = clock.schedule(TIMEOUT_MS, () => timeout.abort(new Error(`${url} does not answer`)));
  try {
    const response = await abortable(
      connect({ address: { url }, ...(ca !== undefined && { caBundle: ca }) })({
        method: 'GET',
        path: parsed.pathname,
        query: parsed.search.slice(1),
        headers: { ...headers },
        body: new Uint8Array(),
        peer: { address: '' },
        signal: timeout.signal,
      }),
      timeout.signal,
    );
    const bytes = await readWhole(response, { limit: MAX_DOCUMENT_BYTES, signal: timeout.signal });
    if (response.status !== 200) throw new Error(`${url} answers with status ${response.status}`);
    return bytes;
  } finally {
    cancel();
  }
}
