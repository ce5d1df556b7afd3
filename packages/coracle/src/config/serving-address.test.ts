import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inUrl, isLoopback, servingAddress } from './serving-address.ts';

const host = { addresses: ['192.0.2.7', '2001:db8::7', '192.0.2.8'], name: 'big.example' };
const names = ['big.example'];

describe('servingAddress()', () => {
  const cases: [string, ReturnType<typeof servingAddress>][] = [
    [
      '127.0.0.1',
      { listen: '127.0.0.1', advertise: '127.0.0.1', ipAddresses: ['127.0.0.1'], dnsNames: [], isOpen: false },
    ],
    [
      '127.0.0.9',
      { listen: '127.0.0.9', advertise: '127.0.0.9', ipAddresses: ['127.0.0.9'], dnsNames: [], isOpen: false },
    ],
    ['::1', { listen: '::1', advertise: '::1', ipAddresses: ['::1'], dnsNames: [], isOpen: false }],
    [
      '192.0.2.8',
      { listen: '192.0.2.8', advertise: '192.0.2.8', ipAddresses: ['192.0.2.8'], dnsNames: names, isOpen: true },
    ],
    [
      '0.0.0.0',
      {
        listen: '0.0.0.0',
        advertise: '192.0.2.7',
        ipAddresses: ['192.0.2.7', '192.0.2.8'],
        dnsNames: names,
        isOpen: true,
      },
    ],
    ['::', { listen: '::', advertise: '2001:db8::7', ipAddresses: host.addresses, dnsNames: names, isOpen: true }],
  ];
  for (const [text, expected] of cases) it(text, () => assert.deepEqual(servingAddress(text, host), expected));
  it('a host without any address of its own', () =>
    assert.deepEqual(servingAddress('::', { addresses: [], name: 'localhost' }), {
      listen: '::',
      advertise: '127.0.0.1',
      ipAddresses: [],
      dnsNames: [],
      isOpen: true,
    }));
  it('a host name that no certificate could hold is left out', () =>
    assert.deepEqual(servingAddress('192.0.2.8', { addresses: [], name: 'my_box' }).dnsNames, []));
  for (const text of ['', 'example.com', '1.2.3', '0', 'fe80::1%eth0', '127.0.0.1:80'])
    it(`${JSON.stringify(text)} is refused`, () => assert.throws(() => servingAddress(text, host), RangeError));
});

it('isLoopback()', () => {
  for (const text of ['127.0.0.1', '127.255.0.3', '::1', '0:0:0:0:0:0:0:1', 'localhost'])
    assert.equal(isLoopback(text), true, text);
  for (const text of ['0.0.0.0', '::', '128.0.0.1', '1::1', '::2', '::11', 'example.com', '127.example.com'])
    assert.equal(isLoopback(text), false, text);
});

it('inUrl()', () => {
  assert.equal(inUrl('::1'), '[::1]');
  assert.equal(inUrl('127.0.0.1'), '127.0.0.1');
});
