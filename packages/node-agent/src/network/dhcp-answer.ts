/**
 * Answers a guest that asks for its address by DHCP (RFC 2131, RFC 2132) in the place of libslirp, which knows no time
 * servers and private options: pure. The guest has one address, so there is nothing to remember.
 */
import { ipv4Of, makeFrame, numberOf, put16, put32, UDP, u16, u32 } from './ipv4-frame.ts';
import type { FilteredNetwork } from './packet-rule.ts';
import { macBytes } from './switch/guest-port.ts';
import type { GuestHello } from './switch/switch-state.ts';

/** What the guest gets beside its address and its gateway. */
export interface DhcpOptions {
  readonly hostname?: string;
  readonly bootFile?: string;
  readonly tftpServer?: string;
  readonly searches?: readonly string[];
  readonly ntpServers?: readonly string[];
  readonly privateOptions?: readonly { readonly option: number; readonly value: string }[];
}

const SERVER_PORT = 67;
const CLIENT_PORT = 68;
const BROADCAST = 0xffffffff;
/** Where the fields of a message are (RFC 2131, 2). */
const FIELDS = {
  clientAddress: 12,
  ownAddress: 16,
  server: 20,
  relay: 24,
  name: 44,
  file: 108,
  cookie: 236,
  options: 240,
} as const;
const FILE_BYTES = 128;
const COOKIE = 0x63825363;
const OPTION = {
  mask: 1,
  router: 3,
  dns: 6,
  hostname: 12,
  timeServers: 42,
  requested: 50,
  lease: 51,
  type: 53,
  server: 54,
  tftpServer: 66,
  bootFile: 67,
  searches: 119,
  end: 255,
} as const;
const TYPE = { discover: 1, offer: 2, request: 3, ack: 5, nak: 6, inform: 8 } as const;
/** As libslirp's. */
const LEASE_SECONDS = 24 * 3600;
/** What a message has at least (RFC 951). */
const MIN_MESSAGE = 300;

const encoder = new TextEncoder();
const number32 = (value: number): number[] => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255);
const textBytes = (text: string): number[] => [...encoder.encode(text)];
/** RFC 3397, without compression. */
const domainBytes = (domain: string): number[] => [
  ...domain.split('.').flatMap((label) => [label.length, ...textBytes(label)]),
  0,
];

/** The frame that answers one of the guest; undefined for what asks for no address. */
export function answerDhcp(
  frame: Uint8Array,
  {
    network,
    hello,
    options,
  }: { readonly network: FilteredNetwork; readonly hello: GuestHello; readonly options: DhcpOptions },
): Uint8Array | undefined {
  const packet = ipv4Of(frame);
  if (packet?.protocol !== UDP || packet.isPart || packet.end < packet.payload + 8 + FIELDS.options) return undefined;
  if (u16(frame, packet.payload + 2) !== SERVER_PORT) return undefined;
  const message = frame.subarray(packet.payload + 8, packet.end);
  const asked = optionsOf(message);
  const type = asked.get(OPTION.type)?.[0];
  if (message[0] !== 1 || u32(message, FIELDS.cookie) !== COOKIE) return undefined;
  if (type !== TYPE.discover && type !== TYPE.request && type !== TYPE.inform) return undefined;
  const own = numberOf(hello.inside);
  const wanted = asked.get(OPTION.requested) ?? message.subarray(FIELDS.clientAddress, FIELDS.ownAddress);
  const isOther = type === TYPE.request && u32(wanted, 0) !== own && u32(wanted, 0) !== 0;
  const answer = type === TYPE.discover ? TYPE.offer : isOther ? TYPE.nak : TYPE.ack;
  const given = isOther ? [] : optionsFor(network, options, type !== TYPE.inform);
  const gateway = numberOf(network.gateway);
  const head: (readonly [number, readonly number[]])[] = [
    [OPTION.type, [answer]],
    [OPTION.server, number32(gateway)],
  ];
  const written = [...head, ...given].flatMap(([code, bytes]) => [code, bytes.length, ...bytes]);
  const reply = new Uint8Array(Math.max(MIN_MESSAGE, FIELDS.options + written.length + 1));
  // Kinds of address, transaction, flags, the client's address and its hardware address come back as they came.
  reply.set(message.subarray(0, FIELDS.ownAddress));
  reply.set(message.subarray(FIELDS.relay, FIELDS.name), FIELDS.relay);
  reply[0] = 2;
  put32(reply, FIELDS.ownAddress, isOther || type === TYPE.inform ? 0 : own);
  put32(reply, FIELDS.server, gateway);
  if (!isOther && options.bootFile !== undefined)
    reply.set(textBytes(options.bootFile).slice(0, FILE_BYTES - 1), FIELDS.file);
  put32(reply, FIELDS.cookie, COOKIE);
  reply.set([...written, OPTION.end], FIELDS.options);
  return framed(reply, { gateway, to: isOther ? BROADCAST : own, mac: macBytes(hello.mac) });
}

/** The options of a message by their codes; what is cut off is left out. */
function optionsOf(message: Uint8Array): Map<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  for (let at: number = FIELDS.options; at < message.length && message[at] !== OPTION.end; ) {
    const length = message[at + 1] ?? 0;
    if (message[at] === 0) at++;
    else {
      if (at + 2 + length <= message.length) found.set(message[at]!, message.subarray(at + 2, at + 2 + length));
      at += 2 + length;
    }
  }
  return found;
}

function optionsFor(
  { cidr, gateway, dns }: FilteredNetwork,
  { hostname, tftpServer, bootFile, searches = [], ntpServers = [], privateOptions = [] }: DhcpOptions,
  hasLease: boolean,
): (readonly [number, readonly number[]])[] {
  const mask = (0xffffffff << (32 - Number(cidr.split('/')[1]))) >>> 0;
  const all: (readonly [number, readonly number[]])[] = [
    [OPTION.mask, number32(mask)],
    [OPTION.router, number32(numberOf(gateway))],
    [OPTION.dns, number32(numberOf(dns))],
    [OPTION.lease, hasLease ? number32(LEASE_SECONDS) : []],
    [OPTION.hostname, textBytes(hostname ?? '')],
    [OPTION.searches, searches.flatMap(domainBytes)],
    [OPTION.tftpServer, textBytes(tftpServer ?? '')],
    [OPTION.bootFile, textBytes(bootFile ?? '')],
    [OPTION.timeServers, ntpServers.flatMap((server) => number32(numberOf(server)))],
    ...privateOptions.map(({ option, value }) => [option, textBytes(value)] as const),
  ];
  return all.filter(([, bytes]) => bytes.length > 0);
}

function framed(
  message: Uint8Array,
  { gateway, to, mac }: { readonly gateway: number; readonly to: number; readonly mac: readonly number[] },
): Uint8Array {
  const payload = new Uint8Array(8 + message.length);
  put16(payload, 0, SERVER_PORT);
  put16(payload, 2, CLIENT_PORT);
  put16(payload, 4, payload.length);
  payload.set(message, 8);
  const frame = makeFrame({ protocol: UDP, source: gateway, destination: to, payload });
  frame.set([...(to === BROADCAST ? Array(6).fill(0xff) : mac), 0x52, 0x55, ...number32(gateway)]);
  return frame;
}
