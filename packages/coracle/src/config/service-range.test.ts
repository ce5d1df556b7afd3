import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serviceRange } from './service-range.ts';

describe('serviceRange()', () => {
  const cases: [string, string | RegExp][] = [
    ['10.96.0.0/16', '10.96.0.0/16'],
    ['10.97.3.4/16', '10.97.0.0/16'],
    ['192.168.0.0/29', '192.168.0.0/29'],
    ['192.168.0.0/30', /takes a range of \/8 to \/29, not 192\.168\.0\.0\/30/],
    ['10.0.0.0/7', /takes a range of/],
    ['2001:db8::/112', /takes one IPv4 range like 10\.96\.0\.0\/16, not "2001:db8::\/112"/],
    ['10.96.0.0/16,2001:db8::/112', /takes one IPv4 range/],
    ['10.96.0.0', /takes one IPv4 range/],
    ['10.96.0.0/33', /takes one IPv4 range/],
    ['', /takes one IPv4 range/],
  ];
  for (const [text, wanted] of cases) {
    // S-279
    it(`${typeof wanted === 'string' ? 'takes' : 'refuses'} ${JSON.stringify(text)}`, () => {
      if (typeof wanted === 'string') assert.equal(serviceRange(text), wanted);
      else assert.throws(() => serviceRange(text), wanted);
    });
  }
});
