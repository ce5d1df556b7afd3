/**
 * One TCP connection of a guest to a program of this node: the end that the guest speaks to (RFC 9293). Only what a server
 * needs: connections come and never go, a segment out of order is dropped and comes again, a lost one is sent again
 * (RFC 6298, RFC 6582) and less is under way from then on. What the far side does not take, the guest keeps.
 */
import type { Duplex } from 'node:stream';
import type { Clock } from '@coracle/runtime/clock/clock';
import { ETHERNET, type Ipv4Packet, put16, put32, u16, u32 } from '../ipv4-frame.ts';

export const [FIN, SYN, RST, PSH, ACK] = [1, 2, 4, 8, 16] as const;
/** Bytes that the guest has not confirmed; beyond them the far side is not read. */
const MAX_UNCONFIRMED = 256 * 1024;
/** Bytes that wait for the far side; without scaling no window is larger than 65,535. */
const MAX_RECEIVED = 65_535;
/** What fits into a frame of 1500 bytes, and what RFC 9293 takes a guest for that says nothing. */
const MAX_SEGMENT = 1460;
const LEAST_SEGMENT = 536;
const MAX_SHIFT = 14;
/** Until a segment is sent again, doubled by each try; 15 of them are four minutes. */
const FIRST_RETRY_MS = 200;
const MOST_RETRY_MS = 30_000;
const MAX_TRIES = 15;
/** A connection on which nothing has come or gone for so long is forgotten. */
const IDLE_MS = 600_000;
const LOST_AFTER = 3;

/** A segment, as it stands in a frame. */
export interface Segment {
  readonly sequence: number;
  readonly confirmed: number;
  readonly flags: number;
  readonly window: number;
  readonly options: Uint8Array;
  readonly data: Uint8Array;
}

/** Reads it; undefined for one that is cut off. */
export function segmentOf(frame: Uint8Array, { payload, end }: Ipv4Packet): Segment | undefined {
  const begin = payload + ((frame[payload + 12] ?? 0) >> 4) * 4;
  if (payload < ETHERNET || begin < payload + 20 || begin > end) return undefined;
  return {
    sequence: u32(frame, payload + 4),
    confirmed: u32(frame, payload + 8),
    flags: frame[payload + 13] ?? 0,
    window: u16(frame, payload + 14),
    options: frame.subarray(payload + 20, begin),
    data: frame.subarray(begin, end),
  };
}

/** Writes one; the ports are left open. */
export function makeSegment({ sequence, confirmed, flags, window, options, data }: Segment): Uint8Array {
  const bytes = new Uint8Array(20 + options.length + data.length);
  put32(bytes, 4, sequence);
  put32(bytes, 8, confirmed);
  bytes[12] = (5 + options.length / 4) << 4;
  bytes[13] = flags;
  put16(bytes, 14, window);
  bytes.set(options, 20);
  bytes.set(data, 20 + options.length);
  return bytes;
}

/** What a guest says about itself as it opens a connection: the largest segment, and by how much its window is shifted. */
function saidAtOpening(options: Uint8Array): { readonly largest: number; readonly shift: number | undefined } {
  let largest = LEAST_SEGMENT;
  let shift: number | undefined;
  for (let at = 0; at < options.length && options[at] !== 0; ) {
    const kind = options[at];
    const length = kind === 1 ? 1 : (options[at + 1] ?? 0);
    if (length < 1 || (kind !== 1 && length < 2)) break;
    if (kind === 2 && length === 4) largest = Math.max(64, Math.min(MAX_SEGMENT, u16(options, at + 2)));
    if (kind === 3 && length === 3) shift = Math.min(MAX_SHIFT, options[at + 2] ?? 0);
    at += length;
  }
  return { largest, shift };
}

/** How far `a` is behind `b` on the circle of sequence numbers. */
const distance = (a: number, b: number): number => (a - b) | 0;
const NO_BYTES: Uint8Array = new Uint8Array(0);

export class TcpConnection {
  readonly #far: Duplex;
  readonly #send: (segment: Segment) => void;
  readonly #clock: Clock;
  readonly #forget: () => void;
  readonly #largest: number;
  readonly #shift: number | undefined;
  /** What has been read of the far side and is not confirmed, from `#first` on. */
  #held: Buffer = Buffer.alloc(0);
  #first: number;
  /** The next that is sent, and the first that never was. */
  #next: number;
  #top: number;
  /** Until what is confirmed here, what was sent before a loss was seen is sent again. */
  #recovered: number;
  #expected: number;
  #window: number;
  /** How much may be under way, however wide the window is. */
  #room: number;
  #repeated = 0;
  #tries = 0;
  #isOpen = false;
  #isFarOver = false;
  #isGuestOver = false;
  /** What the guest confirms once it has the end of the far side; undefined before that was sent. */
  #end: number | undefined;
  #cancel = (): void => {};

  /** `opening`: the guest's first segment; `far`: connected. */
  constructor(
    opening: Segment,
    options: {
      readonly far: Duplex;
      readonly send: (segment: Segment) => void;
      readonly clock: Clock;
      /** The first sequence number of this end. */
      readonly initial: number;
      /** The connection is over. */
      readonly forget: () => void;
    },
  ) {
    this.#far = options.far;
    this.#send = options.send;
    this.#clock = options.clock;
    this.#forget = options.forget;
    const { largest, shift } = saidAtOpening(opening.options);
    this.#largest = largest;
    this.#shift = shift;
    this.#room = 10 * largest;
    this.#window = opening.window;
    this.#expected = (opening.sequence + 1) >>> 0;
    this.#first = options.initial;
    this.#next = this.#top = this.#recovered = (options.initial + 1) >>> 0;
    const { far } = options;
    far.on('readable', () => this.#pump());
    far.on('end', () => {
      this.#isFarOver = true;
      this.#pump();
    });
    far.on('drain', () => this.#confirm());
    far.on('error', () => {});
    far.on('close', () => {
      if (!this.#isFarOver) this.reset();
    });
    this.#open();
  }

  /** Ends it at once, at both ends. */
  reset(): void {
    this.#emit(RST | ACK, this.#next);
    this.#close();
  }

  #close(): void {
    this.#cancel();
    this.#forget();
    this.#isFarOver = true;
    this.#far.destroy();
  }

  #emit(flags: number, sequence: number, data = NO_BYTES, options = NO_BYTES): void {
    const window = Math.max(0, MAX_RECEIVED - this.#far.writableLength);
    this.#send({ sequence, confirmed: this.#expected, flags, window, options, data });
  }

  #confirm(): void {
    if (this.#isOpen) this.#emit(ACK, this.#next);
  }

  #open(): void {
    // Their windows are shifted only if both ends say so; ours by nothing.
    const shift = this.#shift === undefined ? [] : [3, 3, 0, 1];
    this.#emit(
      SYN | ACK,
      this.#first,
      NO_BYTES,
      Uint8Array.from([2, 4, MAX_SEGMENT >> 8, MAX_SEGMENT & 255, ...shift]),
    );
    this.#wait();
  }

  /** A segment of the guest. */
  take(segment: Segment): void {
    const { flags, sequence, data } = segment;
    if (flags & RST) {
      if (sequence === this.#expected) this.#close();
      return;
    }
    if (flags & SYN) {
      if (this.#isOpen) this.#confirm();
      else this.#open();
      return;
    }
    if (!(flags & ACK)) return;
    if (!this.#isOpen) {
      if (segment.confirmed !== this.#next) return;
      this.#isOpen = true;
      this.#first = this.#next;
      this.#tries = 0;
      this.#window = segment.window << (this.#shift ?? 0);
    } else this.#heard(segment);
    if (data.length > 0 || flags & FIN || sequence !== this.#expected) this.#receive(segment);
    if (this.#isGuestOver && this.#first === this.#end) this.#close();
    else this.#pump();
  }

  #receive({ sequence, data, flags }: Segment): void {
    const known = distance(this.#expected, sequence);
    if (known >= 0 && known <= data.length && !this.#isGuestOver) {
      const room = Math.max(0, MAX_RECEIVED - this.#far.writableLength);
      const taken = data.subarray(known, known + room);
      this.#expected = (this.#expected + taken.length) >>> 0;
      // A copy: the frame is somebody else's.
      if (taken.length > 0 && this.#far.destroyed) {
        this.reset();
        return;
      }
      if (taken.length > 0) this.#far.write(Buffer.from(taken));
      if (flags & FIN && known + taken.length === data.length) {
        this.#expected = (this.#expected + 1) >>> 0;
        this.#isGuestOver = true;
        this.#far.end();
      }
    }
    this.#confirm();
  }

  /** What a segment says of what was sent to the guest. */
  #heard({ confirmed, window, data, flags }: Segment): void {
    const moved = distance(confirmed, this.#first);
    if (moved < 0 || distance(confirmed, this.#top) > 0) return;
    const wide = window << (this.#shift ?? 0);
    const isSame = moved === 0 && wide === this.#window && data.length === 0 && !(flags & FIN);
    this.#window = wide;
    if (moved > 0) {
      this.#held = this.#held.subarray(Math.min(moved, this.#held.length));
      this.#first = confirmed;
      if (distance(this.#next, confirmed) < 0) this.#next = confirmed;
      this.#tries = this.#repeated = 0;
      this.#room = Math.min(MAX_UNCONFIRMED, this.#room + moved);
      // More of what was under way then has been lost.
      if (distance(this.#recovered, confirmed) > 0) this.#repeat();
    } else if (isSame && this.#first !== this.#top && ++this.#repeated === LOST_AFTER) {
      if (distance(this.#first, this.#recovered) >= 0) this.#lost();
      this.#repeat();
    }
  }

  #lost(): void {
    this.#recovered = this.#top;
    this.#room = Math.max(2 * this.#largest, this.#room >> 1);
  }

  /** The first segment that is not confirmed, once more. */
  #repeat(): void {
    const data = this.#held.subarray(0, Math.min(this.#largest, distance(this.#top, this.#first)));
    const isLast = this.#end !== undefined && this.#end !== this.#first && data.length === this.#held.length;
    if (data.length > 0 || isLast) this.#emit(ACK | (isLast ? FIN : 0), this.#first, data);
  }

  /** Reads the far side, and sends what may be under way. */
  #pump(): void {
    if (!this.#isOpen) return;
    while (this.#held.length < MAX_UNCONFIRMED) {
      const chunk = this.#far.read() as Buffer | null;
      if (chunk === null) break;
      this.#held = Buffer.concat([this.#held, chunk]);
    }
    for (;;) {
      const at = distance(this.#next, this.#first);
      if (at > this.#held.length || this.#first === this.#end) break;
      const left = this.#held.length - at;
      const size = Math.max(0, Math.min(left, this.#largest, Math.min(this.#window, this.#room) - at));
      const isLast = this.#isFarOver && size === left;
      // Neither a small piece while others are under way, nor nothing.
      if (!isLast && (size === 0 || (size < this.#largest && size < left && at > 0))) break;
      const data = this.#held.subarray(at, at + size);
      this.#emit(ACK | (size === left ? PSH : 0) | (isLast ? FIN : 0), this.#next, data);
      this.#next = (this.#next + size + (isLast ? 1 : 0)) >>> 0;
      if (distance(this.#next, this.#top) > 0) this.#top = this.#next;
      if (isLast) this.#end = this.#next;
    }
    this.#wait();
  }

  #wait(): void {
    this.#cancel();
    const isOwed = !this.#isOpen || this.#first !== this.#top || this.#held.length > 0;
    const retry = Math.min(MOST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#tries);
    this.#cancel = this.#clock.schedule(isOwed ? retry : IDLE_MS, () => (isOwed ? this.#again() : this.reset()));
  }

  /** Nothing was confirmed for too long. */
  #again(): void {
    if (++this.#tries > MAX_TRIES) this.reset();
    else if (this.#isOpen) this.#sendAgain();
    else this.#open();
  }

  #sendAgain(): void {
    this.#lost();
    this.#repeated = 0;
    this.#next = this.#first;
    if (this.#window === 0 && this.#held.length > 0) {
      // Whether the window is open again: one byte that the guest answers.
      this.#emit(ACK, this.#first, this.#held.subarray(0, 1));
      this.#next = (this.#first + 1) >>> 0;
      if (distance(this.#next, this.#top) > 0) this.#top = this.#next;
    }
    this.#pump();
  }
}
