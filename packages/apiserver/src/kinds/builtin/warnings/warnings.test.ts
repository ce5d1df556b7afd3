import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource } from '../builtin-resources.ts';
import { builtinStrategy } from '../strategies/strategy.fixture.ts';

type Json = Readonly<Record<string, unknown>>;

const metadata = { name: 'a' };
const term = (key: string) => ({ matchExpressions: [{ key, operator: 'Exists' }] });

const claim = { resources: { requests: { storage: '1500m' } } };
const V6 = '2001:DB8::1';
const CANONICAL = (path: string): string =>
  `${path}: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`;

const OTHERS: readonly (readonly [group: string, resource: string, object: Json, ...wanted: string[]])[] = [
  [
    '',
    'persistentvolumes',
    {
      metadata: { name: 'v', annotations: { 'volume.beta.kubernetes.io/storage-class': 'c' } },
      spec: {
        persistentVolumeReclaimPolicy: 'Recycle',
        glusterfs: {},
        nodeAffinity: { required: { nodeSelectorTerms: [term('beta.kubernetes.io/arch')] } },
      },
    },
    'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
    'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
    'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead',
    'spec.glusterfs: deprecated in v1.25, non-functional in v1.26+',
  ],
  [
    '',
    'persistentvolumeclaims',
    { metadata, spec: claim },
    'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
  ],
  [
    'storage.k8s.io',
    'storageclasses',
    { metadata, allowedTopologies: [{ matchLabelExpressions: [{ key: 'beta.kubernetes.io/instance-type' }] }] },
    'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  ],
  [
    '',
    'nodes',
    { metadata, spec: { externalID: 'x' } },
    'spec.externalID: this field is deprecated, and is unused by Kubernetes',
  ],
  [
    '',
    'services',
    {
      metadata,
      spec: {
        type: 'ClusterIP',
        clusterIP: 'None',
        clusterIPs: ['None'],
        sessionAffinity: 'ClientIP',
        externalIPs: [V6],
      },
    },
    'spec.externalIPs is ignored for headless services',
    'spec.SessionAffinity is ignored for headless services',
    CANONICAL('spec.externalIPs[0]'),
  ],
  [
    '',
    'services',
    {
      metadata: { name: 's', annotations: { 'service.kubernetes.io/topology-aware-hints': 'auto' } },
      spec: {
        type: 'LoadBalancer',
        sessionAffinity: 'None',
        loadBalancerIP: V6,
        loadBalancerSourceRanges: ['10.0.0.1/8', '2001:DB8::/32', '10.0.0.0/8'],
        externalName: 'x',
        trafficDistribution: 'PreferClose',
      },
    },
    'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
    CANONICAL('spec.loadBalancerIP'),
    'spec.loadBalancerSourceRanges[0]: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
    'spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")',
    'spec.externalName is ignored when spec.type is not "ExternalName"',
    'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
  ],
  [
    'networking.k8s.io',
    'networkpolicies',
    { metadata, spec: { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.1/8' } }] }] } },
    'spec.ingress[0].from[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
  ],
  [
    'discovery.k8s.io',
    'endpointslices',
    { metadata, addressType: 'FQDN', endpoints: [] },
    'spec.addressType: FQDN endpoints are deprecated',
  ],
  [
    'discovery.k8s.io',
    'endpointslices',
    { metadata, endpoints: [{ addresses: [V6] }] },
    CANONICAL('endpoints[0].addresses[0]'),
  ],
  [
    '',
    'endpoints',
    { metadata, subsets: [{ notReadyAddresses: [{ ip: V6 }] }] },
    CANONICAL('subsets[0].notReadyAddresses[0].ip'),
  ],
];

for (const [group, resource, object, ...wanted] of OTHERS) {
  // S-261: What is valid but odd is warned about as upstream warns, on create and update.
  // Compat Writing, P1, yes: warnings of upstream's strategies, on create and update, for volumes and eight other kinds
  test(`warnings of ${resource}: ${wanted[0]?.slice(0, 60) ?? 'nothing odd'}`, () => {
    const { warningsOnCreate } = builtinResource({ group, version: 'v1', resource })!.strategy;
    assert.deepEqual(warningsOnCreate!(object), wanted);
  });
}

test('an account is reported its annotation once', () => {
  const annotated: Json = { metadata: { annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } } };
  const { warningsOnCreate, warningsOnUpdate } = builtinStrategy('v1', 'serviceaccounts');
  const text =
    'metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets';
  assert.deepEqual(warningsOnCreate!(annotated), [text]);
  assert.deepEqual(warningsOnUpdate!(annotated, { metadata }), [text]);
  assert.deepEqual(warningsOnUpdate!(annotated, annotated), []);
});

test('addresses of a Pod that are not written as they should be', () => {
  const { warningsOnUpdate } = builtinStrategy('v1', 'pods').subresources['status']!;
  const ips = ['::ffff:1.2.3.4', '::ffff:102:304', '010.0.0.1', '10.0.0.1', '2001:DB8::1', 'fd00::1'];
  const odd = (i: number, address: string, use: string): string =>
    `status.podIPs[${i}].ip: non-standard IP address "${address}" will be considered invalid in a future Kubernetes release: use "${use}"`;
  assert.deepEqual(
    warningsOnUpdate?.({ status: { podIPs: ips.map((ip) => ({ ip })), hostIPs: [{ ip: '::FFFF:1.2.3.4' }] } }, {}),
    [
      odd(0, ips[0]!, '1.2.3.4'),
      odd(1, ips[1]!, '1.2.3.4'),
      odd(2, ips[2]!, '10.0.0.1'),
      'status.podIPs[4].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")',
      odd(0, '::FFFF:1.2.3.4', '1.2.3.4').replace('podIPs', 'hostIPs'),
    ],
  );
});
