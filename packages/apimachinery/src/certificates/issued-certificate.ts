/** Whether a text holds certificates in PEM and nothing else (apis/certificates/validation). */
import { decodeBase64 } from '../meta/base64.ts';
import { goQuote } from '../meta/go-text.ts';
import { BIT_STRING, expect, readDer, SEQUENCE } from './der.ts';

const BLOCK = /-----BEGIN ([^\r\n]*?)-----[ \t]*\r?\n([^-]*)-----END \1-----/g;
const BODY = /^[A-Za-z0-9+/=\s]*$/;

/** What is wrong with an issued chain, in upstream's words; undefined = nothing. */
export function issuedCertificateProblem(pem: string): string | undefined {
  let blocks = 0;
  for (const [, type = '', body = ''] of pem.matchAll(BLOCK)) {
    const hasHeaders = body.includes(':');
    // A block that cannot be read is passed over, as any other text around blocks is.
    if (!hasHeaders && !BODY.test(body)) continue;
    if (type !== 'CERTIFICATE') return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(type)}`;
    if (hasHeaders) return 'no PEM block headers are permitted';
    blocks++;
    const problem = certificateProblem(body.replace(/\s+/g, ''));
    if (problem !== undefined) return problem;
  }
  return blocks === 0 ? 'must contain at least one CERTIFICATE PEM block' : undefined;
}

function certificateProblem(body: string): string | undefined {
  if (body === '') return 'found CERTIFICATE PEM block containing 0 certificates';
  try {
    for (const whole of readDer(decodeBase64(body))) {
      const parts = readDer(expect([whole], 0, SEQUENCE).content);
      for (const [at, tag] of [SEQUENCE, SEQUENCE, BIT_STRING].entries()) expect(parts, at, tag);
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return 'x509: malformed certificate';
  }
}
