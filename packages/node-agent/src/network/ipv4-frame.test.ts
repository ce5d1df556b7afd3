import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  checksum,
  countHop,
  ETHERNET,
  ICMP,
  ipv4Of,
  makeFrame,
  type NewPacket,
  numberOf,
  put16,
  TCP,
  textOf,
  translate,
  UDP,
  u16,
  u32,
} from './ipv4-frame.ts';

const address = fc.integer({ min: 0, max: 0xffffffff });
const port = fc.integer({ min: 0, max: 65_535 });

/** True when the sums of a frame are right: each comes out as zero over what it is in. */
function isSound(frame: Uint8Array): boolean {
  const packet = ipv4Of(frame);
  if (!packet || checksum(frame, ETHERNET, packet.payload) !== 0) return false;
  const { source, destination, protocol, payload, end } = packet;
  if (protocol === ICMP) return checksum(frame, payload, end) === 0;
  const pseudo = [source >>> 16, source & 0xffff, destination >>> 16, destination & 0xffff, protocol, end - payload];
  return (
    checksum(
      frame,
      payload,
      end,
      pseudo.reduce((sum, one) => sum + one),
    ) === 0
  );
}

const packets: fc.Arbitrary<NewPacket> = fc
  .record({
    protocol: fc.constantFrom(TCP, UDP),
    source: address,
    destination: address,
    payload: fc.uint8Array({ minLength: 20, maxLength: 90 }),
  })
  .map((packet) => {
    if (packet.protocol === UDP) put16(packet.payload, 4, packet.payload.length);
    return packet;
  });

test('translate() changes address and port in place, and all sums stay right', () => {
  fc.assert(
    fc.property(
      packets,
      fc.constantFrom('source' as const, 'destination' as const),
      address,
      port,
      (made, side, to, newPort) => {
        const frame = makeFrame(made);
        assert.ok(isSound(frame));
        const packet = ipv4Of(frame);
        assert.ok(packet);
        const rest = frame.slice(packet.payload + 18);
        translate(frame, packet, side, { address: to, port: newPort });
        assert.ok(isSound(frame));
        assert.equal(u32(frame, ETHERNET + (side === 'source' ? 12 : 16)), to);
        assert.equal(u16(frame, packet.payload + (side === 'source' ? 0 : 2)), newPort);
        assert.deepEqual(frame.slice(packet.payload + 18), rest);
        assert.ok(countHop(frame) && isSound(frame));
      },
    ),
  );
});

test('translate() there and back gives the packet of before', () => {
  fc.assert(
    fc.property(packets, address, (made, to) => {
      const frame = makeFrame(made);
      const before = frame.slice();
      const packet = ipv4Of(frame);
      assert.ok(packet);
      translate(frame, packet, 'source', { address: to });
      translate(frame, packet, 'source', { address: made.source });
      const [one, other] = [ipv4Of(frame), ipv4Of(before)];
      assert.deepEqual(one, other);
      assert.ok(isSound(frame));
    }),
  );
});

test('translate() changes what an ICMP error quotes too, on the other side', () => {
  const [guest, pod, router] = ['10.0.2.2', '100.64.0.9', '10.1.1.1'].map(numberOf) as [number, number, number];
  const lost = makeFrame({ protocol: UDP, source: pod, destination: router, payload: new Uint8Array(16) });
  const message = new Uint8Array(8 + 28);
  message[0] = 3;
  message.set(lost.subarray(ETHERNET, ETHERNET + 28), 8);
  const frame = makeFrame({ protocol: ICMP, source: router, destination: pod, payload: message });
  const packet = ipv4Of(frame);
  assert.ok(packet && isSound(frame));
  translate(frame, packet, 'destination', { address: guest });
  assert.ok(isSound(frame));
  const quoted = packet.payload + 8;
  assert.equal(textOf(u32(frame, quoted + 12)), '10.0.2.2');
  assert.equal(checksum(frame, quoted, quoted + 20), 0);
});

test('ipv4Of() and translate() take any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), address, (bytes, to) => {
      const frame = Uint8Array.from([...new Uint8Array(12), 8, 0, ...bytes]);
      const packet = ipv4Of(frame);
      if (packet) translate(frame, packet, 'destination', { address: to });
    }),
  );
});

test('countHop() stops a packet whose time is over', () => {
  const frame = makeFrame({ protocol: ICMP, source: 1, destination: 2, payload: new Uint8Array(8) });
  for (let hop = 1; hop < 64; hop++) assert.ok(countHop(frame) && isSound(frame));
  assert.ok(!countHop(frame));
});
