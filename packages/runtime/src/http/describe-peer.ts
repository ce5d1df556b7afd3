/** The far end of a TLS connection: its address and the client certificate it showed. */
import { createHash, type X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { Peer, PeerCertificate } from './seam.ts';

/** A property, not a map by socket: HTTP/2 shows its socket through a proxy, which is another object. */
const PEER = Symbol('peer');

/** Who is at the far end, as it was seen when the handshake was over; undefined when it was not: then nobody is served. */
export const peerOf = (socket: object): Peer | undefined => (socket as { readonly [PEER]?: Peer })[PEER];

/**
 * Read once, when the handshake is over. A connection that has been reset has no address any more (undefined, or empty):
 * that is a connection to drop, and says nothing of who called.
 */
export function rememberPeer(socket: TLSSocket, frontProxyCa: X509Certificate | undefined): Peer | undefined {
  const address = socket.remoteAddress ?? '';
  if (address === '') return undefined;
  const shown = socket.getPeerX509Certificate?.();
  const certificate = shown && { verified: socket.authorized, ...describeCertificate(shown, frontProxyCa) };
  const peer: Peer = { address, ...(certificate && { certificate }) };
  Object.defineProperty(socket, PEER, { value: peer });
  return peer;
}

function describeCertificate(
  certificate: X509Certificate,
  frontProxyCa: X509Certificate | undefined,
): Omit<PeerCertificate, 'verified'> {
  // Node prints one RDN attribute a line; a subject may hold several O.
  const lines = (certificate.subject ?? '').split('\n');
  const values = (key: string): string[] =>
    lines.filter((l) => l.startsWith(`${key}=`)).map((l) => l.slice(key.length + 1));
  return {
    commonName: values('CN')[0] ?? '',
    organizations: values('O'),
    fingerprint: createHash('sha256').update(certificate.raw).digest('hex'),
    notAfter: Date.parse(certificate.validTo),
    ...(frontProxyCa && leadsTo(certificate, frontProxyCa) && { authority: 'front-proxy' as const }),
  };
}

/** Longest chain looked at. */
const MAX_CHAIN = 8;

/** Whether a certificate was issued by that authority, itself or through others it sent along. */
function leadsTo(certificate: X509Certificate, authority: X509Certificate): boolean {
  let at: X509Certificate | undefined = certificate;
  for (let depth = 0; at && depth < MAX_CHAIN; depth++) {
    if (at.checkIssued(authority) && at.verify(authority.publicKey)) return true;
    const { issuerCertificate }: X509Certificate = at;
    at = issuerCertificate?.fingerprint256 === at.fingerprint256 ? undefined : issuerCertificate;
  }
  return false;
}
