import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../../../apimachinery/src/meta/status.ts';
import { validateService } from './services.ts';

type Json = Record<string, unknown>;

const PORT = { port: 80, protocol: 'TCP', targetPort: 80 };
const service = (spec: Json): Json => ({
  spec: { type: 'ClusterIP', sessionAffinity: 'None', ports: [PORT], ...spec },
});
const errors = (spec: Json, old?: Json): string[] =>
  validateService(service(spec), old && service(old)).map((error) => `${error.field}: ${fieldErrorBody(error)}`);

const LABEL_END = "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const LB_ONLY = "Forbidden: may only be used when `type` is 'LoadBalancer'";

const CASES: readonly [string, Json, readonly string[], Json?][] = [
  ['a plain one', {}, []],
  ['no ports', { ports: [] }, ['spec.ports: Required value']],
  ['a headless one without ports', { ports: [], clusterIP: 'None', clusterIPs: ['None'] }, []],
  ['an external name with a dot at its end', { type: 'ExternalName', externalName: 'a.example.com.', ports: [] }, []],
  ['no external name', { type: 'ExternalName' }, ['spec.externalName: Required value']],
  [
    'an external name with addresses',
    {
      type: 'ExternalName',
      externalName: 'x',
      clusterIPs: ['1.2.3.4'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    },
    ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'].map(
      (field) => `spec.${field}: Forbidden: may not be set for ExternalName services`,
    ),
  ],
  [
    'a kubelet before a balancer',
    { type: 'LoadBalancer', ports: [{ ...PORT, port: 10_250 }] },
    ['spec.ports[0]: Invalid value: 10250: may not expose port 10250 externally since it is used by kubelet'],
  ],
  [
    'no address for a node port',
    { type: 'NodePort', clusterIP: 'None', clusterIPs: ['None'] },
    [`spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`],
  ],
  [
    'ports',
    {
      ports: [
        { ...PORT, port: 0 },
        { ...PORT, name: 'a', protocol: 'X', targetPort: 'much-too-long-a-name' },
        { ...PORT, name: 'a', nodePort: 30_000 },
      ],
    },
    [
      'spec.ports[0].name: Required value',
      'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
      'spec.ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
      'spec.ports[1].targetPort: Invalid value: "much-too-long-a-name": must be no more than 15 characters',
      'spec.ports[2].name: Duplicate value: "a"',
      "spec.ports[2].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ],
  ],
  [
    'a port given twice',
    {
      type: 'NodePort',
      ports: [
        { ...PORT, name: 'a', nodePort: 30_000 },
        { ...PORT, name: 'b', nodePort: 30_000 },
      ],
    },
    ['spec.ports[1].nodePort: Duplicate value: 30000', 'spec.ports[1]: Duplicate value: {"protocol":"TCP","port":80}'],
  ],
  [
    'the affinity',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } },
    [
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than or equal to 86400',
    ],
  ],
  [
    'a time for no affinity',
    { sessionAffinityConfig: { clientIP: {} } },
    ['spec.sessionAffinityConfig: Forbidden: must not be set when session affinity is None'],
  ],
  ['an address that is none', { clusterIP: 'x', clusterIPs: ['x'] }, [`spec.clusterIPs[0]: Invalid value: "x": ${IP}`]],
  [
    'addresses with zeros in front, or that are those of version 4 in disguise',
    { clusterIP: '010.0.0.1', clusterIPs: ['010.0.0.1'], externalIPs: ['1.2.3.04', '::ffff:1.2.3.4'] },
    [
      'spec.clusterIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s',
      'spec.externalIPs[0]: Invalid value: "1.2.3.04": must not have leading 0s',
      'spec.externalIPs[1]: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address',
    ],
  ],
  [
    'networks that mean more than one thing',
    { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.1/24', ' 10.0.0.0/08', '10.1.0.1/16'] },
    [
      'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length',
      'spec.LoadBalancerSourceRanges[1]: Invalid value: "10.0.0.0/08": must not have leading 0s in IP or prefix length',
    ],
    { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.1.0.1/16'] },
  ],
  [
    'two addresses that differ',
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.2'] },
    ['spec.clusterIPs: Invalid value: ["10.0.0.2"]: first value must match `clusterIP`'],
  ],
  [
    'None among others',
    { clusterIP: 'None', clusterIPs: ['None', '10.0.0.1'] },
    [`spec.clusterIPs: Invalid value: ["None","10.0.0.1"]: 'None' must be the first and only value`],
  ],
  [
    'addresses of one family, and of another than said',
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', '10.0.0.2'], ipFamilies: ['IPv6'] },
    [
      'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP family',
      'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
    ],
  ],
  [
    'families',
    { ipFamilies: ['IPv4', 'IPv4', 'X'], ipFamilyPolicy: 'Both' },
    [
      'spec.ipFamilies[1]: Duplicate value: "IPv4"',
      'spec.ipFamilies[2]: Unsupported value: "X": supported values: "IPv4", "IPv6"',
      'spec.ipFamilyPolicy: Unsupported value: "Both": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
    ],
  ],
  [
    'another address',
    { clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2'] },
    ['spec.clusterIPs[0]: Invalid value: "10.0.0.2": may not change once set'],
    { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] },
  ],
  [
    'external addresses',
    { externalIPs: ['x', '0.0.0.0', '127.0.0.1', '169.254.1.1', '224.0.0.5', '::1', '1.2.3.4'] },
    [
      `spec.externalIPs[0]: Invalid value: "x": ${IP}`,
      'spec.externalIPs[1]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
      'spec.externalIPs[2]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
      'spec.externalIPs[3]: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
      'spec.externalIPs[4]: Invalid value: "224.0.0.5": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
      'spec.externalIPs[5]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
    ],
  ],
  [
    'parts of a balancer',
    { loadBalancerSourceRanges: ['x'], allocateLoadBalancerNodePorts: true, loadBalancerClass: 'a' },
    [
      `spec.LoadBalancerSourceRanges: ${LB_ONLY}`,
      'spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      `spec.allocateLoadBalancerNodePorts: ${LB_ONLY}`,
      `spec.loadBalancerClass: ${LB_ONLY}`,
    ],
  ],
  [
    'another class of balancer',
    { type: 'LoadBalancer', loadBalancerClass: 'b' },
    ['spec.loadBalancerClass: Invalid value: "b": may not change once set'],
    { type: 'LoadBalancer', loadBalancerClass: 'a' },
  ],
  [
    'policies of traffic',
    {
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30_000,
      internalTrafficPolicy: 'X',
      trafficDistribution: 'X',
    },
    [
      'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
      "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      'spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local"',
      'spec.trafficDistribution: Unsupported value: "X": supported values: "PreferClose", "PreferSameNode", "PreferSameZone"',
    ],
  ],
  [
    'an external address needs a policy of traffic',
    { externalIPs: ['1.2.3.4'], externalTrafficPolicy: 'Some' },
    ['spec.externalTrafficPolicy: Unsupported value: "Some": supported values: "Cluster", "Local"'],
  ],
];

for (const [name, spec, expected, old] of CASES) {
  // S-262
  // Compat Types, P1, yes: rules of Services
  test(`validateService() validates ${name}`, () => {
    assert.deepEqual(errors(spec, old), expected);
  });
}

// S-262
test('validateService() checks names of ports and labels of the selector', () => {
  const [port, selector] = errors({ ports: [{ ...PORT, name: 'A_' }], selector: { 'a b': 'c' } });
  assert.ok(port!.startsWith('spec.ports[0].name: Invalid value: "A_": ') && port!.endsWith(LABEL_END), String(port));
  assert.match(selector!, /^spec\.selector: Invalid value: "a b": name part must consist of/);
});
