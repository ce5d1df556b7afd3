/** Keys and certificates of a data directory: made once, renewed when they near their end. Files 0600, directory 0700. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CertificateAuthority, IssueOptions, KeyPairPem } from '@coracle/apiserver/auth/certificate-authority';
import { createSigningKey } from '@coracle/apiserver/auth/service-account-tokens';
import type { Clock } from '@coracle/runtime/clock/clock';
import { ensurePrivateDir } from './data-dir.ts';
import { readFileIfAny, writePrivateFile } from './write-file.ts';

export type { KeyPairPem };

/** Pairs on disk, by name. */
export interface PairStore {
  read(name: string): KeyPairPem | undefined;
  write(name: string, pair: KeyPairPem): void;
}

export type Pki = Awaited<ReturnType<typeof openPki>>;

/** The only name that `--requestheader-allowed-names` has to list. */
export const FRONT_PROXY_NAME = 'front-proxy-client';
const FRONT_PROXY_DAYS = 365;

const DAY_MS = 86_400_000;
/** A pair is made anew this long before its end, or when this part of its life is left, whichever is later. */
const RENEW_BEFORE_MS = 30 * DAY_MS;
const RENEW_AT = 0.3;
/** Certificates begin a little before they are made. */
const SLACK_MS = 3_600_000;

/** Opens the directory's keys; one that has none gets all of them. Throws one line when a key that it had is lost. The ASN.1 library is loaded only when something must be issued. */
export async function openPki(directory: string, clock: Clock) {
  const issuing = () => import('@coracle/apiserver/auth/certificate-authority');
  if (!existsSync(join(directory, 'ca.crt')))
    await beginPki(directory, async () => (await issuing()).createAuthority(clock));
  ensurePrivateDir(directory);
  const path = (name: string): string => join(directory, name);
  const read = (name: string): KeyPairPem | undefined => {
    const certificate = readFileIfAny(path(`${name}.crt`));
    const key = readFileIfAny(path(`${name}.key`));
    return certificate && key ? { certificate, key } : undefined;
  };
  const write = (name: string, pair: KeyPairPem): void => {
    // Key first: a certificate without its key would be taken for a whole pair after a crash.
    writePrivateFile(path(`${name}.key`), pair.key);
    writePrivateFile(path(`${name}.crt`), pair.certificate);
  };
  let authority: CertificateAuthority | undefined;
  // Made together and never again: others would end every credential that was handed out, without a word.
  const [certificate, key, signingKey] = ['ca.crt', 'ca.key', 'sa.key'].map(
    (name) => readFileIfAny(path(name)) || lost(path(name), directory),
  ) as [string, string, string];
  const ca: KeyPairPem = { certificate, key };
  const open = async (): Promise<CertificateAuthority> => {
    authority ??= await (await issuing()).openAuthority(ca, clock);
    return authority;
  };
  const issue: CertificateAuthority['issue'] = async (options) => (await open()).issue(options);
  const sign: CertificateAuthority['sign'] = async (request, options) => (await open()).sign(request, options);
  const pairs: PairStore = { read, write };
  return {
    /** Pairs that somebody else signed. */
    pairs,
    /** PEM of the CA certificate. */
    ca: ca.certificate,
    /** PKCS #8 PEM that tokens are signed with. */
    signingKey,
    /** Makes a pair that is kept nowhere. */
    issue,
    /** Signs somebody's request (PEM) with the CA, as it stands. */
    sign,
    /** A pair of that name: the one on disk while it fits and is fresh, else a new one. */
    async pair(name: string, options: IssueOptions): Promise<KeyPairPem> {
      const held = read(name);
      if (held && isFresh(held, { options, ca: ca.certificate, now: clock.now() })) return held;
      const made = await (await open()).issue(options);
      write(name, made);
      return made;
    },
    /**
     * What this server shows to the API servers behind it, made when first asked for: a pair for `FRONT_PROXY_NAME`, and the PEM
     * of the CA that they check it against (`--requestheader-client-ca-file`). That signs nothing else: whoever trusts it
     * believes any user name a certificate of it brings.
     */
    async frontProxy(): Promise<{ readonly ca: string; readonly client: KeyPairPem }> {
      let own = read('front-proxy-ca');
      if (!own) {
        own = await (await issuing()).createAuthority(clock, 'coracle-front-proxy-ca');
        write('front-proxy-ca', own);
      }
      const options = { commonName: FRONT_PROXY_NAME, usage: 'client', days: FRONT_PROXY_DAYS } as const;
      const held = read('front-proxy-client');
      if (held && isFresh(held, { options, ca: own.certificate, now: clock.now() }))
        return { ca: own.certificate, client: held };
      const client = await (await (await issuing()).openAuthority(own, clock)).issue(options);
      write('front-proxy-client', client);
      return { ca: own.certificate, client };
    },
  };
}

function lost(file: string, directory: string): never {
  throw new Error(
    `${file} is empty or missing: restore it from a backup, or remove ${directory} to start with new keys (every earlier kubeconfig, token and certificate is then invalid)`,
  );
}

/**
 * Makes the keys of a directory that has none, all of them or nothing: two processes that start at the same moment must
 * not leave the key of one beside the certificate of the other. Who comes second finds the first one's.
 */
async function beginPki(directory: string, make: () => Promise<KeyPairPem>): Promise<void> {
  ensurePrivateDir(dirname(directory));
  const begun = mkdtempSync(`${directory}.new-`);
  try {
    const authority = await make();
    writePrivateFile(join(begun, 'ca.key'), authority.key);
    writePrivateFile(join(begun, 'ca.crt'), authority.certificate);
    writePrivateFile(join(begun, 'sa.key'), await createSigningKey());
    renameSync(begun, directory);
  } catch (error) {
    rmSync(begun, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
}

function isFresh(
  pair: KeyPairPem,
  { options, ca, now }: { readonly options: IssueOptions; readonly ca: string; readonly now: number },
): boolean {
  try {
    const certificate = new X509Certificate(pair.certificate);
    const asked = options.days * DAY_MS;
    const left = Date.parse(certificate.validTo) - now;
    return (
      left > Math.min(RENEW_BEFORE_MS, asked * RENEW_AT) &&
      // One of an earlier version may last longer than is asked for now.
      left <= asked + SLACK_MS &&
      certificate.verify(new X509Certificate(ca).publicKey) &&
      certificate.checkPrivateKey(createPrivateKey(pair.key)) &&
      (options.dnsNames ?? []).every((name) => certificate.checkHost(name) !== undefined) &&
      (options.ipAddresses ?? []).every((ip) => certificate.checkIP(ip) !== undefined)
    );
  } catch {
    return false; // damaged: make a new one
  }
}
