import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  attach,
  B,
  C,
  INSIDE,
  join,
  joinSlowly,
  newSwitch,
  OTHER,
  SERVICE,
  setState,
  since,
  stateOf,
} from '../../../../../test/testkit/switch-guests.ts';
import { TCP, UDP } from '../ipv4-frame.ts';
import type { Entry } from './switch-state.ts';

// S-1450: A guest may use one port of its own for a Service, for another, and for the Pod behind both: the Pod sees three
//   connections, and each answer comes from whom the guest spoke to, also after it has moved.
test('connections of one port of a guest are kept apart where the same Pod is behind them', () => {
  for (const [protocol, flags] of [
    [TCP, 0x12],
    [UDP, 0],
  ] as const) {
    const services = [SERVICE, OTHER].map(
      (address): Entry<'services'> => ({
        address,
        protocol: protocol === TCP ? 'tcp' : 'udp',
        port: 80,

        targets: [{ address: B, port: 8080 }],
      }),
    );
    const [one, two] = [newSwitch(), newSwitch()];
    setState(one, stateOf('one', [since(B), since(C)], { services }));
    setState(two, stateOf('two', [], { services }));
    join(one, two);
    const [b, c, moved] = [attach(one, B), attach(one, C), attach(two, C)];
    const to: readonly (readonly [string, number])[] = [
      [SERVICE, 80],
      [B, 8080],
      [OTHER, 80],
    ];
    const ask = (guest: typeof c, from: number, order: typeof to): number[] => {
      b.got.length = 0;
      for (const [address, port] of order) guest.send(protocol, address, [from, port]);
      return b.got.map((line) => Number(/:(\d+) >/.exec(line)?.[1]));
    };
    const answers = (guest: typeof c, seen: readonly number[], from: number, order: typeof to): void => {
      assert.equal(new Set(seen).size, 3, `${seen}`);
      assert.equal(seen[0], from, 'the first keeps its port');
      guest.got.length = 0;
      for (const port of seen) b.send(protocol, C, [8080, port], flags);
      const expected = order.map(([address, port]) => `${protocol} ${address}:${port} > ${INSIDE}:${from}`);
      assert.deepEqual(guest.got, expected);
    };
    const orders = [to, [...to].reverse(), [to[1]!, to[0]!, to[2]!]];
    const seen = orders.map((order, n) => ask(c, 40_000 + n, order));
    for (const [n, order] of orders.entries()) answers(c, seen[n]!, 40_000 + n, order);
    assert.deepEqual(ask(c, 50_000, [to[1]!]), [50_000]);
    setState(two, stateOf('two', [since(C, 9)], { services }));
    for (const [n, order] of orders.entries()) {
      answers(moved, seen[n]!, 40_000 + n, order);
      assert.deepEqual(ask(moved, 40_000 + n, order), seen[n]);
    }
    assert.notEqual(ask(moved, 50_000, [to[0]!])[0], 50_000, 'what it had opened before it moved');
  }
});

// S-1452: What a guest that has just come says and hears before its node knows to whom it speaks is lost, and not answered
//   by its end: it is sent again.
test('a guest that moves hears nothing under a name that it does not know', () => {
  const services: Entry<'services'>[] = [
    { address: SERVICE, protocol: 'tcp', port: 80, targets: [{ address: B, port: 8080 }] },
  ];
  let now = 0;
  const [one, two] = [newSwitch(), newSwitch(() => now)];
  const pods = [
    { address: B, nodes: ['two'] },
    { address: C, nodes: ['one', 'two'] },
  ];
  setState(one, stateOf('one', [since(C, 5)], { services, pods }));
  setState(two, stateOf('two', [since(B)], { services, pods }));
  const { deliver } = joinSlowly(one, two);
  deliver();
  const [c, b, moved] = [attach(one, C), attach(two, B), attach(two, C)];
  c.send(TCP, SERVICE, [700, 80]);
  deliver();
  setState(two, stateOf('two', [since(B), since(C, 9)], { services, pods }));
  b.send(TCP, C, [8080, 700], 0x10);
  assert.deepEqual(moved.got, [], 'not yet');
  deliver();
  b.send(TCP, C, [8080, 700], 0x10);
  assert.deepEqual(moved.got, [`6 ${SERVICE}:80 > ${INSIDE}:700`]);
  // A node that says nothing is not waited for longer than a second.
  setState(two, stateOf('two', [since(B), since(C, 10)], { services, pods }));
  moved.send(TCP, SERVICE, [700, 80], 0x10);
  now = 1000;
  moved.send(TCP, SERVICE, [700, 80], 0x10);
  assert.equal(b.got.length, 2);
});

// S-1669: `sessionAffinity: ClientIP` keeps a guest at the endpoint of its last connection for `timeoutSeconds`, also when
//   others come and after it has moved to another node; a port of the host keeps each client so.
test('a guest stays with its endpoint for as long as the Service says', () => {
  let now = 0;
  const [one, two] = [newSwitch(() => now), newSwitch(() => now)];
  join(one, two);
  const others = Array.from({ length: 20 }, (_, n) => `100.64.7.${n}`);
  const pods = [B, ...others].map((address) => ({ address, nodes: ['one'] }));
  const tell = (targets: readonly string[], sinceTwo?: number): void => {
    const services: Entry<'services'>[] = [
      {
        address: SERVICE,
        protocol: 'tcp',
        port: 80,
        affinitySeconds: 10,
        targets: targets.map((address) => ({ address, port: 8080 })),
      },
    ];
    const guests = [since(B), ...others.map((address) => since(address))];
    const all = [...pods, { address: C, nodes: ['one', 'two'] }];
    setState(one, stateOf('one', [...guests, since(C)], { services, pods: all }));
    setState(two, stateOf('two', sinceTwo === undefined ? [] : [since(C, sinceTwo)], { services, pods: all }));
  };
  tell([B]);
  const c = attach(one, C);
  const ends = [B, ...others].map((address) => attach(one, address));
  /** To whom a new connection goes: its place among the endpoints. */
  const reached = (guest: typeof c, from: number): number => {
    for (const end of ends) end.got.length = 0;
    guest.send(TCP, SERVICE, [from, 80]);
    return ends.findIndex(({ got }) => got.length > 0);
  };
  assert.equal(reached(c, 1000), 0);
  tell([B, ...others]);
  for (let n = 1; n <= 5; n++) {
    now += 10_000;
    assert.equal(reached(c, 1000 + n), 0, 'each connection begins the time anew');
  }
  const moved = attach(two, C);
  tell([B, ...others], 9);
  now += 10_000;
  assert.equal(reached(moved, 2000), 0);
  now += 10_001;
  const next = reached(moved, 2001);
  assert.ok(next > 0, `${next}`);
  tell(
    others.filter((address) => address !== others[next - 1]),
    9,
  );
  assert.notEqual(reached(moved, 2002), next, 'an endpoint that is gone holds nobody');
});
