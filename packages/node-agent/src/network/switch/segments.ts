/**
 * Networks beside that of Pods: each a segment of the second layer, as a bridge has it. Frames go where their address was
 * seen last, else to all cards of the segment, here and on the other nodes that have Pods on it; nothing goes from one
 * segment to another. No I/O.
 */
import { createFrameStream, MAX_FRAME, withLength } from '../frame-stream.ts';
import { type Line, type LineEnd, macBytes } from './guest-port.ts';
import type { NetworkCard, NetworkChange, NetworkSegment } from './switch-state.ts';
import { takeTable } from './take-table.ts';

/** Addresses of one segment whose place is remembered; beyond, all are forgotten and learnt anew. */
const MAX_LEARNT = 4096;
/** First byte of a frame between switches that is of a segment: behind it the length of its name, the name, the frame. */
export const OF_SEGMENT = 3;
const HEADER = 14;

/** Where a frame of a segment can go: a card of this node, or another node. */
type Place = { readonly line: Line } | { readonly node: string };

interface Segment {
  readonly name: string;
  readonly prefix: Uint8Array;
  readonly cards: Set<Place & { readonly line: Line }>;
  /** Other nodes that have sent something. */
  readonly nodes: Map<string, Place>;
  /** By hardware address. */
  readonly learnt: Map<number, Place>;
}

const addressAt = (frame: Uint8Array, at: number): number => {
  let number = 0;
  for (let n = 0; n < 6; n++) number = number * 256 + (frame[at + n] ?? 0);
  return number;
};
/** Meant for all, or for many. */
const isGroup = (frame: Uint8Array, at: number): boolean => ((frame[at] ?? 0) & 1) === 1;

function prefixOf(name: string): Uint8Array {
  const text = new TextEncoder().encode(name);
  return Uint8Array.from([OF_SEGMENT, text.length >> 8, text.length & 255, ...text]);
}

export class Segments {
  /** The lines to other nodes. */
  readonly #lineTo: (node: string) => Line | undefined;
  readonly #segments = new Map<string, Segment>();
  readonly #nodes = new Map<string, NetworkSegment>();
  #node = '';

  constructor(lineTo: (node: string) => Line | undefined) {
    this.#lineTo = lineTo;
  }

  /** Takes which nodes have Pods on which segment. */
  change({ node, whole, segments }: NetworkChange): void {
    this.#node = node;
    takeTable(this.#nodes, ({ name }) => name, { ...segments, whole: whole === true });
  }

  /** A card of this node. */
  connect({ segment: name, mac }: NetworkCard, line: Line): LineEnd {
    const segment: Segment = this.#segments.get(name) ?? {
      name,
      prefix: prefixOf(name),
      cards: new Set(),
      nodes: new Map(),
      learnt: new Map(),
    };
    this.#segments.set(name, segment);
    const card = { line };
    segment.cards.add(card);
    const own = mac === undefined ? undefined : addressAt(Uint8Array.from(macBytes(mac)), 0);
    const stream = createFrameStream((frame) =>
      own === undefined || addressAt(frame, 6) === own ? this.#fromCard(segment, card, frame) : undefined,
    );
    return {
      take(bytes) {
        for (const { to, bytes: piece } of stream.take(bytes)) to.write(piece);
      },
      close: () => {
        segment.cards.delete(card);
        for (const [address, place] of segment.learnt) if (place === card) segment.learnt.delete(address);
        if (segment.cards.size === 0) this.#segments.delete(name);
      },
    };
  }

  #fromCard(segment: Segment, card: Place, frame: Uint8Array): Line | undefined {
    if (frame.length < HEADER) return undefined;
    learn(segment, frame, card);
    const to = placeOf(segment, frame);
    if (to === card) return undefined;
    if (to && 'line' in to) return to.line;
    const nodes = (this.#nodes.get(segment.name)?.nodes ?? []).filter((node) => node !== this.#node);
    if (to && nodes.includes(to.node)) this.#send(segment, to.node, frame);
    else {
      this.#flood(segment, card, frame);
      for (const node of nodes) this.#send(segment, node, frame);
    }
    return undefined;
  }

  #flood({ cards }: Segment, from: Place, frame: Uint8Array): void {
    const bytes = withLength(frame);
    for (const card of cards) if (card !== from) card.line.write(bytes);
  }

  #send({ prefix }: Segment, node: string, frame: Uint8Array): void {
    const line = this.#lineTo(node);
    if (!line || prefix.length + frame.length > MAX_FRAME) return;
    const wrapped = new Uint8Array(prefix.length + frame.length);
    wrapped.set(prefix);
    wrapped.set(frame, prefix.length);
    line.write(withLength(wrapped));
  }

  /** A frame of another node that begins with `OF_SEGMENT`: believed where that node has Pods on the segment. */
  fromPeer(node: string, wrapped: Uint8Array): void {
    const length = ((wrapped[1] ?? 0) << 8) | (wrapped[2] ?? 0);
    const name = new TextDecoder().decode(wrapped.subarray(3, 3 + length));
    const frame = wrapped.subarray(3 + length);
    const segment = this.#segments.get(name);
    if (!segment || frame.length < HEADER || !this.#nodes.get(name)?.nodes.includes(node)) return;
    const from = segment.nodes.get(node) ?? { node };
    segment.nodes.set(node, from);
    learn(segment, frame, from);
    const to = placeOf(segment, frame);
    // On to other nodes it never goes: each is sent its own.
    if (to && 'line' in to) to.line.write(withLength(frame));
    else this.#flood(segment, from, frame);
  }
}

const placeOf = ({ learnt }: Segment, frame: Uint8Array): Place | undefined =>
  isGroup(frame, 0) ? undefined : learnt.get(addressAt(frame, 0));

function learn({ learnt }: Segment, frame: Uint8Array, place: Place): void {
  if (isGroup(frame, 6)) return;
  const address = addressAt(frame, 6);
  if (learnt.get(address) === place) return;
  if (learnt.size >= MAX_LEARNT) learnt.clear();
  learnt.set(address, place);
}
