/**
 * The cluster's certificate authority, made at first start. WebCrypto and ASN.1 only, so that it runs wherever the
 * control plane does. Keys are ECDSA P-256.
 */
import { hexOf } from '@coracle/apimachinery/meta/hex';
import 'reflect-metadata';
import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { Clock } from '@coracle/runtime/clock/clock';
import * as x509 from '@peculiar/x509';

/** A certificate and its private key, both PEM (key: PKCS #8). Secret: never log it. */
export interface KeyPairPem {
  readonly certificate: string;
  readonly key: string;
}

export interface IssueOptions {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly usage: 'server' | 'client' | 'both';
  readonly days: number;
}

export interface CertificateAuthority {
  /** The CA certificate, PEM. */
  readonly certificate: string;
  /** Makes a key and a certificate signed by this CA. */
  issue(options: IssueOptions): Promise<KeyPairPem>;
  /** Signs somebody's request (PEM) as it stands: subject, names and key are the caller's to validate. Throws on bad PEM. */
  sign(request: string, options: SignOptions): Promise<string>;
}

export interface SignOptions {
  /** As certificates.k8s.io names them: `client auth`, `digital signature`. */
  readonly usages: readonly string[];
  /** Lifetime asked for; a year when not given, and never longer. */
  readonly expirationSeconds?: number;
}

const YEAR_SECONDS = 365 * 86_400;
const MIN_SECONDS = 600;
/** Clocks of others may be behind. A short life is not cut further by it. */
const BACKDATE_SECONDS = 300;
const SHORT_SECONDS = 8 * 3600;

const KEY_USAGES: Readonly<Record<string, number>> = {
  signing: x509.KeyUsageFlags.digitalSignature,
  'digital signature': x509.KeyUsageFlags.digitalSignature,
  'content commitment': x509.KeyUsageFlags.nonRepudiation,
  'key encipherment': x509.KeyUsageFlags.keyEncipherment,
  'key agreement': x509.KeyUsageFlags.keyAgreement,
  'data encipherment': x509.KeyUsageFlags.dataEncipherment,
  'cert sign': x509.KeyUsageFlags.keyCertSign,
  'crl sign': x509.KeyUsageFlags.cRLSign,
  'encipher only': x509.KeyUsageFlags.encipherOnly,
  'decipher only': x509.KeyUsageFlags.decipherOnly,
};
const EXTENDED_USAGES: Readonly<Record<string, string>> = {
  any: '2.5.29.37.0',
  'server auth': '1.3.6.1.5.5.7.3.1',
  'client auth': '1.3.6.1.5.5.7.3.2',
  'code signing': '1.3.6.1.5.5.7.3.3',
  'email protection': '1.3.6.1.5.5.7.3.4',
  's/mime': '1.3.6.1.5.5.7.3.4',
  'ipsec end system': '1.3.6.1.5.5.7.3.5',
  'ipsec tunnel': '1.3.6.1.5.5.7.3.6',
  'ipsec user': '1.3.6.1.5.5.7.3.7',
  timestamping: '1.3.6.1.5.5.7.3.8',
  'ocsp signing': '1.3.6.1.5.5.7.3.9',
  'microsoft sgc': '1.3.6.1.4.1.311.10.3.3',
  'netscape sgc': '2.16.840.1.113730.4.1',
};

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17';

x509.cryptoProvider.set(globalThis.crypto);

const newKeys = (): Promise<CryptoKeyPair> =>
  crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']) as Promise<CryptoKeyPair>;

async function privateKeyPem(key: CryptoKey): Promise<string> {
  const text = encodeBase64(new Uint8Array(await crypto.subtle.exportKey('pkcs8', key)));
  return `-----BEGIN PRIVATE KEY-----\n${text.match(/.{1,64}/g)!.join('\n')}\n-----END PRIVATE KEY-----\n`;
}

function openPrivateKey(pem: string): Promise<CryptoKey> {
  const body = /-----BEGIN [^-]+-----([^-]+)-----END/.exec(pem)?.[1];
  if (body === undefined) throw new SyntaxError('Cannot read PEM: no BEGIN/END block');
  return crypto.subtle.importKey('pkcs8', decodeBase64(body.replace(/\s+/g, '')), ALGORITHM, false, ['sign']);
}

const subjectName = ({ organizations = [], commonName }: Pick<IssueOptions, 'organizations' | 'commonName'>): string =>
  new x509.Name([...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }]).toString();

function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = bytes[0]! & 0x7f; // positive (RFC 5280, 4.1.2.2)
  return hexOf(bytes);
}

/** When a new CA is good, milliseconds since the epoch. */
export interface AuthorityValidity {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Makes a new CA, valid ten years when nothing else is said. */
export async function createAuthority(
  clock: Clock,
  commonName = 'coracle-ca',
  validity?: AuthorityValidity,
): Promise<KeyPairPem> {
  const keys = await newKeys();
  const now = clock.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${commonName}`,
    notBefore: new Date(validity?.notBefore ?? now - DAY_MS),
    notAfter: new Date(validity?.notAfter ?? now + 3650 * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: await privateKeyPem(keys.privateKey) };
}

/** Opens a CA from its PEM pair. Throws when the key does not parse. */
export async function openAuthority(pair: KeyPairPem, clock: Clock): Promise<CertificateAuthority> {
  const certificate = new x509.X509Certificate(pair.certificate);
  const signingKey = await openPrivateKey(pair.key);
  /** A certificate of this CA, which it does not outlive. */
  const certify = async (
    { subject, publicKey, names }: Certified,
    { usages, from, to }: { readonly usages: readonly string[]; readonly from: number; readonly to: number },
  ): Promise<string> => {
    const keyUsage = usages.reduce((flags, usage) => flags | (KEY_USAGES[usage] ?? 0), 0);
    const extended = [...new Set(usages.flatMap((usage) => EXTENDED_USAGES[usage] ?? []))];
    const issued = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject,
      issuer: certificate.subject,
      notBefore: new Date(from),
      notAfter: new Date(Math.min(to, certificate.notAfter.getTime())),
      signingAlgorithm: ALGORITHM,
      publicKey,
      signingKey,
      extensions: [
        ...(keyUsage === 0 ? [] : [new x509.KeyUsagesExtension(keyUsage, true)]),
        ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
        new x509.BasicConstraintsExtension(false, undefined, true),
        await x509.AuthorityKeyIdentifierExtension.create(certificate),
        ...(names ? [names] : []),
      ],
    });
    return `${issued.toString('pem')}\n`;
  };
  return {
    certificate: pair.certificate,
    async sign(text, { usages, expirationSeconds = YEAR_SECONDS }) {
      const request = new x509.Pkcs10CertificateRequest(text);
      const seconds = Math.max(MIN_SECONDS, Math.min(expirationSeconds, YEAR_SECONDS));
      const now = clock.now();
      const end = now + (seconds - (seconds < SHORT_SECONDS ? 0 : BACKDATE_SECONDS)) * 1000;
      const names = request.extensions.find(({ type }) => type === SUBJECT_ALTERNATIVE_NAME);
      const { subjectName: subject, publicKey } = request;
      return certify({ subject, publicKey, names }, { usages, from: now - BACKDATE_SECONDS * 1000, to: end });
    },
    async issue(options) {
      const keys = await newKeys();
      const now = clock.now();
      const names = [
        ...(options.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
        ...(options.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
      ];
      const uses = options.usage === 'both' ? ['server auth', 'client auth'] : [`${options.usage} auth`];
      const issued = await certify(
        {
          subject: subjectName(options),
          publicKey: keys.publicKey,
          names: names.length > 0 ? new x509.SubjectAlternativeNameExtension(names) : undefined,
        },
        { usages: ['digital signature', ...uses], from: now - DAY_MS, to: now + options.days * DAY_MS },
      );
      return { certificate: issued, key: await privateKeyPem(keys.privateKey) };
    },
  };
}

interface Certified {
  readonly subject: string | x509.Name;
  readonly publicKey: x509.PublicKeyType;
  /** Alternative names. */
  readonly names: x509.Extension | undefined;
}

/** Whether a CA's certificate and key (PEM) can be read and belong together. */
export async function isAuthorityPair(pair: KeyPairPem): Promise<boolean> {
  try {
    const certificate = new x509.X509Certificate(pair.certificate);
    const signingKey = await openPrivateKey(pair.key);
    const publicKey = await certificate.publicKey.export(ALGORITHM, ['verify']);
    const probe = crypto.getRandomValues(new Uint8Array(32));
    const signature = await crypto.subtle.sign(ALGORITHM, signingKey, probe);
    return (
      certificate.getExtension(x509.BasicConstraintsExtension)?.ca === true &&
      (await crypto.subtle.verify(ALGORITHM, publicKey, signature, probe))
    );
  } catch {
    return false;
  }
}

/** Makes a key and a request for a client certificate of that name, both PEM (key: PKCS #8). */
export async function createSigningRequest(subject: {
  readonly commonName: string;
  readonly organizations: readonly string[];
}): Promise<{ readonly request: string; readonly key: string }> {
  const keys = await newKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: subjectName(subject),
    keys,
    signingAlgorithm: ALGORITHM,
  });
  return { request: `${request.toString('pem')}\n`, key: await privateKeyPem(keys.privateKey) };
}
