/**
 * Who is at the other end of a connection between two agents: both show a certificate with the name of their node, of
 * the cluster's CA or the one that is kept for agents, and each checks the other's. TLS 1.3. A node's certificate is for
 * clients by its usage; here it serves on both ends, so the chain is checked by us and not by the rules for web servers.
 */
import { X509Certificate } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import type { Clock } from '@coracle/runtime/clock/clock';
import { awaitConnection } from '../qmp/await-connection.ts';

/** What an agent proves its node's name with. */
export interface PeerIdentity {
  /**
   * PEM; asked for at each connection, because it is renewed. CN `system:node:NAME`, O `system:nodes`. Throws an Error
   * with the obstacle while there is one.
   */
  readonly pair: () => { readonly certificate: string; readonly key: string };
  /** PEM of the CA that certificates of agents chain to, one or more certificates; asked for at each connection too. */
  readonly ca: string;
  /** Why the name cannot be proved now; undefined when it can. Without it, it always can. */
  readonly obstacle?: () => string | undefined;
  /** Hears that the obstacle has changed; as long as both live. */
  readonly onChange?: (listener: () => void) => void;
}

const NO_CERTIFICATE = 'the agent of this node has no certificate to prove its name to other nodes with';

/** Why a node with this identity can neither send nor take guests; undefined when it can. */
export function peerObstacle(peer: PeerIdentity | undefined): string | undefined {
  if (!peer) return NO_CERTIFICATE;
  const why = peer.obstacle?.();
  return why === undefined ? undefined : `${NO_CERTIFICATE}: ${why}`;
}

/** The identity, where it can be used. Throws an Error with the obstacle else. */
export function usablePeer(peer: PeerIdentity | undefined): PeerIdentity {
  const problem = peerObstacle(peer);
  if (!peer || problem !== undefined) throw new Error(problem);
  return peer;
}

const CONNECT_MS = 10_000;
const NODES_GROUP = 'system:nodes';
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Why the far end is not the agent of `nodeName`; undefined when it is. */
export function peerProblem(
  socket: Pick<TLSSocket, 'getPeerX509Certificate'>,
  expected: { readonly ca: string; readonly nodeName: string; readonly now: number },
): string | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return 'it shows no certificate';
  const authorities = (expected.ca.match(PEM) ?? []).map((pem) => new X509Certificate(pem));
  if (!authorities.some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey)))
    return 'its certificate is not of the CA of this cluster';
  if (Date.parse(certificate.validFrom) > expected.now || Date.parse(certificate.validTo) < expected.now)
    return 'its certificate has expired or is not valid yet';
  const { CN, O } = certificate.toLegacyObject().subject as { CN?: string | string[]; O?: string | string[] };
  if (CN !== `system:node:${expected.nodeName}`) return `it is ${JSON.stringify(CN)}, not node ${expected.nodeName}`;
  if (![O].flat().includes(NODES_GROUP)) return `its certificate is not of ${NODES_GROUP}`;
  return undefined;
}

/** Connects to the agent of a node; rejects unless it is that one. */
export async function connectPeer(
  { host, port, nodeName }: { readonly host: string; readonly port: number; readonly nodeName: string },
  options: { readonly identity: PeerIdentity; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<TLSSocket> {
  const { identity, clock, signal } = options;
  const { certificate, key } = identity.pair();
  signal.throwIfAborted();
  const socket = connect({ host, port, cert: certificate, key, minVersion: 'TLSv1.3', rejectUnauthorized: false });
  const late = `node ${nodeName} did not answer within ${CONNECT_MS} ms`;
  await awaitConnection(socket, 'secureConnect', { clock, timeoutMs: CONNECT_MS, late, signal });
  const problem = peerProblem(socket, { ca: identity.ca, nodeName, now: clock.now() });
  if (problem === undefined) return socket;
  socket.destroy();
  throw new Error(`${host}:${port} is not node ${nodeName}: ${problem}`);
}
