import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  A,
  attach,
  B,
  C,
  INSIDE,
  join,
  type NetworkState,
  newSwitch,
  SERVICE,
  setState,
  since,
  stateOf,
} from '../../../../../test/testkit/switch-guests.ts';
import { createFrameStream, noteOf } from '../frame-stream.ts';
import { ICMP, makeFrame, numberOf, TCP, UDP } from '../ipv4-frame.ts';
import type { Entry } from './switch-state.ts';

// S-1182: A guest sends under its own address alone, and reaches no Pod but by the switch's rules; a node speaks for its own
//   Pods alone.
test('guests of a node reach each other by their Pod addresses, and nobody under another name', () => {
  const network = newSwitch();
  setState(network, stateOf('one', [since(A), since(B)]));
  const [a, b] = [attach(network, A), attach(network, B)];
  a.send(ICMP, B);
  a.send(TCP, B, [5000, 80]);
  assert.deepEqual(b.got, [`1 ${A} > ${INSIDE}`, `6 ${A}:5000 > ${INSIDE}:80`]);
  const forged = { protocol: ICMP, source: numberOf(C), destination: numberOf(B), payload: new Uint8Array(8) };
  a.take(makeFrame(forged));
  a.send(ICMP, C);
  a.send(ICMP, '100.64.9.9');
  assert.equal(b.got.length, 2);
  // A guest that has not come yet, or has gone, is not spoken to and does not speak.
  setState(network, stateOf('one', [since(A)]));
  a.send(ICMP, B);
  b.send(ICMP, A);
  assert.deepEqual([a.got.length, b.got.length], [0, 2]);
});

test('guests of two nodes reach each other, and a node cannot speak for Pods of others', () => {
  const [one, two] = [newSwitch(), newSwitch()];
  setState(one, stateOf('one', [since(A)]));
  setState(two, {
    ...stateOf('two', [since(C)]),
    pods: stateOf('two', []).pods.filter(({ address }) => address !== B),
  });
  join(one, two);
  const [a, c] = [attach(one, A), attach(two, C)];
  a.send(ICMP, C);
  c.send(TCP, A, [1, 2]);
  assert.deepEqual([a.got, c.got], [[`6 ${C}:1 > ${INSIDE}:2`], [`1 ${A} > ${INSIDE}`]]);
  // Node two does not know B as one of node one.
  setState(one, stateOf('one', [since(A), since(B)]));
  attach(one, B).send(ICMP, C);
  assert.equal(c.got.length, 1);
});

test('a guest that moves is found where it came last, and its connections to Services go on', () => {
  const [one, two] = [newSwitch(), newSwitch()];
  const services: Entry<'services'>[] = [
    { address: SERVICE, protocol: 'tcp', port: 80, targets: [{ address: A, port: 8080 }] },
  ];
  setState(one, stateOf('one', [since(A), since(C, 5)], { services }));
  setState(two, stateOf('two', [], { services }));
  join(one, two);
  const [a, c] = [attach(one, A), attach(one, C)];
  c.send(TCP, SERVICE, [700, 80]);
  assert.deepEqual(a.got, [`6 ${C}:700 > ${INSIDE}:8080`]);
  const moved = attach(two, C);
  a.send(TCP, C, [8080, 700], 0x10);
  assert.deepEqual(c.got, [`6 ${SERVICE}:80 > ${INSIDE}:700`], 'still here');
  setState(two, stateOf('two', [since(C, 9)], { services }));
  // The Pod answers before the guest has said a word there.
  a.send(TCP, C, [8080, 700], 0x10);
  assert.deepEqual([moved.got, c.got.length], [[`6 ${SERVICE}:80 > ${INSIDE}:700`], 1]);
  moved.send(TCP, SERVICE, [700, 80], 0x10);
  assert.equal(a.got.length, 2);
  // It did not come to that: the guest runs on where it was.
  setState(two, stateOf('two', [], { services }));
  a.send(ICMP, C);
  assert.equal(c.got.length, 2);
});

// S-1183: A Service gives its connections to Pods that are ready; a connection stays with its Pod, and one to a Service
//   that nobody is ready for is refused at once.
test('a Service spreads connections over its endpoints, keeps each, and refuses when none is ready', () => {
  const network = newSwitch();
  const withTargets = (targets: { address: string; port: number }[]): NetworkState =>
    stateOf('one', [since(A), since(B), since(C)], {
      services: [{ address: SERVICE, protocol: 'tcp', port: 80, targets }],
    });
  const [toB, toC] = [
    { address: B, port: 8080 },
    { address: C, port: 8080 },
  ];
  setState(network, withTargets([toB, toC]));
  const [a, b, c] = [attach(network, A), attach(network, B), attach(network, C)];
  for (let from = 1; from <= 64; from++) a.send(TCP, SERVICE, [from, 80]);
  assert.ok(b.got.length > 10 && c.got.length > 10, `${b.got.length} and ${c.got.length}`);
  assert.equal(b.got.length + c.got.length, 64);
  setState(network, withTargets([toC]));
  const kept = b.got.length;
  for (let from = 1; from <= 64; from++) a.send(TCP, SERVICE, [from, 80], 0x10);
  assert.equal(b.got.length, 2 * kept, 'segments of open connections stay with their Pod');
  const before = b.got.length;
  for (let from = 1; from <= 64; from++) a.send(TCP, SERVICE, [from, 80]);
  assert.equal(b.got.length, before, 'new ones go to who is ready');
  setState(network, withTargets([]));
  a.send(TCP, SERVICE, [99, 80]);
  assert.deepEqual(a.got, [`6 ${SERVICE}:80 > ${INSIDE}:99`]);
  a.send(UDP, SERVICE, [99, 80]);
  assert.equal(a.got.at(-1), `1 ${SERVICE} > ${INSIDE}`);
});

// S-1410: A connection to a Service whose last endpoint has just gone, as while a guest moves, is not refused but tried again.
test('nobody is refused in the moment in which the only guest of a Service moves', () => {
  let now = 0;
  const network = newSwitch(() => now);
  const service = (...targets: { address: string; port: number }[]): Entry<'services'> => ({
    address: SERVICE,
    protocol: 'tcp',
    port: 80,

    targets,
  });
  const [ready, nobody] = [service({ address: B, port: 8080 }), service()];
  setState(network, stateOf('one', [since(A), since(B)], { services: [ready] }));
  const [a, b] = [attach(network, A), attach(network, B)];
  network.change({ node: 'one', services: { set: [nobody] } });
  a.send(TCP, SERVICE, [7, 80]);
  network.change({ node: 'one', services: { set: [nobody] } });
  now = 2_999;
  a.send(TCP, SERVICE, [7, 80]);
  assert.deepEqual([a.got, b.got.length], [[], 0]);
  network.change({ node: 'one', services: { set: [ready] } });
  a.send(TCP, SERVICE, [7, 80]);
  assert.deepEqual([a.got, b.got.length], [[], 1]);
  network.change({ node: 'one', services: { set: [nobody] } });
  now = 5_999;
  a.send(TCP, SERVICE, [8, 80]);
  assert.deepEqual(a.got, [`6 ${SERVICE}:80 > ${INSIDE}:8`], 'after three seconds');
});

test('a guest reaches itself by its own Pod address and by a Service of its own', () => {
  const network = newSwitch();
  const services: Entry<'services'>[] = [
    { address: SERVICE, protocol: 'udp', port: 53, affinitySeconds: 10_800, targets: [{ address: A, port: 5353 }] },
  ];
  setState(network, stateOf('one', [since(A)], { services }));
  const a = attach(network, A);
  a.send(UDP, SERVICE, [7, 53]);
  assert.deepEqual(a.got, [`17 ${A}:7 > ${INSIDE}:5353`]);
  a.send(UDP, A, [5353, 7]);
  assert.equal(a.got.at(-1), `17 ${SERVICE}:53 > ${INSIDE}:7`);
});

test('ports that a masqueraded interface lists are the only ones that others reach', () => {
  const network = newSwitch();
  setState(network, stateOf('one', [since(A), since(B)]));
  const a = attach(network, A);
  const b = attach(network, B, { ports: [{ protocol: 'tcp', port: 80 }] });
  a.send(TCP, B, [5, 80]);
  a.send(TCP, B, [5, 81]);
  a.send(UDP, B, [5, 53]);
  assert.equal(b.got.length, 1);
  b.send(UDP, A, [9, 53]);
  a.send(UDP, B, [53, 9]);
  assert.equal(b.got.length, 2, 'an answer');
});

// S-1184: NetworkPolicies are enforced: a Pod that one selects is reached, and reaches others, as their rules say; answers
//   to what was let pass come through.
test('NetworkPolicies close a Pod but for what their rules let pass', () => {
  let now = 0;
  const network = newSwitch(() => now);
  const fromA = { addresses: [A], ports: [{ protocol: 'tcp' as const, from: 80, to: 90 }] };
  const toWorld = { blocks: [{ cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] }] };
  setState(network, {
    ...stateOf('one', [since(A), since(B), since(C)]),
    rules: [
      { id: 'from-a', ...fromA },
      { id: 'to-world', ...toWorld },
    ],
    pods: [
      { address: A, nodes: ['one'] },
      { address: B, nodes: ['one'], ingress: ['from-a'] },
      { address: C, nodes: ['one'], egress: ['to-world'] },
    ],
  });
  const [a, b, c] = [attach(network, A), attach(network, B), attach(network, C)];
  a.send(TCP, B, [1, 85]);
  assert.equal(b.got.length, 1);
  a.send(TCP, B, [1, 91]);
  a.send(UDP, B, [1, 85]);
  a.send(ICMP, B);
  c.send(TCP, B, [1, 85]);
  c.send(ICMP, A);
  assert.deepEqual([b.got.length, a.got.length], [1, 0]);
  b.send(TCP, A, [85, 1], 0x12);
  b.send(UDP, A, [6, 53]);
  assert.equal(a.got.length, 2, 'it may speak, and answer');
  a.send(UDP, B, [53, 6]);
  assert.equal(b.got.length, 2, 'the answer to a datagram');
  now = 200_000;
  a.send(UDP, B, [53, 6]);
  assert.equal(b.got.length, 2, 'not for ever');
  a.send(TCP, C, [1, 2]);
  c.send(TCP, A, [2, 1], 0x12);
  assert.deepEqual([c.got.length, a.got.length], [1, 3], 'who may not begin may answer');
  const known = c.notes.find((note) => (note as { type: string }).type === 'egress') as { rules: unknown };
  assert.deepEqual(known.rules, [{ ...toWorld, anybody: false }], 'its filter keeps it from the rest of the world');
});

test('change() takes entries alone: what it does not name stays, and filters hear of addresses that came or went', () => {
  const network = newSwitch();
  const service = (address: string, port: number, to: string): Entry<'services'> => ({
    address,
    protocol: 'tcp',
    port,

    targets: [{ address: to, port: 8080 }],
  });
  setState(
    network,
    stateOf('one', [since(A), since(B)], { services: [service(SERVICE, 80, B), service(SERVICE, 81, B)] }),
  );
  const [a, b] = [attach(network, A), attach(network, B)];
  const before = a.notes.length;
  network.change({ node: 'one', services: { remove: [`tcp/${SERVICE}/80`], set: [service('10.96.0.10', 80, B)] } });
  assert.deepEqual(a.notes.slice(before), [{ type: 'addresses', whole: false, add: ['10.96.0.10'], remove: [] }]);
  for (const [to, port] of [
    [SERVICE, 81],
    ['10.96.0.10', 80],
  ] as const)
    a.send(TCP, to, [7, port]);
  assert.equal(b.got.length, 2);
  a.send(TCP, SERVICE, [8, 80]);
  assert.equal(a.got.length, 1, 'refused');
  network.change({ node: 'one', pods: { remove: [B] }, services: { remove: [`tcp/${SERVICE}/81`] } });
  const last = a.notes.at(-1) as { remove: string[] };
  assert.deepEqual(last.remove.sort(), [SERVICE, B]);
});

test('a peer hears of guests that are new alone, and of all when one has gone', () => {
  const network = newSwitch();
  setState(network, stateOf('one', [since(A)]));
  const said: unknown[] = [];
  const stream = createFrameStream((frame): undefined => void said.push(noteOf(frame)));
  network.connectPeer('two', { write: (bytes) => void stream.take(bytes) });
  network.change({ node: 'one', guests: { set: [since(B, 2)] } });
  network.change({ node: 'one', guests: { remove: [A] } });
  assert.deepEqual(said, [
    { type: 'guests', whole: true, guests: [since(A)] },
    { type: 'guests', whole: false, guests: [since(B, 2)] },
    { type: 'guests', whole: true, guests: [since(B, 2)] },
  ]);
});

test('questions for names are answered, those that stand for a name of the world with what this host resolves', async () => {
  const network = newSwitch();
  const names: Entry<'names'>[] = [
    { name: 'web.default.svc', addresses: [SERVICE], isOwn: true },
    { name: 'far.default.svc', addresses: [], alias: 'example.com' },
  ];
  setState(network, stateOf('one', [since(A)], { names }));
  const a = attach(network, A);
  const ask = (name: string): void => {
    const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
    const query = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1];
    const payload = Uint8Array.from([0x10, 0, 0, 53, 0, 8 + query.length, 0, 0, ...query]);
    a.take(makeFrame({ protocol: UDP, source: numberOf(INSIDE), destination: numberOf('10.0.2.3'), payload }));
  };
  ask('web.default.svc.cluster.local');
  assert.equal(a.got.length, 1);
  ask('far.default.svc.cluster.local');
  await new Promise(setImmediate);
  assert.deepEqual(a.got, [`17 10.0.2.3:53 > ${INSIDE}:4096`, `17 10.0.2.3:53 > ${INSIDE}:4096`]);
});
