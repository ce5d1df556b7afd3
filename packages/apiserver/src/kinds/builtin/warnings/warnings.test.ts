import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource } from '../builtin-resources.ts';
import { builtinStrategy } from '../strategies/strategy.fixture.ts';

type Json = Readonly<Record<string, unknown>>;

const metadata = { name: 'a' };
const container = { name: 'c', image: 'i' };
const pod = (spec: Json, more: Json = {}): Json => ({
  metadata: { ...metadata, ...more },
  spec: { containers: [container], ...spec },
});
const withContainer = (more: Json): Json => pod({ containers: [{ ...container, ...more }] });
const term = (key: string) => ({ matchExpressions: [{ key, operator: 'Exists' }] });

const PODS: readonly (readonly [name: string, pod: Json, ...wanted: string[]])[] = [
  ['nothing odd', pod({})],
  [
    'a name that is no host name',
    pod({}, { name: 'a.b' }),
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
  ],
  [
    'labels of old',
    pod({ nodeSelector: { 'beta.kubernetes.io/os': 'linux' } }),
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
  ],
  [
    'labels of old in an affinity',
    pod({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [term('failure-domain.beta.kubernetes.io/zone')],
          },
        },
      },
    }),
    'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  ],
  [
    'selectors that select nothing',
    pod({
      topologySpreadConstraints: [{ topologyKey: 'k' }],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'k' }],
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: 'k' } }],
        },
      },
    }),
    'spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod',
    'spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod',
    'spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod',
  ],
  [
    'annotations that became fields',
    pod(
      {},
      {
        annotations: {
          'scheduler.alpha.kubernetes.io/critical-pod': '',
          'container.seccomp.security.alpha.kubernetes.io/c': 'x',
          'container.apparmor.security.beta.kubernetes.io/c': 'x',
        },
      },
    ),
    'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead',
    'metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "seccompProfile" field instead',
  ],
  [
    'volumes that nobody mounts any more',
    pod({
      volumes: [
        { name: 'a', gitRepo: { repository: 'r' } },
        { name: 'b', rbd: {} },
        { name: 'c', storageos: {} },
      ],
    }),
    'spec.volumes[0].gitRepo: deprecated in v1.11',
    'spec.volumes[1].rbd: deprecated in v1.28, non-functional in v1.31+',
    'spec.volumes[2].storageOS: deprecated in v1.22, non-functional in v1.25+',
  ],
  [
    'files over files',
    pod({
      volumes: [
        { name: 'v', configMap: { name: 'm', items: [{ path: 'a' }, { path: 'b' }, { path: 'a/' }] } },
        { name: 'w', secret: { secretName: 's', items: [{ path: 'x' }, { path: 'x/y' }] } },
      ],
    }),
    'volume "v" (ConfigMap "m"): overlapping paths: "a" with "a"',
    'volume "w" (Secret "s"): overlapping paths: "x/y" with "x"',
  ],
  [
    'files of several sources',
    pod({
      volumes: [
        {
          name: 'p',
          projected: {
            sources: [
              {},
              { serviceAccountToken: { path: 'token' } },
              { secret: { name: 's', items: [{ path: 'token' }] } },
            ],
          },
        },
      ],
    }),
    'volume "p" (Projected) has no sources provided',
    'volume "p" (Projected Secret "s"): overlapping paths: "token" with "token"',
  ],
  [
    'lists that say a thing twice or nothing',
    pod({ hostAliases: [{ ip: '1.1.1.1' }, { ip: '1.1.1.1' }], imagePullSecrets: [{ name: 's' }, { name: 's' }, {}] }),
    'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
    'spec.imagePullSecrets[1].name: duplicate name "s"',
    'spec.imagePullSecrets[2].name: invalid empty name ""',
  ],
  [
    'a part of a byte',
    withContainer({ resources: { limits: { memory: '1500m' }, requests: { 'ephemeral-storage': '0.5' } } }),
    'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
    'spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value "500m" is invalid, must be an integer',
  ],
  [
    'a variable that hides one',
    withContainer({
      env: [
        { name: 'A', value: '1' },
        { name: 'A', value: '$(A)2' },
        { name: 'A', value: '3' },
      ],
    }),
    'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply',
  ],
  [
    'ports that meet',
    pod({
      containers: [
        { ...container, ports: [{ containerPort: 80, protocol: 'TCP' }] },
        {
          ...container,
          ports: [
            { containerPort: 80, protocol: 'TCP' },
            { containerPort: 80, protocol: 'TCP', hostPort: 8 },
          ],
        },
      ],
    }),
    'spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]',
    'spec.containers[1].ports[1]: overlapping port definition with spec.containers[0].ports[0]',
    'spec.containers[1].ports[1]: overlapping port definition with spec.containers[1].ports[0]',
  ],
  [
    'no time to end',
    pod({ terminationGracePeriodSeconds: -1 }),
    'spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
  ],
];

for (const [name, object, ...wanted] of PODS) {
  // S-261: What is valid but odd is warned about as upstream warns, on create and update.
  // Compat Writing, P1, yes: warnings of upstream's strategies, on create and update, for Pods, volumes and eight other
  //   kinds
  test(`warnings of a Pod: ${name}`, () => {
    assert.deepEqual(builtinStrategy('v1', 'pods').warningsOnCreate!(object), wanted);
  });
}

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
  // S-261
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

test('of very many ports and files only the first are compared', () => {
  const many = <T>(item: (i: number) => T): T[] => Array.from({ length: 50_000 }, (_, i) => item(i));
  const big = pod({
    containers: [{ ...container, ports: many(() => ({ containerPort: 80, protocol: 'TCP' })) }],
    volumes: [{ name: 'v', configMap: { name: 'm', items: many((i) => ({ path: `p${i}` })) } }],
  });
  assert.ok(builtinStrategy('v1', 'pods').warningsOnCreate!(big).length < 11_000);
});

test('of very many containers and variables each is reported', () => {
  const many = <T>(item: (i: number) => T): T[] => Array.from({ length: 2000 }, (_, i) => item(i));
  const amounts = { limits: { memory: '1m' } };
  const big = pod({
    containers: [
      ...many((i) => ({ ...container, name: `c${i}`, resources: amounts })),
      { ...container, env: many((i) => ({ name: `v${i % 1000}`, value: 'x' })) },
    ],
    volumes: many((i) => ({ name: `v${i}`, gitRepo: {} })),
    hostAliases: many(() => ({ ip: '1.1.1.1' })),
  });
  assert.equal(builtinStrategy('v1', 'pods').warningsOnCreate!(big).length, 6999);
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
