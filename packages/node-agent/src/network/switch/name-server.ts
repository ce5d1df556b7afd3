/**
 * DNS for guests: names of the cluster alone, as far as a resolver in a guest asks for them (RFC 1035; the names are those
 * of the specification "Kubernetes DNS-Based Service Discovery", 1.1). Pure. All others go on to the host's resolver.
 */
import { numberOf, put16, put32, u16 } from '../ipv4-frame.ts';

export const DNS_PORT = 53;
const CLUSTER_DOMAIN = 'cluster.local';
const HEADER = 12;
const MAX_NAME = 253;
/** Names that lead to one another; more is a circle, or meant badly. */
const MAX_ALIASES = 8;
const TYPE = { A: 1, CNAME: 5, SOA: 6, PTR: 12, SRV: 33, ANY: 255 } as const;
const CLASS_IN = 1;
const TTL_SECONDS = 5;
/** Answers that fit into a datagram of 512 bytes, which every resolver takes (RFC 1035, 4.2.1). */
const MAX_BYTES = 512;
const NO_ERROR = 0;
const NO_SUCH_NAME = 3;
/** `7.0.96.10.in-addr.arpa` (RFC 1035, 3.5). */
const REVERSE_NAME = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa$/;

/** What a name leads to. */
export interface NameRecord {
  readonly addresses: readonly string[];
  /** For names `_PORT._PROTOCOL.SERVICE.NAMESPACE.svc`. */
  readonly services?: readonly { readonly port: number; readonly target: string }[];
  /** Another name that is meant, whole: of the cluster or of the world (`spec.externalName`). */
  readonly alias?: string;
  /** Names without their domain, of an address that was asked for backwards. */
  readonly pointers?: readonly string[];
}

/** What a name of the world led to: addresses, or the code of the answer that there are none (RFC 1035, 4.1.1). */
export interface ExternalAnswer {
  readonly addresses: readonly string[];
  readonly code: number;
}

/** Finds a name without its domain, `web.default.svc`, or an address backwards; undefined where there is none of it. */
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

/** The address that is asked for backwards; undefined for every other name. */
export function reverseAddress(name: string): string | undefined {
  return REVERSE_NAME.exec(name)?.slice(1).reverse().join('.');
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

function answersTo(owner: readonly number[], type: number, found: NameRecord): Uint8Array[] {
  const isAsked = (one: number): boolean => type === one || type === TYPE.ANY;
  return [
    ...(isAsked(TYPE.A) ? found.addresses : []).map((address) => record(owner, TYPE.A, addressBytes(address))),
    ...((isAsked(TYPE.SRV) && found.services) || []).map(({ port, target }) =>
      record(owner, TYPE.SRV, [0, 0, 0, 100, port >>> 8, port & 255, ...nameBytes(`${target}.${CLUSTER_DOMAIN}`)]),
    ),
    ...((isAsked(TYPE.PTR) && found.pointers) || []).map((name) =>
      record(owner, TYPE.PTR, nameBytes(`${name}.${CLUSTER_DOMAIN}`)),
    ),
  ];
}

interface Path {
  /** Names that mean others, in their order, ready to be sent. */
  readonly aliases: readonly Uint8Array[];
  /** Of the name at the end. */
  readonly owner: readonly number[];
  readonly found: NameRecord | undefined;
  /** The name at the end, where it is one of the world. */
  readonly world?: string;
}

/** Follows names that mean others, as a resolver in a guest does not do itself. */
function follow({ name: asked, type }: Question, lookup: NameLookup): Path | undefined {
  const aliases: Uint8Array[] = [];
  let owner: readonly number[] = ASKED;
  for (let name = asked; ; ) {
    const own = reverseAddress(name) === undefined ? clusterName(name) : name;
    if (own === undefined) return aliases.length === 0 ? undefined : { aliases, owner, found: undefined, world: name };
    const found = lookup(own);
    if (found?.alias === undefined || aliases.length === MAX_ALIASES) return { aliases, owner, found };
    aliases.push(record(owner, TYPE.CNAME, nameBytes(found.alias)));
    if (type === TYPE.CNAME) return { aliases, owner, found };
    name = found.alias;
    owner = nameBytes(name);
  }
}

/** The name of the world that a query leads to by a name of the cluster, and whose addresses its answer needs. */
export function externalNameOf(message: Uint8Array, lookup: NameLookup): string | undefined {
  const question = questionOf(message);
  return question && (question.type === TYPE.A || question.type === TYPE.ANY)
    ? follow(question, lookup)?.world
    : undefined;
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
 * first; those that do not fit are left out. `world`: what `externalNameOf` led to.
 */
export function answerQuery(
  message: Uint8Array,
  lookup: NameLookup,
  { turn = 0, world }: { readonly turn?: number; readonly world?: ExternalAnswer } = {},
): Uint8Array | undefined {
  const question = questionOf(message);
  const path = question && follow(question, lookup);
  if (!question || !path) return undefined;
  const found = path.world === undefined ? path.found : { addresses: world?.addresses ?? [] };
  const all = found ? answersTo(path.owner, question.type, found) : [];
  const first = all.length === 0 ? 0 : turn % all.length;
  const answers: Uint8Array[] = [];
  let length = question.end;
  for (const one of [...path.aliases, ...all.slice(first), ...all.slice(0, first)]) {
    if (length + one.length > MAX_BYTES) break;
    answers.push(one);
    length += one.length;
  }
  const authority = answers.length === 0 ? [nothing()] : [];
  const code = path.world === undefined ? (found ? NO_ERROR : NO_SUCH_NAME) : (world?.code ?? NO_ERROR);
  const header = new Uint8Array(message.subarray(0, question.end));
  // An authoritative answer; whether recursion was wanted is said back, and that it can be had.
  put16(header, 2, 0x8480 | (u16(message, 2) & 0x0100) | code);
  put16(header, 6, answers.length);
  put16(header, 8, authority.length);
  put16(header, 10, 0);
  return Buffer.concat([header, ...answers, ...authority]);
}
