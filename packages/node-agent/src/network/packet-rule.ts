/**
 * Which packets of a guest may reach the user-mode network behind its card: pure. That network (libslirp) turns every
 * address of the guest's own range into the host's 127.0.0.1, and dials any other as it stands, also 127.0.0.0/8: both
 * would lead to services of the host and to the forwarded ports of other guests. What is read here is read as libslirp
 * reads it; what cannot be read does not pass.
 */

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

const ETHERNET = 14;
const ARP = 0x0806;
const IPV4 = 0x0800;
const ICMP = 1;
const TCP = 6;
const UDP = 17;
const DNS_PORT = 53;
const DHCP_SERVER = 67;
const BROADCAST = 0xffffffff;
/** FIN, SYN, RST, ACK and URG: a segment that has SYN alone of them opens a connection. */
const OPENING_FLAGS = 0x37;
const SYN = 0x02;

const numberOf = (address: string): number =>
  address.split('.').reduce((sum, octet) => ((sum << 8) | Number(octet)) >>> 0, 0);
const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
const u32 = (bytes: Uint8Array, at: number): number => ((u16(bytes, at) << 16) | u16(bytes, at + 2)) >>> 0;

/** What an IPv4 frame holds; undefined when it is none, or is cut off. */
function ipv4Of(frame: Uint8Array) {
  if (frame.length < ETHERNET + 20 || u16(frame, 12) !== IPV4) return undefined;
  const first = frame[ETHERNET] ?? 0;
  const header = (first & 15) * 4;
  if (first >> 4 !== 4 || header < 20) return undefined;
  return {
    protocol: frame[ETHERNET + 9] ?? 0,
    source: u32(frame, ETHERNET + 12),
    destination: u32(frame, ETHERNET + 16),
    /** A part of a packet: more follow, or some went before. */
    isPart: (u16(frame, ETHERNET + 6) & 0x3fff) !== 0,
    payload: ETHERNET + header,
  };
}

/** Addresses that lead nowhere but to this host, or to whoever listens on its link. */
function isLocal(address: number): boolean {
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
      const opens = ((frame[payload + 13] ?? 0) & OPENING_FLAGS) === SYN;
      return !opens || (destination === resolver && port === DNS_PORT);
    },
    udpPeer(frame) {
      const packet = ipv4Of(frame);
      if (packet?.protocol !== UDP || packet.source !== host || packet.isPart) return undefined;
      if (frame.length < packet.payload + 8) return undefined;
      return { gatewayPort: u16(frame, packet.payload), guestPort: u16(frame, packet.payload + 2) };
    },
  };
}
