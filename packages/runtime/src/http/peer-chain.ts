/** The certificates a TLS server shows, before anything vouches for them: for pinning a CA by its hash. */
import { createHash, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';

export interface ShownCertificate {
  readonly pem: string;
  readonly isCa: boolean;
  /** `sha256:` and the hex digest of its public key (SubjectPublicKeyInfo), as kubeadm writes it. */
  readonly hash: string;
}

/** Longer chains are cut: nobody needs them, and a server might make circles. */
const MAX_CHAIN = 8;
const WITHIN_MS = 10_000;

/** The public key hash of a PEM certificate. Throws when it is none. */
export function publicKeyHash(pem: string): string {
  const key = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** Connects, reads the chain and hangs up: nothing is sent, and nothing of the answer is believed. Rejects with one line. */
export function readPeerChain(url: string, signal: AbortSignal): Promise<readonly ShownCertificate[]> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      rejectUnauthorized: false,
      ...(isIP(host) === 0 && { servername: host }),
    });
    const give = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => give(new Error('interrupted'));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.setTimeout(WITHIN_MS, () => give(new Error(`${url} does not answer`)));
    socket.once('error', (error) => give(new Error(`${url} cannot be reached: ${error.message}`)));
    socket.once('close', () => signal.removeEventListener('abort', onAbort));
    socket.once('secureConnect', () => {
      const chain: ShownCertificate[] = [];
      let at: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
      while (at?.raw && chain.length < MAX_CHAIN) {
        const certificate = new X509Certificate(at.raw);
        const pem = certificate.toString();
        chain.push({ pem, isCa: certificate.ca, hash: publicKeyHash(pem) });
        at = at.issuerCertificate === at ? undefined : at.issuerCertificate;
      }
      socket.destroy();
      resolve(chain);
    });
  });
}
