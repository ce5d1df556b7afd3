import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAddress, isMapped, parseAddress } from './ip-address.ts';

test('an address has one text, and one meaning', () => {
  for (const [text, canonical] of [
    ['0.0.0.0', '0.0.0.0'],
    ['255.1.2.3', '255.1.2.3'],
    ['::', '::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['FD10:0:2::2', 'fd10:0:2::2'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:0:0:4:0:0:0:8', '1:0:0:4::8'],
    ['::ffff:1.2.3.4', '::ffff:102:304'],
    // No mapped address, as some libraries read it.
    ['::1.2.3.4', '::102:304'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
  ] as const) {
    const address = parseAddress(text);
    assert.ok(address, text);
    assert.equal(formatAddress(address), canonical);
    assert.deepEqual(parseAddress(canonical), address);
  }
  assert.equal(isMapped(parseAddress('::ffff:1.2.3.4')!), true);
  assert.equal(isMapped(parseAddress('::1.2.3.4')!), false);
});

for (const text of [
  ...['', '1.2.3', '256.1.1.1', '01.1.1.1', '0x7f.0.0.1', '127.1', '1:2:3', '1::2::3', '12345::', '1:2:3:4:5:6:7:8:9'],
  ...['1:2:3:4:5:6:7::8', 'g::', ':1', ':::', '1.2.3.4::', '::01.2.3.4', '::0x1.2.3.4', 'fe80::1%eth0', ' ::1'],
]) {
  test(`${JSON.stringify(text)} is no address`, () => assert.equal(parseAddress(text), undefined));
}
