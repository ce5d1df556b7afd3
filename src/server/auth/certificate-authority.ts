/**
 * The cluster's certificate authority, made at first start. WebCrypto and ASN.1 only, so that it runs wherever the
 * control plane does. Keys are ECDSA P-256.
 */
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import type { Clock } from '../../base/clock/clock.ts';
import { decodePem, encodePem } from './pem.ts';

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
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

x509.cryptoProvider.set(globalThis.crypto);

const newKeys = (): Promise<CryptoKeyPair> =>
  crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']) as Promise<CryptoKeyPair>;

async function privateKeyPem(key: CryptoKey): Promise<string> {
  return encodePem(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = bytes[0]! & 0x7f; // positive (RFC 5280, 4.1.2.2)
  return [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
}

/** Makes a new CA, valid ten years. */
export async function createAuthority(clock: Clock): Promise<KeyPairPem> {
  const keys = await newKeys();
  const now = clock.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=coracle-ca',
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + 3650 * DAY_MS),
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
  const signingKey = await crypto.subtle.importKey('pkcs8', decodePem(pair.key), ALGORITHM, false, ['sign']);
  return {
    certificate: pair.certificate,
    async issue(options) {
      const keys = await newKeys();
      const now = clock.now();
      const names = [
        ...(options.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
        ...(options.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
      ];
      const usages =
        options.usage === 'server'
          ? [SERVER_AUTH]
          : options.usage === 'client'
            ? [CLIENT_AUTH]
            : [SERVER_AUTH, CLIENT_AUTH];
      const issued = await x509.X509CertificateGenerator.create({
        serialNumber: serialNumber(),
        subject: new x509.Name([
          ...(options.organizations ?? []).map((o) => ({ O: [o] })),
          { CN: [options.commonName] },
        ]).toString(),
        issuer: certificate.subject,
        notBefore: new Date(now - DAY_MS),
        notAfter: new Date(Math.min(now + options.days * DAY_MS, certificate.notAfter.getTime())),
        signingAlgorithm: ALGORITHM,
        publicKey: keys.publicKey,
        signingKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension(usages),
          await x509.AuthorityKeyIdentifierExtension.create(certificate),
          ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
        ],
      });
      return { certificate: `${issued.toString('pem')}\n`, key: await privateKeyPem(keys.privateKey) };
    },
  };
}
