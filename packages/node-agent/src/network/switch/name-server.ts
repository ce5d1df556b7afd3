/**
 * DNS for guests: names of the cluster alone, as far as a resolver in a guest asks for them (RFC 1035; the names are those
 * of the specification "Kubernetes DNS-Based Service Discovery", 1.1). Pure. All others go on to the host's resolver.
 */
import { numberOf, put16, put32, u16 } from '../ipv4-frame.ts';

export const DNS_PORT = 53;
const CLUSTER_DOMAIN = 'cluster.local';
const HEADER = 12;
const MAX_NAME = 253;
const TYPE = { A: 1, SOA: 6, PTR: 12, SRV: 33, ANY: 255 } as const;
const CLASS_IN = 1;
const TTL_SECONDS = 5;
/** Answers that fit into a datagram of 512 bytes, which every resolver takes (RFC 1035, 4.2.1). */
const MAX_BYTES = 512;
const NO_ERROR = 0;
const NO_SUCH_NAME = 3;

/** What a name leads to. */
export interface NameRecord {
  readonly addresses: readonly string[];
  /** For names `_PORT._PROTOCOL.SERVICE.NAMESPACE.svc`. */
  readonly services?: readonly { readonly port: number; readonly target: string }[];
}

/** Finds a name without its domain: `web.default.svc`; undefined where there is none of it. */
export type NameLookup = (name: string) => NameRecord | undefined;

export interface Question {
  /** In lower case, without the dot at its end. */
  readonly name: string;
  readonly type: number;
  /** Where the question ends in the message. */
  readonly end: number;
}

/** The one question of a query; undefined for everything else. */
export function questionOf(message: Uint8Array): Question | undefined {
  const flags = u16(message, 2);
  const isQuery = (flags & 0xf800) === 0;
  if (message.length < HEADER + 5 || !isQuery || u16(message, 4) !== 1) return undefined;
  const labels: string[] = [];
  let at = HEADER;
  let total = 0;
  for (;;) {
    const length = message[at] ?? 0;
    if (length === 0) break;
    total += length + 1;
    if (length > 63 || total > MAX_NAME + 1 || at + length >= message.length) return undefined;
    labels.push(String.fromCharCode(...message.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
  if (at + 5 > message.length || u16(message, at + 3) !== CLASS_IN) return undefined;
  return { name: labels.join('.').toLowerCase(), type: u16(message, at + 1), end: at + 5 };
}

/** A name of the cluster without its domain, `web.default.svc`; undefined for a name of the world. */
export function clusterName(name: string): string | undefined {
  if (name.endsWith(`.${CLUSTER_DOMAIN}`)) return name.slice(0, -CLUSTER_DOMAIN.length - 1);
  return name.endsWith('.svc') ? name : undefined;
}

const nameBytes = (name: string): number[] => [
  ...name.split('.').flatMap((label) => [label.length, ...new TextEncoder().encode(label)]),
  0,
];

const record = (owner: readonly number[], type: number, data: readonly number[]): Uint8Array => {
  const bytes = new Uint8Array(owner.length + 10 + data.length);
  bytes.set(owner);
  put16(bytes, owner.length, type);
  put16(bytes, owner.length + 2, CLASS_IN);
  put32(bytes, owner.length + 4, TTL_SECONDS);
  put16(bytes, owner.length + 8, data.length);
  bytes.set(data, owner.length + 10);
  return bytes;
};

/** The name of the question, as a pointer. */
const ASKED = [0xc0, HEADER];
const addressBytes = (address: string): number[] => {
  const number = numberOf(address);
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255);
};

function answersTo(type: number, found: NameRecord): Uint8Array[] {
  const answers: Uint8Array[] = [];
  if (type === TYPE.A || type === TYPE.ANY)
    for (const address of found.addresses) answers.push(record(ASKED, TYPE.A, addressBytes(address)));
  if (type === TYPE.SRV || type === TYPE.ANY)
    for (const { port, target } of found.services ?? [])
      answers.push(
        record(ASKED, TYPE.SRV, [0, 0, 0, 100, port >>> 8, port & 255, ...nameBytes(`${target}.${CLUSTER_DOMAIN}`)]),
      );
  return answers;
}

/** Says that there is nothing more to know, and for how long that holds (RFC 2308). */
const nothing = (): Uint8Array =>
  record(nameBytes(CLUSTER_DOMAIN), TYPE.SOA, [
    ...nameBytes(`ns.dns.${CLUSTER_DOMAIN}`),
    ...nameBytes(`hostmaster.${CLUSTER_DOMAIN}`),
    ...[1, 7200, 1800, 86_400, TTL_SECONDS].flatMap((value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255)),
  ]);

/**
 * The answer to a query; undefined where the name is none of the cluster's. `turn` says which of several addresses comes
 * first; those that do not fit are left out.
 */
export function answerQuery(message: Uint8Array, lookup: NameLookup, turn = 0): Uint8Array | undefined {
  const question = questionOf(message);
  const name = question && clusterName(question.name);
  if (!question || name === undefined) return undefined;
  const found = lookup(name);
  const all = found ? answersTo(question.type, found) : [];
  const first = all.length === 0 ? 0 : turn % all.length;
  const answers: Uint8Array[] = [];
  let length = question.end;
  for (const one of [...all.slice(first), ...all.slice(0, first)]) {
    if (length + one.length > MAX_BYTES) break;
    answers.push(one);
    length += one.length;
  }
  const authority = answers.length === 0 ? [nothing()] : [];
  const header = new Uint8Array(message.subarray(0, question.end));
  // An authoritative answer; whether recursion was wanted is said back, and that it can be had.
  put16(header, 2, 0x8480 | (u16(message, 2) & 0x0100) | (found ? NO_ERROR : NO_SUCH_NAME));
  put16(header, 6, answers.length);
  put16(header, 8, authority.length);
  put16(header, 10, 0);
  return Buffer.concat([header, ...answers, ...authority]);
}
