import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askedHostPorts, HOST_PORTS_ANNOTATION, usualHostPort } from './host-ports.ts';

test('a port of a guest is looked for where no program of the host wants one by number', () => {
  for (const [guest, host] of [
    [22, 40_022],
    [8080, 48_080],
    [19_999, 59_999],
    [20_022, 40_022],
    [65_535, 45_535],
  ] as const)
    assert.equal(usualHostPort(guest), host);
});

test('ports under their own number are those that the annotation names', () => {
  const asked = (text?: string) => askedHostPorts(text === undefined ? undefined : { [HOST_PORTS_ANNOTATION]: text });
  assert.deepEqual(asked(), { ports: [], problems: [] });
  assert.deepEqual(asked('22, 80/TCP,53/udp,22').ports, [
    { protocol: 'tcp', port: 22 },
    { protocol: 'tcp', port: 80 },
    { protocol: 'udp', port: 53 },
  ]);
  assert.deepEqual(asked('2222:22,5353:53/udp,2222:23').ports, [
    { protocol: 'tcp', port: 23, hostPort: 2222 },
    { protocol: 'udp', port: 53, hostPort: 5353 },
  ]);
  for (const bad of [
    '2222:',
    ':22',
    '65536:22',
    '1:2:3',
    '127.0.0.1:22',
    '0',
    '65536',
    'ssh',
    '22-23',
    '22/sctp',
    '1e3',
    '22,',
  ])
    assert.equal(asked(bad).problems.length, 1, bad);
  const many = asked(Array.from({ length: 5000 }, (_, i) => i + 1).join());
  assert.deepEqual([many.ports.length, many.problems.length], [64, 1]);
});
