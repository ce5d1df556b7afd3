/** Guests as the switch of a node sees them: what each sends, and what it gets. */
import assert from 'node:assert/strict';
import { createFrameStream, noteOf, withLength } from '../../packages/node-agent/src/network/frame-stream.ts';
import {
  ICMP,
  ipv4Of,
  makeFrame,
  numberOf,
  portsOf,
  put16,
  TCP,
  textOf,
} from '../../packages/node-agent/src/network/ipv4-frame.ts';
import { ClusterSwitch } from '../../packages/node-agent/src/network/switch/cluster-switch.ts';
import type { LineEnd } from '../../packages/node-agent/src/network/switch/guest-port.ts';
import type { QuestionAsker } from '../../packages/node-agent/src/network/switch/name-answer.ts';
import {
  type Entry,
  type GuestHello,
  TABLE_NAMES,
  type TableName,
} from '../../packages/node-agent/src/network/switch/switch-state.ts';

export const INSIDE = '10.0.2.2';
export const [A, B, C] = ['100.64.0.1', '100.64.0.2', '100.64.0.3'] as const;
export const [SERVICE, OTHER] = ['10.96.0.9', '10.96.0.10'] as const;

export const hello = (address: string, more: Partial<GuestHello> = {}): GuestHello => ({
  type: 'guest',
  address,
  inside: INSIDE,
  gateway: '10.0.2.1',
  dns: '10.0.2.3',
  mac: '02:00:00:00:00:01',
  ...more,
});

/** A guest that notes what it gets, as `PROTOCOL FROM:PORT > TO:PORT`. */
export function attach(network: ClusterSwitch, address: string, more?: Partial<GuestHello>) {
  const got: string[] = [];
  const notes: unknown[] = [];
  const stream = createFrameStream((frame): undefined => {
    const note = noteOf(frame);
    if (note !== undefined) {
      notes.push(note);
      return;
    }
    const packet = ipv4Of(frame);
    assert.ok(packet);
    const ports = portsOf(frame, packet);
    const port = (number: number | undefined): string => (number === undefined ? '' : `:${number}`);
    got.push(
      `${packet.protocol} ${textOf(packet.source)}${port(ports?.source)} > ${textOf(packet.destination)}${port(ports?.destination)}`,
    );
    assert.deepEqual([...frame.subarray(0, 6)], [2, 0, 0, 0, 0, 1]);
  });
  const end = network.connectGuest(hello(address, more), { write: (bytes) => void stream.take(bytes) });
  const send = (protocol: number, to: string, [from, at]: readonly [number, number] = [0, 0], flags = 2): void => {
    const payload = new Uint8Array(20);
    if (protocol !== ICMP) {
      put16(payload, 0, from);
      put16(payload, 2, at);
      if (protocol === TCP) payload[13] = flags;
      else put16(payload, 4, 20);
    } else payload[0] = 8;
    end.take(withLength(makeFrame({ protocol, source: numberOf(INSIDE), destination: numberOf(to), payload })));
  };
  return { got, notes, send, end, take: (frame: Uint8Array): void => end.take(withLength(frame)) };
}

/** The tables of a node, whole. */
export type NetworkState = { readonly node: string } & { readonly [T in TableName]?: readonly Entry<T>[] };

/** Tells all of it. */
export function setState(network: ClusterSwitch, { node, ...tables }: NetworkState): void {
  const changes = TABLE_NAMES.map((table) => [table, { set: tables[table] ?? [] }] as const);
  network.change({ node, whole: true, ...Object.fromEntries(changes) });
}

export const stateOf = (node: string, guests: readonly Entry<'guests'>[], more: Partial<NetworkState> = {}) => ({
  node,
  pods: [
    { address: A, nodes: ['one'] },
    { address: B, nodes: ['one'] },
    { address: C, nodes: ['two', 'one'] },
  ],
  guests,
  ...more,
});

export const since = (address: string, at = 1): Entry<'guests'> => ({ address, since: at });
export const newSwitch = (now: () => number = () => 0, ask: QuestionAsker = async () => undefined): ClusterSwitch =>
  new ClusterSwitch({ now, resolve: async () => ({ addresses: ['192.0.2.7'], code: 0 }), ask });

/** Two nodes with a line between their switches. */
export function join(one: ClusterSwitch, two: ClusterSwitch): void {
  const early: Uint8Array[] = [];
  let far: LineEnd | undefined;
  const near = one.connectPeer('two', { write: (bytes) => (far ? far.take(bytes.slice()) : void early.push(bytes)) });
  far = two.connectPeer('one', { write: (bytes) => near.take(bytes.slice()) });
  for (const bytes of early) far.take(bytes);
}

/** The same with a line that carries all that there is when that is requested. */
export function joinSlowly(one: ClusterSwitch, two: ClusterSwitch): { deliver(): void } {
  const waiting: (() => void)[] = [];
  const ends: LineEnd[] = [];
  const to = (end: 0 | 1) => ({
    write: (bytes: Uint8Array) => void waiting.push(() => ends[end]?.take(bytes.slice())),
  });
  ends.push(one.connectPeer('two', to(1)), two.connectPeer('one', to(0)));
  return {
    deliver() {
      for (let next = waiting.shift(); next; next = waiting.shift()) next();
    },
  };
}
