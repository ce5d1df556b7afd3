/** Answers a guest's question for a name of the cluster. */
import { type Ipv4Packet, makeFrame, put16, UDP } from '../ipv4-frame.ts';
import type { GuestPort } from './guest-port.ts';
import { answerQuery, DNS_PORT, type NameRecord } from './name-server.ts';
import type { NetworkState } from './switch-state.ts';

/** `100-64-0-9.default.pod` */
const POD_NAME = /^(\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\.[^.]+\.pod$/;

function recordOf(names: NetworkState['names'], name: string): NameRecord | undefined {
  if (Object.hasOwn(names, name)) return names[name];
  const address = POD_NAME.exec(name)?.[1]?.replaceAll('-', '.');
  return address === undefined ? undefined : { addresses: [address] };
}

/** Sends the answer, where the question is one for us. */
export function answerName(
  port: GuestPort,
  frame: Uint8Array,
  {
    packet,
    asked,
    names,
    turn,
  }: {
    readonly packet: Ipv4Packet;
    readonly asked: { readonly source: number };
    readonly names: NetworkState['names'];
    readonly turn: number;
  },
): void {
  const query = frame.subarray(packet.payload + 8, packet.end);
  const message = answerQuery(query, (name) => recordOf(names, name), turn);
  if (!message) return;
  const payload = new Uint8Array(8 + message.length);
  put16(payload, 0, DNS_PORT);
  put16(payload, 2, asked.source);
  put16(payload, 4, payload.length);
  payload.set(message, 8);
  port.answer(makeFrame({ protocol: UDP, source: packet.destination, destination: packet.source, payload }));
}
