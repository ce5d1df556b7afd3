import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFrameStream, MAX_FRAME, withLength } from '../frame-stream.ts';
import { ClusterSwitch } from './cluster-switch.ts';
import type { LineEnd } from './guest-port.ts';
import type { NetworkSegment } from './switch-state.ts';

const ALL = 'ff:ff:ff:ff:ff:ff';
const MANY = '01:00:5e:00:00:01';
const mac = (n: number): string => `02:00:00:00:00:0${n}`;
const bytesOf = (address: string): number[] => address.split(':').map((part) => Number.parseInt(part, 16));
const textOf = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');

const newSwitch = (node: string, segments: readonly NetworkSegment[]): ClusterSwitch => {
  const made = new ClusterSwitch({
    now: () => 0,
    resolve: async () => ({ addresses: [], code: 0 }),
    ask: async () => undefined,
  });
  made.change({ node, whole: true, segments: { set: segments } });
  return made;
};

/** A card that notes whom it hears: `FROM > TO`. */
function card(network: ClusterSwitch, segment: string, own: string, checked = {}) {
  const got: string[] = [];
  const stream = createFrameStream((frame): undefined => {
    got.push(`${textOf(frame.subarray(6, 12))} > ${textOf(frame.subarray(0, 6))}`);
  });
  const end = network.segments.connect(
    { socket: own, segment, ...checked },
    { write: (bytes) => void stream.take(bytes) },
  );
  return {
    end,
    send(to: string, from = own, size = 60) {
      const frame = new Uint8Array(size);
      frame.set([...bytesOf(to), ...bytesOf(from)]);
      end.take(withLength(frame));
    },
    /** What it has heard since it was asked. */
    heard: () => got.splice(0),
  };
}

function join(one: ClusterSwitch, two: ClusterSwitch, names: readonly [string, string] = ['one', 'two']): void {
  const early: Uint8Array[] = [];
  let far: LineEnd | undefined;
  const near = one.connectPeer(names[1], {
    write: (bytes) => (far ? far.take(bytes.slice()) : void early.push(bytes)),
  });
  far = two.connectPeer(names[0], { write: (bytes) => near.take(bytes.slice()) });
  for (const bytes of early) far.take(bytes);
}

// S-1360
test('a segment learns where an address is, and carries to nobody else', () => {
  const network = newSwitch('one', [{ name: 'ns/blue', nodes: ['one'] }]);
  const [a, b, c, d] = [1, 2, 3, 4].map((n) => card(network, n === 4 ? 'ns/red' : 'ns/blue', mac(n)));
  assert.ok(a && b && c && d);
  a.send(mac(2));
  assert.deepEqual(
    [b.heard(), c.heard(), d.heard(), a.heard()],
    [[`${mac(1)} > ${mac(2)}`], [`${mac(1)} > ${mac(2)}`], [], []],
  );
  b.send(mac(1));
  a.send(mac(2));
  assert.deepEqual([a.heard(), b.heard(), c.heard()], [[`${mac(2)} > ${mac(1)}`], [`${mac(1)} > ${mac(2)}`], []]);
  for (const to of [ALL, MANY]) {
    a.send(to);
    assert.deepEqual(
      [a.heard(), b.heard(), c.heard(), d.heard()],
      [[], [`${mac(1)} > ${to}`], [`${mac(1)} > ${to}`], []],
    );
  }
  d.send(mac(1));
  assert.deepEqual(a.heard(), [], 'another segment');
  b.end.close();
  a.send(mac(2));
  assert.deepEqual([b.heard(), c.heard()], [[], [`${mac(1)} > ${mac(2)}`]], 'it is looked for anew');
  a.send(ALL, mac(1), 13);
  assert.deepEqual(c.heard(), [], 'no frame');
});

// S-1650: A card on a network whose definition has `macspoofchk` sends under its own hardware address alone.
test("a card that is held to its address sends under no other, and takes nobody's place", () => {
  const network = newSwitch('one', [{ name: 'ns/blue', nodes: ['one'] }]);
  const held = card(network, 'ns/blue', mac(1), { mac: '02:00:00:00:00:01' });
  const [b, c] = [card(network, 'ns/blue', mac(2)), card(network, 'ns/blue', mac(3))];
  b.send(ALL);
  c.heard();
  held.send(ALL, mac(2));
  assert.deepEqual([b.heard(), c.heard()], [[], []]);
  c.send(mac(2));
  assert.deepEqual(b.heard(), [`${mac(3)} > ${mac(2)}`], 'it is where it was');
  held.send(mac(3));
  assert.deepEqual(c.heard(), [`${mac(1)} > ${mac(3)}`]);
});

// S-1360
test('segments reach across nodes that have Pods on them; no node speaks for one that it has none on', () => {
  const nodes = ['one', 'two'];
  const one = newSwitch('one', [{ name: 'ns/blue', nodes }]);
  const two = newSwitch('two', [{ name: 'ns/blue', nodes }]);
  // It believes to be on the segment; the others know better.
  const three = newSwitch('three', [{ name: 'ns/blue', nodes: ['one', 'two', 'three'] }]);
  join(one, two);
  join(one, three, ['one', 'three']);
  const [a, b, c] = [card(one, 'ns/blue', mac(1)), card(two, 'ns/blue', mac(2)), card(three, 'ns/blue', mac(3))];
  const other = card(two, 'ns/red', mac(4));
  a.send(MANY);
  assert.deepEqual([b.heard(), other.heard(), c.heard()], [[`${mac(1)} > ${MANY}`], [], []]);
  b.send(mac(1));
  a.send(mac(2), mac(1), 9000);
  assert.deepEqual([a.heard(), b.heard()], [[`${mac(2)} > ${mac(1)}`], [`${mac(1)} > ${mac(2)}`]]);
  c.send(ALL);
  assert.deepEqual([a.heard(), b.heard()], [[], []], 'a node without Pods there');
  // The guest moves: it is where it spoke last.
  const moved = card(one, 'ns/blue', mac(2));
  moved.send(ALL);
  b.heard();
  a.send(mac(2));
  assert.deepEqual([moved.heard(), b.heard()], [[`${mac(1)} > ${mac(2)}`], []]);
  // Nobody on this node any more: frames for it go to all again.
  one.change({ node: 'one', segments: { set: [{ name: 'ns/blue', nodes: ['one'] }] } });
  a.send(ALL);
  assert.deepEqual(b.heard(), []);
  a.send(ALL, mac(1), MAX_FRAME);
  assert.equal(moved.heard().length, 2);
});
