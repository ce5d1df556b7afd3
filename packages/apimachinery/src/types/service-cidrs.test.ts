import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partly } from '../../../../test/testkit/partly.ts';
import {
  addressOf,
  canDeleteCidr,
  clusterIpsOf,
  firstServiceIp,
  formatIpRange,
  isReadyCidr,
  parseIpRange,
  rangeHolds,
} from './service-cidrs.ts';
import type { Condition, ServiceCIDR } from './types.ts';

const cidr = (name: string, ...cidrs: string[]): ServiceCIDR => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'ServiceCIDR',
  metadata: { name },
  spec: { cidrs },
});

describe('parseIpRange()', () => {
  const cases: [string, string | undefined][] = [
    ['10.96.0.0/16', '10.96.0.0/16'],
    ['10.96.1.2/16', '10.96.0.0/16'],
    ['10.0.0.1/32', '10.0.0.1/32'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:db8::1/64', '2001:db8::/64'],
    ['10.96.0.0/33', undefined],
    ['10.96.0.0/016', undefined],
    ['10.96.0.0', undefined],
    ['10.96.0.0/', undefined],
    ['/16', undefined],
  ];
  for (const [text, wanted] of cases) {
    it(`${wanted === undefined ? 'refuses' : 'reads'} ${text}`, () => {
      const range = parseIpRange(text);
      assert.equal(range && formatIpRange(range), wanted);
    });
  }
});

describe('rangeHolds()', () => {
  const cases: [string, string, boolean][] = [
    ['10.0.0.0/29', '10.0.0.0', false],
    ['10.0.0.0/29', '10.0.0.1', true],
    ['10.0.0.0/29', '10.0.0.6', true],
    ['10.0.0.0/29', '10.0.0.7', false],
    ['10.0.0.0/29', '10.0.0.8', false],
    ['10.0.0.0/29', '::1', false],
    ['2001:db8::/125', '2001:db8::', false],
    ['2001:db8::/125', '2001:db8::7', true],
    ['10.0.0.0/29', 'ten', false],
  ];
  for (const [range, ip, wanted] of cases) {
    it(`says ${wanted} of ${ip} in ${range}`, () => assert.equal(rangeHolds(parseIpRange(range)!, ip), wanted));
  }
});

describe('canDeleteCidr()', () => {
  const address = (ip: string) => addressOf(ip, { namespace: 'default', name: 'x' });
  const own = { ...address('10.0.0.9'), metadata: { name: '10.0.0.9' } };
  const cases: [string, ServiceCIDR[], string[], boolean][] = [
    ['nothing is left of it', [], ['10.1.0.1'], true],
    ['one address is left', [], ['10.0.0.9'], false],
    ['the range lies in another', [cidr('wide', '10.0.0.0/16')], ['10.0.0.9'], true],
    ['there is the same again', [cidr('same', '10.0.0.0/24')], ['10.0.0.9'], true],
    ['another has all that is left', [cidr('part', '10.0.0.0/28')], ['10.0.0.9'], true],
    ['another has some of what is left', [cidr('part', '10.0.0.0/28')], ['10.0.0.9', '10.0.0.99'], false],
    ["it would be the other's broadcast address", [cidr('part', '10.0.0.0/28')], ['10.0.0.15'], false],
  ];
  for (const [when, others, ips, wanted] of cases) {
    it(`says ${wanted} when ${when}`, () => {
      const leaving = cidr('leaving', '10.0.0.0/24');
      const decision = canDeleteCidr(leaving, { all: [leaving, ...others], addresses: ips.map(address) });
      assert.equal(decision, wanted);
    });
  }

  it('does not count what users have made for themselves', () => {
    const leaving = cidr('leaving', '10.0.0.0/24');
    assert.equal(canDeleteCidr(leaving, { all: [leaving], addresses: [own] }), true);
  });

  it('looks at both families', () => {
    const leaving = cidr('leaving', '10.0.0.0/24', '2001:db8::/64');
    const all = [leaving, cidr('four', '10.0.0.0/16')];
    assert.equal(canDeleteCidr(leaving, { all, addresses: [address('10.0.0.9')] }), true);
    assert.equal(canDeleteCidr(leaving, { all, addresses: [address('2001:db8::9')] }), false);
  });
});

describe('clusterIpsOf()', () => {
  const cases: [string, object | undefined, string[]][] = [
    ['an ordinary Service', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] }, ['10.0.0.1']],
    ['one of an older release', { clusterIP: '10.0.0.1' }, ['10.0.0.1']],
    ['a headless one', { clusterIP: 'None', clusterIPs: ['None'] }, []],
    ['an external one', { type: 'ExternalName', clusterIP: '10.0.0.1' }, []],
    ['one without a spec', undefined, []],
  ];
  for (const [what, spec, wanted] of cases) {
    it(`knows those of ${what}`, () => {
      const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec };
      assert.deepEqual(clusterIpsOf(service), wanted);
    });
  }
});

describe('isReadyCidr()', () => {
  it('believes the condition, and a ServiceCIDR that nobody looks after', () => {
    const withStatus = (status: Condition['status']): ServiceCIDR => ({
      ...cidr('c', '10.0.0.0/24'),
      status: { conditions: [partly<Condition>({ type: 'Ready', status })] },
    });
    assert.equal(isReadyCidr(cidr('c', '10.0.0.0/24')), true);
    assert.equal(isReadyCidr(withStatus('True')), true);
    assert.equal(isReadyCidr(withStatus('False')), false);
    const leaving = { ...withStatus('True'), metadata: { name: 'c', deletionTimestamp: '2026-01-01T00:00:00Z' } };
    assert.equal(isReadyCidr(leaving), false);
  });
});

describe('firstServiceIp()', () => {
  it("is the address after the network's own", () => {
    assert.equal(firstServiceIp('10.96.0.0/16'), '10.96.0.1');
    assert.throws(() => firstServiceIp('nothing'), TypeError);
  });
});
