/**
 * The authority of the certificates that node agents know each other by on an external cluster: what is kept, and
 * what has to be done with it at a time. Pure.
 *
 *   nothing (or not usable) -> current -> current and next -> next is the current one
 *
 * A new authority is published before anything is signed by it, and one that is replaced stays published until it
 * expires, while its key is gone: whoever holds a certificate of either, or a list that is a little old, is still known.
 */
import { certificateValidity } from '@coracle/apimachinery/certificates/certificate-validity';
import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';

/** Name of the signer in CertificateSigningRequests. */
export const PEER_SIGNER = 'coracle.dev/migration-peer';
/** Name of the Secret that holds the authority, and of the ConfigMap that publishes it. */
export const PEER_AUTHORITY = 'coracle-peer-ca';
/** Key in the ConfigMap: the certificates of all authorities that are believed, PEM. */
export const PEER_BUNDLE = 'ca-bundle';

/** Certificate and private key (PKCS #8), PEM. Secret: never log it. */
export interface AuthorityPair {
  readonly certificate: string;
  readonly key: string;
}

export interface PeerAuthorities {
  /** Signs. */
  readonly current?: AuthorityPair;
  /** Will sign. */
  readonly next?: AuthorityPair;
}

/** Milliseconds since the epoch. */
export type Validity = ReturnType<typeof certificateValidity>;

type AuthorityStep =
  | { readonly type: 'make-current' | 'make-next' | 'promote' }
  | { readonly type: 'rest'; readonly ms: number };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LIFE_MS = 90 * DAY_MS;
/** Clocks of others may be behind by this. */
const BACKDATE_MS = HOUR_MS;
/** The next authority is made when the current one has this long to live. */
const REPLACE_BEFORE_MS = 30 * DAY_MS;
/** Agents read the list each minute; one that cannot for an hour is believed to be off. */
const PUBLISHED_FIRST_MS = HOUR_MS;
/** Longest rest: a host may sleep, and timers of more than 24 days do not exist. */
const LONGEST_REST_MS = HOUR_MS;
/** Certificates in the list. Rotation leaves three at most; more only come from authorities that were lost. */
const MAX_PUBLISHED = 8;

const CURRENT = { certificate: 'tls.crt', key: 'tls.key' } as const;
const NEXT = { certificate: 'next.crt', key: 'next.key' } as const;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** When an authority made at `now` is good. */
export const newValidity = (now: number): Validity => ({ notBefore: now - BACKDATE_MS, notAfter: now + LIFE_MS });

/** Reads what a Secret holds; what is not there, or no text, is left out. */
export function readAuthorities(data: Readonly<Record<string, string>> | undefined): PeerAuthorities {
  const read = (names: typeof CURRENT | typeof NEXT): AuthorityPair | undefined => {
    const certificate = textOf(data?.[names.certificate]);
    const key = textOf(data?.[names.key]);
    return certificate && key ? { certificate, key } : undefined;
  };
  const [current, next] = [read(CURRENT), read(NEXT)];
  return { ...(current && { current }), ...(next && { next }) };
}

/** As `data` of a Secret. */
export function writeAuthorities({ current, next }: PeerAuthorities): Record<string, string> {
  const encode = (text: string): string => encodeBase64(new TextEncoder().encode(text));
  return {
    ...(current && { [CURRENT.certificate]: encode(current.certificate), [CURRENT.key]: encode(current.key) }),
    ...(next && { [NEXT.certificate]: encode(next.certificate), [NEXT.key]: encode(next.key) }),
  };
}

/** When a certificate is good; undefined when it cannot be read. */
export function validityOf(certificate: string): Validity | undefined {
  try {
    return certificateValidity(certificate);
  } catch {
    return undefined;
  }
}

/** What to do at `now`. Authorities whose keys do not fit them have to be left out before. */
export function authorityStep(
  held: { readonly current?: Validity | undefined; readonly next?: Validity | undefined },
  now: number,
): AuthorityStep {
  const isGood = (one: Validity | undefined): one is Validity => one !== undefined && one.notAfter > now;
  const { current, next } = held;
  if (!isGood(current)) return isGood(next) ? { type: 'promote' } : { type: 'make-current' };
  const left = current.notAfter - now;
  if (left > REPLACE_BEFORE_MS) return rest(left - REPLACE_BEFORE_MS);
  if (!isGood(next)) return { type: 'make-next' };
  const wait = next.notBefore + BACKDATE_MS + PUBLISHED_FIRST_MS - now;
  return wait <= 0 ? { type: 'promote' } : rest(Math.min(wait, left));
}

const rest = (ms: number): AuthorityStep => ({ type: 'rest', ms: Math.min(ms, LONGEST_REST_MS) });

/**
 * The list to publish: what is held, and what was published before and is still good. An authority that is to be
 * believed no more is therefore taken out of Secret and list both.
 */
export function bundleOf({ current, next }: PeerAuthorities, published: string, now: number): string {
  const own = [current, next].flatMap((pair) => certificatesIn(pair?.certificate ?? '').slice(0, 1));
  const earlier = certificatesIn(published)
    .filter((one) => !own.includes(one) && (validityOf(one)?.notAfter ?? 0) > now)
    .sort((a, b) => validityOf(b)!.notAfter - validityOf(a)!.notAfter || (a < b ? -1 : 1));
  return [...new Set([...own, ...earlier])]
    .slice(0, MAX_PUBLISHED)
    .map((pem) => `${pem}\n`)
    .join('');
}

/** True when whoever reads the list knows that authority. */
export const isPublished = ({ certificate }: AuthorityPair, bundle: string): boolean => {
  const [own] = certificatesIn(certificate);
  return own !== undefined && certificatesIn(bundle).includes(own);
};

/** The certificates in a PEM text, each in the one form that is compared. */
function certificatesIn(text: string): string[] {
  return (text.match(CERTIFICATE) ?? []).map((pem) =>
    pem
      .split(/\s*\n\s*/)
      .filter((line) => line !== '')
      .join('\n'),
  );
}

function textOf(base64: string | undefined): string | undefined {
  if (base64 === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(decodeBase64(base64));
  } catch {
    return undefined;
  }
}
