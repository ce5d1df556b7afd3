/**
 * The switch of a node: carries IPv4 packets between the guests of this node, to and from the switches of others, and from
 * guests to Services. Each guest keeps the address that it knows itself by; on the network of Pods it has another, one for
 * one. No I/O: `switch-process.ts` has the sockets.
 */
import { isIP } from 'node:net';
import { createFrameStream, type FrameStream, noteFrame, noteOf } from '../frame-stream.ts';
import {
  countHop,
  type Ipv4Packet,
  ipv4Of,
  numberOf,
  opensConnection,
  portsOf,
  TCP,
  textOf,
  translate,
  UDP,
} from '../ipv4-frame.ts';
import { isLocal } from '../packet-rule.ts';
import { createGuestPort, type GuestPort, type Line, type LineEnd } from './guest-port.ts';
import { createNameAnswers, type ExternalResolver, type NameAnswers, type QuestionAsker } from './name-answer.ts';
import { DNS_PORT } from './name-server.ts';
import { createNameTable, type NameTable } from './name-table.ts';
import { announceAddresses, chunks } from './notes.ts';
import { isContinued } from './packet-policy.ts';
import { createPodTable } from './pod-table.ts';
import { refusalOf } from './refusal.ts';
import { OF_SEGMENT, Segments } from './segments.ts';
import { chooseTarget, type ServiceConnection } from './service-connections.ts';
import { createServiceTable, type ServiceTable } from './service-table.ts';
import type { EgressChange, GuestChange, GuestHello, LocalGuest, NetworkChange } from './switch-state.ts';

/** Until a guest that came from another node is spoken to, where that does not say to whom it speaks. */
const HAND_OVER_MS = 1000;
/** Addresses of the world, and of private networks (RFC 4291, RFC 4193). */
const GLOBAL_IPV6 = /^(?:[23][\da-f]{3}|f[cd][\da-f]{2}):/i;
/** Addresses whose place is remembered. */
const MAX_OWNERS = 65_536;

interface Peer {
  readonly node: string;
  readonly line: Line;
  /** Its guests: address, and since when. */
  readonly guests: Map<number, number>;
}

type Owner = { readonly port: GuestPort } | { readonly peer: Peer };

/** What switches tell each other of a guest that moved: to which Pods its connections to Services go. */
interface ConnectionChange {
  readonly type: 'connections';
  readonly address: string;
  readonly connections: readonly ServiceConnection[];
  /** Others follow. */
  readonly more?: true;
}

export class ClusterSwitch {
  readonly #now: () => number;
  readonly #ports = new Map<number, GuestPort>();
  readonly #peers = new Map<string, Peer>();
  readonly #pods = createPodTable();
  readonly #names: NameTable;
  readonly #answers: NameAnswers;
  readonly #services: ServiceTable;
  /** Addresses that filters bring here. */
  readonly #carried = new Set<number>();
  /** Guests that are this node's to give packets to, and since when. */
  readonly #active = new Map<number, number>();
  /** Guests that come from another node, which has not said yet to whom they speak: until when it is waited for. */
  readonly #awaited = new Map<number, number>();
  /** Where an address is; emptied at each change. */
  readonly #owners = new Map<number, Owner | undefined>();

  /** The networks beside that of Pods. */
  readonly segments = new Segments((node) => this.#peers.get(node)?.line);

  /** `now`: ms of a clock that only goes forward. */
  constructor({ now, ...world }: { now: () => number; resolve: ExternalResolver; ask: QuestionAsker }) {
    this.#now = now;
    this.#services = createServiceTable(now);
    this.#names = createNameTable(now);
    this.#answers = createNameAnswers(this.#names.lookup, world);
  }

  /** Takes what has become different in the cluster; guests and peers that are connected stay so. */
  change(change: NetworkChange): void {
    const { whole, names } = change;
    if (whole) this.#names.clear();
    for (const name of names?.remove ?? []) this.#names.delete(name);
    for (const entry of names?.set ?? []) this.#names.set(entry);
    const touched = new Set([...this.#pods.change(change), ...this.#services.change(change)]);
    this.#changeGuests(change);
    this.segments.change(change);
    this.#owners.clear();
    this.#carryChanged(touched);
    for (const address of touched) {
      const port = this.#ports.get(address);
      if (port) this.#tellEgress(port);
    }
  }

  #changeGuests({ whole, guests = {} }: NetworkChange): void {
    const { set = [], remove = [] } = guests;
    const before = whole ? new Map(this.#active) : undefined;
    if (whole) this.#active.clear();
    for (const held of [this.#active, this.#awaited]) for (const address of remove) held.delete(numberOf(address));
    for (const { address: text, since } of set) {
      const address = numberOf(text);
      const isNew = (before ?? this.#active).get(address) !== since;
      this.#active.set(address, since);
      if (isNew && this.#isClaimed(address)) this.#awaited.set(address, this.#now() + HAND_OVER_MS);
    }
    const isGone = before ? [...before.keys()].some((address) => !this.#active.has(address)) : remove.length > 0;
    const added = before ? set.filter(({ address, since }) => before.get(numberOf(address)) !== since) : set;
    if (!isGone && added.length === 0) return;
    for (const peer of this.#peers.values()) this.#tellPeer(peer, isGone ? undefined : added);
  }

  /** Tells the filters which addresses are theirs to bring, of those that may have become so or no longer are. */
  #carryChanged(touched: ReadonlySet<number>): void {
    const isCarried = (address: number): boolean =>
      this.#pods.get(address) !== undefined || this.#services.has(address);
    const news = [...touched].filter((address) => isCarried(address) !== this.#carried.has(address));
    if (news.length === 0) return;
    const [add, remove] = [news.filter(isCarried), news.filter((address) => !isCarried(address))];
    for (const address of add) this.#carried.add(address);
    for (const address of remove) this.#carried.delete(address);
    const text = { add: add.map(textOf), remove: remove.map(textOf) };
    for (const port of this.#ports.values()) announceAddresses(port.line, text);
  }

  /** A guest of this node, by its filter. */
  connectGuest(hello: GuestHello, line: Line): LineEnd {
    const port = createGuestPort(hello, line, this.#now);
    this.#ports.set(port.address, port);
    this.#owners.clear();
    // First what is forbidden: a filter lets pass what it knows nothing against.
    this.#tellEgress(port);
    announceAddresses(line, { add: [...this.#carried].map(textOf), remove: [], whole: true });
    const stream = createFrameStream((frame) => this.#fromGuest(port, frame));
    return this.#lineEnd(stream, () => {
      if (this.#ports.get(port.address) === port) this.#ports.delete(port.address);
    });
  }

  /** The switch of another node. */
  connectPeer(node: string, line: Line): LineEnd {
    const peer: Peer = { node, line, guests: new Map() };
    this.#peers.set(node, peer);
    this.#owners.clear();
    this.#tellPeer(peer);
    const stream = createFrameStream((frame) => this.#fromPeer(peer, frame));
    return this.#lineEnd(stream, () => {
      if (this.#peers.get(node) === peer) this.#peers.delete(node);
    });
  }

  #lineEnd(stream: FrameStream<Line>, close: () => void): LineEnd {
    return {
      take(bytes) {
        for (const { to, bytes: piece } of stream.take(bytes)) to.write(piece);
      },
      close: () => {
        close();
        this.#owners.clear();
      },
    };
  }

  #ownerOf(address: number): Owner | undefined {
    if (this.#owners.has(address)) return this.#owners.get(address);
    const port = this.#ports.get(address);
    const here = this.#active.get(address);
    let owner: Owner | undefined = port && here !== undefined ? { port } : undefined;
    let since = here ?? Number.NEGATIVE_INFINITY;
    for (const peer of this.#peers.values()) {
      const there = peer.guests.get(address);
      if (there === undefined || there <= since || !this.#pods.get(address)?.nodes.includes(peer.node)) continue;
      since = there;
      owner = { peer };
    }
    if (this.#owners.size >= MAX_OWNERS) this.#owners.clear();
    this.#owners.set(address, owner);
    return owner;
  }

  /** A frame of a guest of ours: where it goes on to. */
  #fromGuest(port: GuestPort, frame: Uint8Array): Line | undefined {
    const packet = ipv4Of(frame);
    if (packet?.source !== port.inside || !this.#active.has(port.address) || this.#isAwaited(port)) return undefined;
    let { destination } = packet;
    const asked = portsOf(frame, packet);
    if (destination === port.dns) {
      if (packet.protocol !== UDP || packet.isPart || asked?.destination !== DNS_PORT) return undefined;
      const servers = (port.resolvers?.servers ?? []).filter((server) => this.#mayAsk(port, server));
      this.#answers.answer(port, frame, { packet, asked, servers });
      return undefined;
    }
    let spokenTo = asked?.destination;
    let connection: ServiceConnection | undefined;
    if (this.#services.has(destination)) {
      connection = this.#connectionOf(port, frame, packet);
      if (!connection) {
        const service = asked && this.#services.find(destination, packet.protocol, asked.destination);
        const refusal = service && this.#services.isBetweenEndpoints(service) ? undefined : refusalOf(frame, packet);
        if (refusal) port.answer(refusal);
        return undefined;
      }
      destination = connection.target.address;
      spokenTo = connection.target.port;
      translate(frame, packet, 'destination', connection.target);
    } else if (asked) {
      const flow = { protocol: packet.protocol, ownPort: asked.source, address: destination, port: asked.destination };
      connection = port.connections.straight(flow, packet.protocol !== TCP || opensConnection(frame, packet));
    }
    if (connection?.seenPort !== undefined)
      translate(frame, packet, 'source', { address: packet.source, port: connection.seenPort });
    if (!this.#mayGo(port, frame, { packet, way: 'out', other: destination, spokenTo })) return undefined;
    if (!countHop(frame)) return undefined;
    translate(frame, packet, 'source', { address: port.address });
    // Between switches the header of the link means nothing; its first byte tells frames from notes.
    frame[0] = 0;
    return this.#route(frame, packet, { source: port.address, destination });
  }

  /** Whether the node may ask a name server for a guest: what the guest could not reach itself it does not. */
  #mayAsk({ address }: GuestPort, server: string): boolean {
    const { egress } = this.#pods.get(address) ?? {};
    if (isIP(server) !== 4) return !egress && GLOBAL_IPV6.test(server);
    const number = numberOf(server);
    // From the node no Pod or Service can be reached.
    if (isLocal(number) || this.#pods.get(number) || this.#services.has(number)) return false;
    return egress?.allows(number, UDP, DNS_PORT) ?? true;
  }

  /** Whether NetworkPolicies, and the ports that the guest has open, let a packet pass. */
  #mayGo(
    port: GuestPort,
    frame: Uint8Array,
    {
      packet,
      way,
      other,
      spokenTo,
    }: {
      readonly packet: Ipv4Packet;
      readonly way: 'in' | 'out';
      readonly other: number;
      readonly spokenTo: number | undefined;
    },
  ): boolean {
    const { ingress, egress } = this.#pods.get(port.address) ?? {};
    const isOpen = port.open === undefined || spokenTo === undefined || port.open.has(`${packet.protocol}/${spokenTo}`);
    const rules = way === 'in' ? ingress : egress;
    if (!ingress && !egress && port.open === undefined) return true;
    if (isContinued(frame, packet)) return true;
    const ports = portsOf(frame, packet);
    if (packet.protocol !== TCP && port.exchanges.answers(packet, ports, other, way)) return true;
    // What a guest says to itself is nobody's to forbid.
    const allowed = other === port.address || (rules?.allows(other, packet.protocol, spokenTo) ?? true);
    if (!allowed || (way === 'in' && !isOpen)) return false;
    if (packet.protocol !== TCP) port.exchanges.saw(packet, ports, other, way);
    return true;
  }

  /** Which Pod a packet to a Service goes to. */
  #connectionOf(port: GuestPort, frame: Uint8Array, packet: Ipv4Packet): ServiceConnection | undefined {
    const { protocol, destination } = packet;
    const found = portsOf(frame, packet);
    if (!found) return undefined;
    const known = port.connections.to(protocol, found.source, destination, found.destination);
    const service = this.#services.find(destination, protocol, found.destination);
    if (known) {
      const isReady = service?.targets.some(
        (target) => numberOf(target.address) === known.target.address && target.port === known.target.port,
      );
      // A connection stays where it is; a datagram, and a new connection, goes to who is ready.
      if (isReady || (protocol === TCP && !opensConnection(frame, packet))) return known;
    }
    const target =
      service && (port.connections.lastTarget(service) ?? chooseTarget(service, textOf(port.address), found.source));
    if (!target) return undefined;
    return port.connections.add({
      protocol,
      ownPort: found.source,
      address: destination,
      port: found.destination,
      target: { address: numberOf(target.address), port: target.port },
    });
  }

  /** Where a frame goes on to that has its addresses on the network of Pods. */
  #route(
    frame: Uint8Array,
    packet: Ipv4Packet,
    ends: { readonly source: number; readonly destination: number },
  ): Line | undefined {
    const owner = this.#ownerOf(ends.destination);
    if (!owner) return undefined;
    return 'port' in owner ? this.#toGuest(owner.port, frame, packet, ends.source) : owner.peer.line;
  }

  #isClaimed(address: number): boolean {
    return [...this.#peers.values()].some(({ guests }) => guests.has(address));
  }

  /** What a guest that has just come sends and gets is lost for a moment: it would be taken for something new. */
  #isAwaited({ address }: GuestPort): boolean {
    if (this.#awaited.size === 0) return false;
    const until = this.#awaited.get(address);
    if (until === undefined || (until > this.#now() && this.#isClaimed(address))) return until !== undefined;
    this.#awaited.delete(address);
    return false;
  }

  /** To a guest of ours: makes the frame what it shall get. */
  #toGuest(port: GuestPort, frame: Uint8Array, packet: Ipv4Packet, source: number): Line | undefined {
    if (this.#isAwaited(port)) return undefined;
    const found = portsOf(frame, packet);
    if (!this.#mayGo(port, frame, { packet, way: 'in', other: source, spokenTo: found?.destination })) return undefined;
    const connection = found && port.connections.from(packet.protocol, found.destination, source, found.source);
    if (connection) translate(frame, packet, 'source', { address: connection.address, port: connection.port });
    const ownPort = connection?.seenPort === undefined ? {} : { port: connection.ownPort };
    translate(frame, packet, 'destination', { address: port.inside, ...ownPort });
    frame.set(port.header);
    return port.line;
  }

  #fromPeer(peer: Peer, frame: Uint8Array): Line | undefined {
    if (frame[0] === OF_SEGMENT) {
      this.segments.fromPeer(peer.node, frame);
      return undefined;
    }
    const note = noteOf(frame);
    if (note !== undefined) {
      this.#heard(peer, note as GuestChange | ConnectionChange);
      return undefined;
    }
    const packet = ipv4Of(frame);
    // A node speaks for its own Pods alone.
    if (!packet || !this.#pods.get(packet.source)?.nodes.includes(peer.node)) return undefined;
    const owner = this.#ownerOf(packet.destination);
    return owner && 'port' in owner ? this.#toGuest(owner.port, frame, packet, packet.source) : undefined;
  }

  #heard(peer: Peer, note: GuestChange | ConnectionChange): void {
    if (note.type === 'connections') {
      const address = numberOf(note.address);
      if (!this.#pods.get(address)?.nodes.includes(peer.node)) return;
      const port = this.#ports.get(address);
      for (const connection of port ? note.connections : []) port?.connections.add(connection);
      if (!note.more) this.#awaited.delete(address);
      return;
    }
    if (note.whole) peer.guests.clear();
    for (const { address, since } of note.guests) {
      const number = numberOf(address);
      peer.guests.set(number, since);
      this.#handOver(peer, number, since);
    }
    this.#owners.clear();
  }

  /** The guest has moved there: its connections to Services go on there. */
  #handOver(peer: Peer, address: number, since: number): void {
    const port = this.#ports.get(address);
    const here = this.#active.get(address);
    if (here === undefined ? !port : here >= since) return;
    const parts = [...chunks(port?.connections.list() ?? [])];
    for (const [n, { part }] of parts.entries()) {
      const more = n + 1 < parts.length && { more: true as const };
      const news: ConnectionChange = { type: 'connections', address: textOf(address), connections: part, ...more };
      peer.line.write(noteFrame(news));
    }
  }

  /** `added`: those alone are new to the peer; without it, it hears of all. */
  #tellPeer(peer: Peer, added?: readonly LocalGuest[]): void {
    const guests = added ?? [...this.#active].map(([address, since]) => ({ address: textOf(address), since }));
    for (const { part, isFirst } of chunks(guests)) {
      const news: GuestChange = { type: 'guests', whole: isFirst && !added, guests: part };
      peer.line.write(noteFrame(news));
    }
  }

  /** Tells the filter where the guest may go outside the cluster, where that is news. */
  #tellEgress(port: GuestPort): void {
    const text = this.#pods.get(port.address)?.egressText ?? '';
    if (port.knownEgress === text) return;
    port.knownEgress = text;
    const news: EgressChange = { type: 'egress', ...(text !== '' && { rules: JSON.parse(text) }) };
    port.line.write(noteFrame(news));
  }
}
