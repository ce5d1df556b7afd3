/** Who spoke to a guest by UDP, and may be answered: as the table of a router that translates addresses. */
import type { UdpPeer } from './packet-rule.ts';

const MAX_PEERS = 4096;
/** As long as a router remembers a datagram that was answered. */
const REMEMBERED_MS = 180_000;

export interface UdpPeers {
  saw(peer: UdpPeer): void;
  answers(peer: UdpPeer): boolean;
}

/** Makes the table. The one that has been silent longest goes when there are too many. */
export function createUdpPeers(now: () => number): UdpPeers {
  const seen = new Map<string, number>();
  const keyOf = ({ gatewayPort, guestPort }: UdpPeer): string => `${gatewayPort}/${guestPort}`;
  return {
    saw(peer) {
      const key = keyOf(peer);
      seen.delete(key);
      seen.set(key, now());
      if (seen.size > MAX_PEERS) seen.delete(seen.keys().next().value as string);
    },
    answers(peer) {
      const at = seen.get(keyOf(peer));
      return at !== undefined && now() - at < REMEMBERED_MS;
    },
  };
}
