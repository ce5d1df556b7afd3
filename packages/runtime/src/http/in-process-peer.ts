/**
 * The identity of callers in this very process. It is an object that this module made and remembers: no field of a
 * request, and nothing about a socket, can stand for it. An address that is missing says nothing about who calls.
 */
import { type ApiHandler, type Peer, type PeerCertificate, redirected } from './seam.ts';

const made = new WeakSet<Peer>();

/** Makes the identity of a caller in this process, with the certificate that it is taken to hold, if any. */
export function inProcessPeer(certificate?: PeerCertificate): Peer {
  const peer: Peer = Object.freeze({ address: '', ...(certificate && { certificate: Object.freeze(certificate) }) });
  made.add(peer);
  return peer;
}

/** Whether this very object came from `inProcessPeer`: a copy of it, or one that looks the same, does not count. */
export const isInProcess = (peer: Peer): boolean => made.has(peer);

/** The handler as a caller in this process reaches it: whoever holds the returned function is trusted as that. */
export function calledInProcess(handler: ApiHandler): ApiHandler {
  const peer = inProcessPeer();
  return (request) => handler(redirected(request, { peer }));
}
