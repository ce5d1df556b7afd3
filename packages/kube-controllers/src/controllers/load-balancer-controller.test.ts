import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../../../apimachinery/src/types/types.ts';
import { ingressFor, isOurIngress } from './load-balancer-controller.ts';

const service = (uid: string, spec: Service['spec'] = {}): Service => ({ metadata: { uid }, spec }) as Service;

test('ingressFor() gives each Service an address of the loopback network, the same each time, and none twice', () => {
  const taken = new Set<string>();
  for (let i = 0; i < 500; i++) {
    const address = ingressFor(service(`uid-${i}`), taken);
    assert.ok(isOurIngress(address) && !taken.has(address), address);
    assert.equal(ingressFor(service(`uid-${i}`), taken), address);
    taken.add(address);
  }
  const first = ingressFor(service('uid-0'), new Set());
  assert.notEqual(ingressFor(service('uid-0'), new Set([first])), first);
  assert.equal(ingressFor(service('x', { loadBalancerIP: '127.40.0.1' }), new Set()), '127.40.0.1');
  assert.notEqual(ingressFor(service('x', { loadBalancerIP: '192.0.2.1' }), new Set()), '192.0.2.1');
});
