/** How a packet is refused that nobody answers. Pure. */
import {
  ETHERNET,
  ICMP,
  type Ipv4Packet,
  makeFrame,
  opensConnection,
  portsOf,
  put16,
  put32,
  TCP,
  u32,
} from '../ipv4-frame.ts';

/** A frame that says to whoever sent `frame` that nobody answers there; undefined where silence is right. */
export function refusalOf(frame: Uint8Array, packet: Ipv4Packet): Uint8Array | undefined {
  const { protocol, source, destination, payload } = packet;
  const ports = portsOf(frame, packet);
  if (!ports) return undefined;
  const back = { source: destination, destination: source };
  if (protocol === TCP) {
    if (!opensConnection(frame, packet)) return undefined;
    const segment = new Uint8Array(20);
    put16(segment, 0, ports.destination);
    put16(segment, 2, ports.source);
    put32(segment, 8, (u32(frame, payload + 4) + 1) >>> 0);
    segment[12] = 0x50;
    // RST and ACK.
    segment[13] = 0x14;
    return makeFrame({ ...back, protocol: TCP, payload: segment });
  }
  // Port unreachable, with the header and eight bytes of what could not be delivered (RFC 792).
  const message = new Uint8Array(8 + payload - ETHERNET + 8);
  message[0] = 3;
  message[1] = 3;
  message.set(frame.subarray(ETHERNET, payload + 8), 8);
  return makeFrame({ ...back, protocol: ICMP, payload: message });
}
