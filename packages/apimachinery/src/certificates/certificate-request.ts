/** PKCS #10 (RFC 2986): what a certificate signing request asks for, and whether its maker holds the key. */
import { decodeBase64 } from '../meta/base64.ts';
import {
  BIT_STRING,
  expect,
  INTEGER,
  identifierText,
  OBJECT_IDENTIFIER,
  OCTET_STRING,
  readDer,
  readOne,
  SEQUENCE,
  SET,
  stringText,
} from './der.ts';

export interface CertificateRequest {
  readonly commonName: string;
  /** In order. */
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  readonly ipAddresses: readonly Uint8Array[];
  /** The signed part, the key (SubjectPublicKeyInfo) and the signature: for `checkRequestSignature`. */
  readonly signed: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly signatureAlgorithm: string;
  readonly signature: Uint8Array;
}

const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17';
const ATTRIBUTES = 0xa0;
const IP_ADDRESS = 0x87;
const TEXT_NAMES: ReadonlyMap<number, 'emailAddresses' | 'dnsNames' | 'uris'> = new Map([
  [0x81, 'emailAddresses'],
  [0x82, 'dnsNames'],
  [0x86, 'uris'],
]);

/** One of ten thousand names is as large. What is larger is a load to read element by element, not a request. */
const MAX_BYTES = 256 * 1024;

/** Reads the first PEM block. Throws SyntaxError, with Go's words where it is no request at all. */
export function parseCertificateRequest(pem: string): CertificateRequest {
  const block = /-----BEGIN ([^-\r\n]+)-----([^-]*)-----END \1-----/.exec(pem);
  if (block?.[1] !== 'CERTIFICATE REQUEST') throw new SyntaxError('PEM block type must be CERTIFICATE REQUEST');
  const der = decodeBase64(block[2]!.replace(/\s+/g, ''));
  if (der.length > MAX_BYTES) throw new SyntaxError(`a certificate request has at most ${MAX_BYTES} bytes`);
  const whole = readDer(readOne(der, SEQUENCE).content);
  const info = expect(whole, 0, SEQUENCE);
  const parts = readDer(info.content);
  expect(parts, 0, INTEGER);
  const names = { commonName: '', organizations: [] as string[] };
  for (const set of readDer(expect(parts, 1, SEQUENCE).content)) {
    for (const attribute of readDer(set.content)) {
      const [type, value] = readDer(attribute.content);
      if (type?.tag !== OBJECT_IDENTIFIER || value === undefined) throw new SyntaxError('asn1: structure error');
      const identifier = identifierText(type.content);
      // Of several common names the last one stands, as in Go's pkix.Name.
      if (identifier === COMMON_NAME) names.commonName = stringText(value);
      else if (identifier === ORGANIZATION) names.organizations.push(stringText(value));
    }
  }
  const algorithm = readDer(expect(whole, 1, SEQUENCE).content);
  return {
    ...names,
    ...alternativeNames(parts.find(({ tag }) => tag === ATTRIBUTES)?.content),
    signed: info.raw,
    publicKey: expect(parts, 2, SEQUENCE).raw,
    signatureAlgorithm: identifierText(expect(algorithm, 0, OBJECT_IDENTIFIER).content),
    // The first byte of a bit string counts unused bits, of which a signature has none.
    signature: expect(whole, 2, BIT_STRING).content.subarray(1),
  };
}

function alternativeNames(
  attributes: Uint8Array | undefined,
): Pick<CertificateRequest, 'dnsNames' | 'emailAddresses' | 'uris' | 'ipAddresses'> {
  const texts = { dnsNames: [] as string[], emailAddresses: [] as string[], uris: [] as string[] };
  const ipAddresses: Uint8Array[] = [];
  for (const attribute of attributes ? readDer(attributes) : []) {
    const [type, values] = readDer(attribute.content);
    if (type === undefined || identifierText(type.content) !== EXTENSION_REQUEST || values?.tag !== SET) continue;
    for (const extensions of readDer(values.content)) {
      for (const extension of readDer(extensions.content)) {
        const fields = readDer(extension.content);
        const value = fields.at(-1);
        if (identifierText(expect(fields, 0, OBJECT_IDENTIFIER).content) !== SUBJECT_ALTERNATIVE_NAME) continue;
        if (value?.tag !== OCTET_STRING) throw new SyntaxError('asn1: structure error');
        for (const name of readDer(readOne(value.content, SEQUENCE).content)) {
          const list = TEXT_NAMES.get(name.tag);
          if (list !== undefined) texts[list].push(new TextDecoder().decode(name.content));
          else if (name.tag === IP_ADDRESS) ipAddresses.push(name.content);
        }
      }
    }
  }
  return { ...texts, ipAddresses };
}

/** SHA-1 as well: Go takes it for requests, though for nothing else. */
type Hash = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';
const RSA_HASHES: Readonly<Record<string, Hash>> = {
  '1.2.840.113549.1.1.5': 'SHA-1',
  '1.2.840.113549.1.1.11': 'SHA-256',
  '1.2.840.113549.1.1.12': 'SHA-384',
  '1.2.840.113549.1.1.13': 'SHA-512',
};
const ECDSA_HASHES: Readonly<Record<string, Hash>> = {
  '1.2.840.10045.4.1': 'SHA-1',
  '1.2.840.10045.4.3.2': 'SHA-256',
  '1.2.840.10045.4.3.3': 'SHA-384',
  '1.2.840.10045.4.3.4': 'SHA-512',
};
const ED25519 = '1.3.101.112';
const CURVES: Readonly<Record<string, readonly [name: string, bytes: number]>> = {
  '1.2.840.10045.3.1.7': ['P-256', 32],
  '1.3.132.0.34': ['P-384', 48],
  '1.3.132.0.35': ['P-521', 66],
};

/** Why the signature is not one by the request's own key, in Go's words; undefined when it is. */
export async function checkRequestSignature(request: CertificateRequest): Promise<string | undefined> {
  const { signatureAlgorithm, publicKey, signature, signed } = request;
  const verify = async (algorithm: { readonly name: string; readonly [more: string]: unknown }, bytes = signature) => {
    try {
      const key = await crypto.subtle.importKey('spki', copied(publicKey), algorithm, false, ['verify']);
      return await crypto.subtle.verify(algorithm, key, copied(bytes), copied(signed));
    } catch {
      return false; // a key of another kind than the signature claims
    }
  };
  const rsa = RSA_HASHES[signatureAlgorithm];
  if (rsa)
    return (await verify({ name: 'RSASSA-PKCS1-v1_5', hash: rsa })) ? undefined : 'crypto/rsa: verification error';
  const ecdsa = ECDSA_HASHES[signatureAlgorithm];
  if (ecdsa) {
    const curve = curveOf(publicKey);
    const raw = curve && rawSignature(signature, curve[1]);
    const good = raw !== undefined && (await verify({ name: 'ECDSA', namedCurve: curve![0], hash: ecdsa }, raw));
    return good ? undefined : 'x509: ECDSA verification failure';
  }
  if (signatureAlgorithm === ED25519)
    return (await verify({ name: 'Ed25519' })) ? undefined : 'x509: Ed25519 verification failure';
  return 'x509: cannot verify signature: algorithm unimplemented';
}

/** WebCrypto takes views of plain buffers only. */
const copied = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);

function curveOf(publicKey: Uint8Array): readonly [name: string, bytes: number] | undefined {
  const [algorithm] = readDer(readOne(publicKey, SEQUENCE).content);
  const parameter = algorithm && readDer(algorithm.content)[1];
  return parameter?.tag === OBJECT_IDENTIFIER ? CURVES[identifierText(parameter.content)] : undefined;
}

/** DER's two integers as WebCrypto's fixed halves; undefined when they do not fit. */
function rawSignature(der: Uint8Array, size: number): Uint8Array | undefined {
  try {
    const raw = new Uint8Array(size * 2);
    const integers = readDer(readOne(der, SEQUENCE).content);
    for (const [at, half] of [0, size].entries()) {
      const { content } = expect(integers, at, INTEGER);
      const digits = content[0] === 0 ? content.subarray(1) : content;
      if (digits.length > size) return undefined;
      raw.set(digits, half + size - digits.length);
    }
    return raw;
  } catch {
    return undefined;
  }
}
