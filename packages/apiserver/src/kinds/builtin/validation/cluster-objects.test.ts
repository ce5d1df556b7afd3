import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

// S-343: Nodes, endpoints, flow schemas, priority levels and volumes are validated before they are
//   stored.
test('an EndpointSlice: one type of addresses, ports of different names', () => {
  const slice = (object: object, old?: object) =>
    validationErrors('discovery.k8s.io/v1', 'endpointslices', object, old);
  const good = {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ports: [{ name: 'a', protocol: 'TCP' }],
  };
  assert.deepEqual(slice(good), []);
  assert.deepEqual(slice({ ...good, endpoints: [{ addresses: ['127.0.0.9'] }] }), []);
  assert.deepEqual(slice({ ...good, addressType: 'X' }), [
    'addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"',
  ]);
  assert.deepEqual(slice({ ...good, endpoints: [{ addresses: [] }, { addresses: ['169.254.1.1', 'fe80::1'] }] }), [
    'endpoints[0].addresses: Required value: must contain at least 1 address',
    'endpoints[1].addresses[0]: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
    'endpoints[1].addresses[1]: Invalid value: "fe80::1": must be a valid IPv4 address',
    'endpoints[1].addresses[1]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  ]);
  assert.deepEqual(slice({ ...good, ports: [{ protocol: 'X' }, {}] }), [
    'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
    'ports[1].name: Duplicate value: ""',
  ]);
  assert.deepEqual(slice({ ...good, addressType: 'FQDN', endpoints: [{ addresses: ['a.b', 'a'] }] }, good), [
    'endpoints[0].addresses[1]: Invalid value: "a": should be a domain with at least two segments separated by dots',
    'addressType: Invalid value: "FQDN": field is immutable',
  ]);
});

// S-343
test('Endpoints: addresses that somebody has, ports with names where there are several', () => {
  const of = (subset: object): string[] => validationErrors('v1', 'endpoints', { subsets: [subset] });
  assert.deepEqual(of({ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }), []);
  assert.deepEqual(of({}), ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`']);
  assert.deepEqual(of({ addresses: [{ ip: '0.0.0.0' }, { ip: 'x' }], ports: [{ port: 0 }, { name: 'b', port: 1 }] }), [
    'subsets[0].addresses[0].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
    'subsets[0].addresses[1].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    'subsets[0].ports[0].name: Required value',
    'subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
  ]);
});

// S-343
// Compat Types, P1, yes: rules of Nodes, Endpoints and EndpointSlices
test('a Node: taints differ by key and effect, its ranges and its id stay', () => {
  const taints = [
    { key: 'k', effect: 'NoSchedule' },
    { key: 'k', effect: 'NoSchedule' },
    { key: 'x', effect: 'Z' },
  ];
  assert.deepEqual(validationErrors('v1', 'nodes', { spec: { taints } }), [
    'spec.taints[1]: Duplicate value: {"key":"k","effect":"NoSchedule"}: taints must be unique by key and effect pair',
    'spec.taints[2].effect: Unsupported value: "Z": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"',
  ]);
  const old = { spec: { podCIDRs: ['10.1.0.0/24'], providerID: 'p' } };
  assert.deepEqual(validationErrors('v1', 'nodes', { spec: { podCIDRs: ['10.2.0.0/24'], providerID: 'q' } }, old), [
    'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
    'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
  ]);
});

// S-343
test('a PersistentVolume lies in one place, and stays there', () => {
  const volume = (spec: object, old?: object): string[] => {
    const whole = (more: object) => ({
      spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, ...more },
    });
    return validationErrors('v1', 'persistentvolumes', whole(spec), old && whole(old));
  };
  const host = { hostPath: { path: '/x' } };
  assert.deepEqual(volume(host), []);
  assert.deepEqual(volume({ persistentVolumeReclaimPolicy: 'Z' }), [
    'spec.persistentVolumeReclaimPolicy: Unsupported value: "Z": supported values: "Delete", "Recycle", "Retain"',
    'spec: Required value: must specify a volume type',
  ]);
  assert.deepEqual(volume({ ...host, nfs: { server: 's', path: '/' } }), [
    'spec.nfs: Forbidden: may not specify more than 1 volume type',
  ]);
  assert.deepEqual(volume({ local: { path: '/x' } }), [
    'spec.nodeAffinity: Required value: Local volume requires node affinity',
  ]);
  assert.deepEqual(volume({ hostPath: { path: '/y' } }, host), [
    'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
  ]);
});

test('Endpoints of before may be labelled, whatever they hold', () => {
  const odd = { subsets: [{ addresses: [{ ip: '0.0.0.0' }] }] };
  assert.deepEqual(validationErrors('v1', 'endpoints', { ...odd, metadata: { labels: { a: 'b' } } }, odd), []);
});

test('a Secret with credentials of registries holds a JSON object', () => {
  const of = (type: string, key: string, text: string): string[] =>
    validationErrors('v1', 'secrets', { type, data: { [key]: Buffer.from(text).toString('base64') } });
  const [type, key] = ['kubernetes.io/dockerconfigjson', '.dockerconfigjson'];
  const at = `data[${key}]: Invalid value: "<secret contents redacted>"`;
  assert.deepEqual(of(type, key, '{"auths":{}}'), []);
  assert.deepEqual(of('Opaque', key, 'bad'), []);
  assert.deepEqual(of(type, key, 'bad'), [`${at}: invalid character 'b' looking for beginning of value`]);
  assert.deepEqual(of(type, key, '{'), [`${at}: unexpected end of JSON input`]);
  assert.deepEqual(of(type, key, '[]'), [`${at}: must be a JSON object`]);
  assert.deepEqual(of('kubernetes.io/dockercfg', '.dockercfg', '1'), [
    'data[.dockercfg]: Invalid value: "<secret contents redacted>": must be a JSON object',
  ]);
});
