/**
 * Which packets of a guest may reach the user-mode network behind its card: pure. That network (libslirp) turns every
 * address of the guest's own range into the host's 127.0.0.1, and dials any other as it stands, also 127.0.0.0/8: both
 * would lead to services of the host and to the forwarded ports of other guests. What is read here is read as libslirp
 * reads it; what cannot be read does not pass.
 */
import { ARP, ETHERNET, ICMP, ipv4Of, numberOf, opensConnection, TCP, UDP, u16 } from './ipv4-frame.ts';

/** The network of one card, as its plan has it. */
export interface FilteredNetwork {
  /** `10.0.2.0/24` */
  readonly cidr: string;
  readonly gateway: string;
  /** Answers DNS: whatever resolver the host uses. */
  readonly dns: string;
}

/** One UDP port of the gateway that spoke to a port of the guest: the guest may answer there. */
export interface UdpPeer {
  readonly gatewayPort: number;
  readonly guestPort: number;
}

export interface PacketRule {
  /** Of a frame from the guest: may it go on? `answers` tells whether it answers somebody's datagram. */
  mayPass(frame: Uint8Array, answers: (peer: UdpPeer) => boolean): boolean;
  /** Of a frame to the guest: the port that it makes answerable, if it is a datagram from the gateway. */
  udpPeer(frame: Uint8Array): UdpPeer | undefined;
}

const DNS_PORT = 53;
const DHCP_SERVER = 67;
const BROADCAST = 0xffffffff;

/** Addresses that lead nowhere but to this host, or to whoever listens on its link. */
export function isLocal(address: number): boolean {
  const first = address >>> 24;
  // This host, loopback, link-local (no router passes those on: RFC 3927), groups, broadcast.
  return first === 0 || first === 127 || address >>> 16 === 0xa9fe || first >= 224;
}

/** Makes the rule of one card. */
export function packetRule({ cidr, gateway, dns }: FilteredNetwork): PacketRule {
  const [base = '', bits = '32'] = cidr.split('/');
  const mask = (0xffffffff << (32 - Number(bits))) >>> 0;
  const network = (numberOf(base) & mask) >>> 0;
  const host = numberOf(gateway);
  const resolver = numberOf(dns);

  return {
    mayPass(frame, answers) {
      if (frame.length >= ETHERNET && u16(frame, 12) === ARP) return true;
      const packet = ipv4Of(frame);
      if (!packet) return false;
      const { destination, protocol, payload, isPart } = packet;
      const isOwn = (destination & mask) >>> 0 === network;
      if (!isOwn && destination !== BROADCAST) return !isLocal(destination);
      if (isPart) return false;
      if (protocol === ICMP) return destination === host || destination === resolver;
      if (frame.length < payload + 8) return false;
      const port = u16(frame, payload + 2);
      if (protocol === UDP) {
        if (port === DHCP_SERVER && (destination === host || destination === BROADCAST)) return true;
        if (destination === resolver && port === DNS_PORT) return true;
        return destination === host && answers({ gatewayPort: port, guestPort: u16(frame, payload) });
      }
      if (protocol !== TCP || !isOwn || frame.length < payload + 20) return false;
      // Connections come from the gateway, never go there: but what belongs to one that came may go back.
      return !opensConnection(frame, packet) || (destination === resolver && port === DNS_PORT);
    },
    udpPeer(frame) {
      const packet = ipv4Of(frame);
      if (packet?.protocol !== UDP || packet.source !== host || packet.isPart) return undefined;
      if (frame.length < packet.payload + 8) return undefined;
      return { gatewayPort: u16(frame, packet.payload), guestPort: u16(frame, packet.payload + 2) };
    },
  };
}
