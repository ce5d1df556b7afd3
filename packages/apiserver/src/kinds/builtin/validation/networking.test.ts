import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

type Json = Record<string, unknown>;

const errors = (resource: string, object: Json, old?: Json): string[] =>
  validationErrors('networking.k8s.io/v1', resource, object, old);

// S-262
test('network policies', () => {
  const port = (fields: Json): Json => ({ spec: { podSelector: {}, egress: [{ ports: [fields] }] } });
  const peer = (fields: Json): Json => ({ spec: { podSelector: {}, ingress: [{ from: [fields] }] } });
  const [p, q] = ['spec.egress[0].ports[0]', 'spec.ingress[0].from[0]'];
  const cases: [Json, string[]][] = [
    [port({ protocol: 'TCP', port: 80, endPort: 90 }), []],
    [port({ port: 'web' }), []],
    [port({ port: 80, endPort: 79 }), [`${p}.endPort: Invalid value: 79: must be greater than or equal to \`port\``]],
    [
      port({ port: 'web', endPort: 79 }),
      [`${p}.endPort: Invalid value: 79: may not be specified when \`port\` is non-numeric`],
    ],
    [port({ endPort: 79 }), [`${p}.endPort: Invalid value: 79: may not be specified when \`port\` is not specified`]],
    [port({ port: 0 }), [`${p}.port: Invalid value: 0: must be between 1 and 65535, inclusive`]],
    [
      port({ port: 'a-name-that-is-too-long' }),
      [`${p}.port: Invalid value: "a-name-that-is-too-long": must be no more than 15 characters`],
    ],
    [port({ protocol: 'IP' }), [`${p}.protocol: Unsupported value: "IP": supported values: "SCTP", "TCP", "UDP"`]],
    [peer({ podSelector: {}, namespaceSelector: {} }), []],
    [peer({}), [`${q}: Required value: must specify a peer`]],
    [
      peer({ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }),
      [`${q}: Forbidden: may not specify both ipBlock and another peer`],
    ],
    [
      peer({ ipBlock: { cidr: '010.0.0.0/8', except: ['10.0.0.1/24'] } }),
      [
        `${q}.ipBlock.cidr: Invalid value: "010.0.0.0/8": must not have leading 0s in IP or prefix length`,
        `${q}.ipBlock.except[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length`,
      ],
    ],
    [
      peer({ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.0.0.0/8', '11.0.0.0/16'] } }),
      [
        `${q}.ipBlock.except[1]: Invalid value: "10.0.0.0/8": must be a strict subset of \`cidr\``,
        `${q}.ipBlock.except[2]: Invalid value: "11.0.0.0/16": must be a strict subset of \`cidr\``,
      ],
    ],
    [
      peer({ ipBlock: { cidr: '10.0.0.0', except: [] } }),
      [`${q}.ipBlock.cidr: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`],
    ],
    [
      { spec: { podSelector: {}, policyTypes: ['Both'] } },
      ['spec.policyTypes[0]: Unsupported value: "Both": supported values: "Egress", "Ingress"'],
    ],
  ];
  for (const [object, wanted] of cases) assert.deepEqual(errors('networkpolicies', object), wanted);
  const lax = peer({ ipBlock: { cidr: '10.0.0.1/24' } });
  assert.deepEqual(errors('networkpolicies', lax, lax), [], 'what stood there before may stay');
});

// S-262
// Compat Types, P1, yes: rules of networking.k8s.io: NetworkPolicy, IPAddress, ServiceCIDR
test('addresses and ranges', () => {
  const parent = { resource: 'services', name: 's', namespace: 'n' };
  const address = (name: string, parentRef?: Json): Json => ({ metadata: { name }, spec: { parentRef } });
  const range = (...cidrs: string[]): Json => ({ spec: { cidrs } });
  const cases: [string, Json, Json | undefined, string[]][] = [
    ['ipaddresses', address('10.0.0.1', parent), undefined, []],
    ['ipaddresses', address('10.0.0.1'), undefined, ['spec.parentRef: Required value']],
    [
      'ipaddresses',
      address('ten', { ...parent, resource: '' }),
      undefined,
      [
        'metadata.name: Invalid value: "ten": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'spec.parentRef.resource: Required value',
      ],
    ],
    ['ipaddresses', address('2001:db8::1', parent), undefined, []],
    [
      'ipaddresses',
      address('2001:DB8::1', parent),
      undefined,
      ['metadata.name: Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")'],
    ],
    [
      'ipaddresses',
      address('010.0.0.1', parent),
      undefined,
      ['metadata.name: Invalid value: "010.0.0.1": must not have leading 0s'],
    ],
    [
      'ipaddresses',
      address('::ffff:10.0.0.1', parent),
      undefined,
      ['metadata.name: Invalid value: "::ffff:10.0.0.1": must not be an IPv4-mapped IPv6 address'],
    ],
    ...(
      [
        ['10.1.0.1/24', 'must not have bits set beyond the prefix length'],
        ['10.1.0.0/024', 'must not have leading 0s in IP or prefix length'],
        ['2001:DB8::/64', 'must be in canonical form ("2001:db8::/64")'],
        ['::ffff:10.1.0.0/120', 'must not have an IPv4-mapped IPv6 address'],
        ['10.1.0.0/33', 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
      ] as const
    ).map(([text, fault]): (typeof cases)[number] => [
      'servicecidrs',
      range(text),
      undefined,
      [`spec.cidrs[0]: Invalid value: "${text}": ${fault}`],
    ]),
    ['servicecidrs', range('10.1.0.0/24', '2001:db8::/64'), range('10.1.0.0/24'), []],
    ['servicecidrs', range(), undefined, ['spec.cidrs: Required value: at least one CIDR required']],
    [
      'servicecidrs',
      range('10.1.0.0/24', '10.2.0.0/24'),
      undefined,
      [
        'spec.cidrs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
      ],
    ],
    [
      'servicecidrs',
      range('10.2.0.0/24'),
      range('10.1.0.0/24'),
      ['spec.cidrs[0]: Invalid value: "10.2.0.0/24": field is immutable'],
    ],
  ];
  for (const [resource, object, old, wanted] of cases)
    assert.deepEqual(errors(resource, object, old), wanted, resource);
});
