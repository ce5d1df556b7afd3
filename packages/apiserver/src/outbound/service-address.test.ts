import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import type { StoredObject } from '../cache/object-store.ts';
import { serviceAddresses, serviceHost } from './service-address.ts';

const stored = (prefix: string, object: object): StoredObject =>
  ({ prefix, namespace: 'ns', name: (object as UnstructuredObject).metadata.name, object }) as StoredObject;

/** A store that holds these objects. */
function storeOf(...items: StoredObject[]) {
  return {
    get: ({ prefix, name }: { prefix: string; name: string }) =>
      items.find((item) => item.prefix === prefix && item.name === name),
    list: (prefix: string, options?: { match?: (item: StoredObject) => boolean }) => ({
      items: items.filter((item) => item.prefix === prefix && (options?.match?.(item) ?? true)),
      revision: 1,
      next: undefined,
      remaining: undefined,
    }),
  };
}

const service = (spec: object) => stored('/services', { metadata: { name: 's' }, spec });
const PORTS = {
  ports: [
    { name: 'web', port: 443, targetPort: 'https' },
    { name: 'raw', port: 80, targetPort: 8080 },
  ],
};
const slice = (more: object) =>
  stored('discovery.k8s.io/endpointslices', {
    metadata: { name: 's-1', labels: { 'kubernetes.io/service-name': 's' } },
    ...more,
  });

test('serviceAddresses() gives the ready endpoints of the named port', () => {
  const store = storeOf(
    service(PORTS),
    slice({
      endpoints: [
        { addresses: ['10.0.0.1', 'fd00::1'], conditions: { ready: true } },
        { addresses: ['10.0.0.2'], conditions: { ready: false } },
        { addresses: ['10.0.0.3'] },
      ],
      ports: [{ name: 'web', port: 8443 }],
    }),
  );
  const at = (port: number) => serviceAddresses(store, { namespace: 'ns', name: 's', port });
  assert.deepEqual(at(443), [
    { host: '10.0.0.1', port: 8443 },
    { host: 'fd00::1', port: 8443 },
    { host: '10.0.0.3', port: 8443 },
  ]);
  assert.throws(() => at(80), /^Error: no endpoints available for service "s"$/);
  assert.throws(() => at(81), /^Error: no service port 81 found for service "s"$/);
});

test('serviceAddresses() falls back to Endpoints, follows ExternalName, and says what is missing', () => {
  const subsets = [{ addresses: [{ ip: '10.0.0.9' }], ports: [{ name: 'raw', port: 8080 }] }];
  const endpoints = stored('/endpoints', { metadata: { name: 's' }, subsets });
  const ask = { namespace: 'ns', name: 's', port: 80 };
  assert.deepEqual(serviceAddresses(storeOf(service(PORTS), endpoints), ask), [{ host: '10.0.0.9', port: 8080 }]);
  const outside = service({ type: 'ExternalName', externalName: 'example.com' });
  assert.deepEqual(serviceAddresses(storeOf(outside), ask), [{ host: 'example.com', port: 80 }]);
  assert.throws(() => serviceAddresses(storeOf(), ask), /^Error: service "s" not found$/);
  assert.throws(() => serviceAddresses(storeOf(service(PORTS)), ask), /no endpoints available/);
  assert.equal(serviceHost(ask), 's.ns.svc');
});
