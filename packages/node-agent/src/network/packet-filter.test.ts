import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFrameStream } from './frame-stream.ts';
import { packetRule } from './packet-rule.ts';
import { createUdpPeers } from './udp-peers.ts';

const rule = packetRule({ cidr: '10.0.2.0/24', gateway: '10.0.2.1', dns: '10.0.2.3' });

interface Packet {
  readonly to: string;
  readonly from?: string;
  readonly protocol: 'tcp' | 'udp' | 'icmp';
  readonly port?: number;
  readonly fromPort?: number;
  readonly flags?: number;
  readonly part?: number;
  readonly options?: number;
  readonly length?: number;
}

function frame({ to, from = '10.0.2.2', protocol, port = 80, fromPort = 5000, ...more }: Packet): Buffer {
  const header = 20 + (more.options ?? 0);
  const bytes = Buffer.alloc(14 + header + 20);
  bytes.writeUInt16BE(0x0800, 12);
  bytes[14] = 0x40 | (header / 4);
  bytes.writeUInt16BE(more.part ?? 0, 20);
  bytes[23] = { tcp: 6, udp: 17, icmp: 1 }[protocol];
  bytes.set(from.split('.').map(Number), 26);
  bytes.set(to.split('.').map(Number), 30);
  bytes.writeUInt16BE(fromPort, 14 + header);
  bytes.writeUInt16BE(port, 14 + header + 2);
  bytes[14 + header + 13] = more.flags ?? 0x02;
  return bytes.subarray(0, more.length ?? bytes.length);
}

const never = (): boolean => false;
const CASES: readonly (readonly [string, boolean, Packet])[] = [
  ['the world', true, { to: '192.0.2.7', protocol: 'tcp' }],
  ['a part of a packet to the world', true, { to: '192.0.2.7', protocol: 'tcp', part: 0x2001 }],
  ['a private network', true, { to: '10.0.3.1', protocol: 'udp' }],
  ['loopback', false, { to: '127.0.0.1', protocol: 'tcp' }],
  ['forwarded ports of another guest', false, { to: '127.64.0.9', protocol: 'tcp', port: 40_022 }],
  ['loopback by UDP', false, { to: '127.0.0.53', protocol: 'udp', port: 53 }],
  ['loopback by ICMP', false, { to: '127.0.0.1', protocol: 'icmp' }],
  ['0.0.0.0, which is loopback', false, { to: '0.0.0.0', protocol: 'tcp' }],
  ['link-local addresses', false, { to: '169.254.169.254', protocol: 'tcp' }],
  ['groups', false, { to: '224.0.0.251', protocol: 'udp', port: 5353 }],
  ['a connection to the gateway', false, { to: '10.0.2.1', protocol: 'tcp' }],
  ['a connection with other flags too', false, { to: '10.0.2.1', protocol: 'tcp', flags: 0xca }],
  ['a connection to another alias', false, { to: '10.0.2.200', protocol: 'tcp' }],
  ['a connection, behind options', false, { to: '10.0.2.1', protocol: 'tcp', options: 8 }],
  ['a connection in parts', false, { to: '10.0.2.1', protocol: 'tcp', part: 0x2000, flags: 0x10 }],
  ['a connection cut off', false, { to: '10.0.2.1', protocol: 'tcp', flags: 0x10, length: 14 + 20 + 8 }],
  ['an answer on a connection that came', true, { to: '10.0.2.1', protocol: 'tcp', flags: 0x12 }],
  ['names, by UDP', true, { to: '10.0.2.3', protocol: 'udp', port: 53 }],
  ['names, by TCP', true, { to: '10.0.2.3', protocol: 'tcp', port: 53 }],
  ['another port of the resolver', false, { to: '10.0.2.3', protocol: 'tcp', port: 22 }],
  ['another port of the resolver by UDP', false, { to: '10.0.2.3', protocol: 'udp', port: 161 }],
  ['an address by DHCP', true, { to: '255.255.255.255', protocol: 'udp', port: 67 }],
  ['a lease renewed', true, { to: '10.0.2.1', protocol: 'udp', port: 67 }],
  ['other broadcasts', false, { to: '255.255.255.255', protocol: 'udp', port: 137 }],
  ['datagrams to the gateway', false, { to: '10.0.2.1', protocol: 'udp', port: 161 }],
  ['a ping of the gateway', true, { to: '10.0.2.1', protocol: 'icmp' }],
  ['a ping of another alias', false, { to: '10.0.2.9', protocol: 'icmp' }],
];

for (const [what, passes, packet] of CASES) {
  // S-382
  test(`from a guest: ${what} ${passes ? 'passes' : 'does not pass'}`, () => {
    assert.equal(rule.mayPass(frame(packet), never), passes);
  });
}

// S-382
test('from a guest: what is no IPv4 and no ARP does not pass, nor what is cut off', () => {
  const typed = (type: number): Buffer => {
    const bytes = frame({ to: '192.0.2.7', protocol: 'tcp' });
    bytes.writeUInt16BE(type, 12);
    return bytes;
  };
  assert.deepEqual(
    [0x0806, 0x0800, 0x86dd, 0x8100, 0x88f8].map((type) => rule.mayPass(typed(type), never)),
    [true, true, false, false, false],
  );
  for (let length = 0; length < 34; length++)
    assert.equal(rule.mayPass(frame({ to: '192.0.2.7', protocol: 'tcp', length }), never), false);
});

// S-382
test('a datagram is answered where it came from, and only for a while', () => {
  let now = 0;
  const peers = createUdpPeers(() => now);
  const answer = frame({ to: '10.0.2.1', protocol: 'udp', port: 41_000, fromPort: 53 });
  assert.equal(rule.mayPass(answer, peers.answers), false);
  const peer = rule.udpPeer(frame({ from: '10.0.2.1', to: '10.0.2.2', protocol: 'udp', port: 53, fromPort: 41_000 }));
  peers.saw(peer!);
  assert.equal(rule.mayPass(answer, peers.answers), true);
  assert.equal(
    rule.mayPass(frame({ to: '10.0.2.1', protocol: 'udp', port: 41_001, fromPort: 53 }), peers.answers),
    false,
  );
  assert.equal(
    rule.mayPass(frame({ to: '10.0.2.1', protocol: 'udp', port: 41_000, fromPort: 54 }), peers.answers),
    false,
  );
  now = 180_000;
  assert.equal(rule.mayPass(answer, peers.answers), false);
  for (let i = 0; i < 5000; i++) peers.saw({ gatewayPort: i, guestPort: 1 });
  assert.deepEqual(
    [0, 4999].map((gatewayPort) => peers.answers({ gatewayPort, guestPort: 1 })),
    [false, true],
  );
  assert.equal(rule.udpPeer(frame({ from: '192.0.2.7', to: '10.0.2.2', protocol: 'udp' })), undefined);
});

test('frames are cut as they come, whatever the pieces, and those that may not pass are left out', () => {
  const framed = (text: string): Buffer => {
    const bytes = Buffer.alloc(4 + text.length);
    bytes.writeUInt32BE(text.length);
    bytes.write(text, 4);
    return bytes;
  };
  const all = Buffer.concat(['one', 'BAD', 'two', 'three', 'BAD', 'BAD', '', 'four'].map(framed));
  const wanted = Buffer.concat(['one', 'two', 'three', '', 'four'].map(framed)).toString();
  const mayPass = (bytes: Uint8Array): boolean => Buffer.from(bytes).toString() !== 'BAD';
  for (let size = 1; size <= all.length; size++) {
    const stream = createFrameStream((bytes) => mayPass(bytes) || undefined);
    const passed: Uint8Array[] = [];
    for (let at = 0; at < all.length; at += size)
      passed.push(...stream.take(all.subarray(at, at + size)).map(({ bytes }) => bytes));
    assert.equal(Buffer.concat(passed).toString(), wanted, `pieces of ${size}`);
  }
  assert.throws(() => createFrameStream(() => true).take(Buffer.from([0xff, 0, 0, 0, 1])), /a frame of/);
});
