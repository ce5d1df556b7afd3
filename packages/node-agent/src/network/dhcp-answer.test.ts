import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hello } from '../../../../test/testkit/switch-guests.ts';
import { answerDhcp } from './dhcp-answer.ts';
import { checksum, ETHERNET, ipv4Of, makeFrame, put16, put32, textOf, UDP, u16, u32 } from './ipv4-frame.ts';

const network = { cidr: '10.0.2.0/24', gateway: '10.0.2.1', dns: '10.0.2.3' };
const options = {
  hostname: 'web',
  bootFile: 'pxe.0',
  searches: ['default.svc.cluster.local'],
  ntpServers: ['192.0.2.1', '192.0.2.2'],
  privateOptions: [{ option: 224, value: 'é' }],
};

/** A message of a client, with the options given as `[code, ...bytes]`. */
function asks(type: number, more: readonly (readonly number[])[] = [], port = 67): Uint8Array {
  const payload = new Uint8Array(8 + 300);
  put16(payload, 0, 68);
  put16(payload, 2, port);
  put16(payload, 4, payload.length);
  payload.set([1, 1, 6], 8);
  put32(payload, 8 + 4, 0xcafe);
  put16(payload, 8 + 10, 0x8000);
  payload.set([2, 0, 0, 0, 0, 1], 8 + 28);
  put32(payload, 8 + 236, 0x63825363);
  payload.set(
    [0, 53, 1, type, ...more.flatMap(([code = 0, ...bytes]) => [code, bytes.length, ...bytes]), 255],
    8 + 240,
  );
  return makeFrame({ protocol: UDP, source: 0, destination: 0xffffffff, payload });
}

const address = (text: string): number[] => text.split('.').map(Number);

/** What a client reads of the answer. */
function answerTo(frame: Uint8Array) {
  const answer = answerDhcp(frame, { network, hello: hello('100.64.0.1'), options });
  if (!answer) return undefined;
  const packet = ipv4Of(answer);
  assert.ok(packet);
  assert.equal(checksum(answer, ETHERNET, ETHERNET + 20), 0, 'the checksum of the header fits');
  assert.deepEqual([u16(answer, packet.payload), u16(answer, packet.payload + 2)], [67, 68]);
  const message = answer.subarray(packet.payload + 8);
  assert.deepEqual([message[0], u32(message, 4), u16(message, 10)], [2, 0xcafe, 0x8000]);
  assert.deepEqual([...message.subarray(28, 34)], [2, 0, 0, 0, 0, 1]);
  const given = new Map<number, string>();
  for (let at = 240; message[at] !== 255; at += 2 + message[at + 1]!)
    given.set(message[at]!, Buffer.from(message.subarray(at + 2, at + 2 + message[at + 1]!)).toString('hex'));
  const file = Buffer.from(message.subarray(108, 236)).toString().replaceAll('\0', '');
  const mac = Buffer.from(answer.subarray(0, 6)).toString('hex');
  return {
    mac,
    from: textOf(packet.source),
    to: textOf(packet.destination),
    own: textOf(u32(message, 16)),
    file,
    given,
  };
}

const GIVEN = [
  [1, 'ffffff00'],
  [3, '0a000201'],
  [6, '0a000203'],
  [51, '00015180'],
  [12, '776562'],
  [119, '0764656661756c74037376630763 6c7573746572056c6f63616c00'.replace(' ', '')],
  [67, '7078652e30'],
  [42, 'c0000201c0000202'],
  [224, 'c3a9'],
] as const;

// S-1672: Time servers and private options of `dhcpOptions` are given to a guest by DHCP, with its one address and all else that it asks for.
test('a guest that asks for an address gets all options of its card', () => {
  const discover = answerTo(asks(1));
  const common = { mac: '020000000001', from: '10.0.2.1', to: '10.0.2.2', own: '10.0.2.2', file: 'pxe.0' };
  const head = (type: string) => [
    [53, type],
    [54, '0a000201'],
  ];
  assert.deepEqual(discover, { ...common, given: new Map([...head('02'), ...GIVEN] as [number, string][]) });
  const acknowledged = { ...common, given: new Map([...head('05'), ...GIVEN] as [number, string][]) };
  assert.deepEqual(answerTo(asks(3, [[50, ...address('10.0.2.2')]])), acknowledged);
  assert.deepEqual(answerTo(asks(3)), acknowledged, 'it renews what it has');
  assert.deepEqual(answerTo(asks(3, [[50, ...address('10.0.9.9')]])), {
    mac: 'ffffffffffff',
    from: '10.0.2.1',
    to: '255.255.255.255',
    own: '0.0.0.0',
    file: '',
    given: new Map(head('06') as [number, string][]),
  });
  const informed = answerTo(asks(8));
  assert.deepEqual(
    [informed?.own, informed?.given.get(51), informed?.given.get(42)],
    ['0.0.0.0', undefined, GIVEN[7][1]],
  );
});

test('what asks for no address is left to others', () => {
  assert.equal(answerTo(asks(7)), undefined, 'a release');
  assert.equal(answerTo(asks(1, [], 53)), undefined);
  assert.equal(answerTo(asks(1).subarray(0, 200)), undefined, 'it is cut off');
  const other = asks(1);
  other[ETHERNET + 20 + 8] = 2;
  assert.equal(answerTo(other), undefined, 'an answer');
  const endless = asks(1);
  endless.fill(254, ETHERNET + 20 + 8 + 240);
  assert.equal(answerTo(endless), undefined, 'options that do not end');
});
