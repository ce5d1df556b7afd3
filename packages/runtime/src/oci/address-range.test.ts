import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressRange } from './address-range.ts';

// S-498
test('addressRange() knows what is no address of the Internet, however it is written', () => {
  const cases: readonly [string, readonly string[]][] = [
    [
      'loopback',
      ['127.0.0.1', '127.64.0.9', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::7f00:1', '::127.0.0.1'],
    ],
    ['link-local', ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe']],
    ['private', ['10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', 'fd00::1', 'fec0::1']],
    [
      'reserved',
      ['0.0.0.0', '192.0.2.1', '224.0.0.1', '255.255.255.255', '::', 'ff02::1', '2001:db8::1', '2002:7f00:1::', 'x'],
    ],
    ['public', ['8.8.8.8', '172.32.0.1', '100.128.0.1', '169.253.0.1', '2606:4700::1111', '::ffff:8.8.8.8']],
  ];
  for (const [range, addresses] of cases)
    for (const address of addresses) assert.equal(addressRange(address), range, address);
});
