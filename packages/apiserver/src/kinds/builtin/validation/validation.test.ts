import assert from 'node:assert/strict';
import { test } from 'node:test';
import { invalid } from '../../../../../apimachinery/src/meta/status.ts';
import { builtinStrategy, validationErrors } from '../strategies/strategy.fixture.ts';

type Json = Record<string, unknown>;

const ANTI = 'spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution';
const pod = (spec: Json = {}): Json => ({ spec: { containers: [{ name: 'a', image: 'i' }], ...spec } });
const container = (fields: Json): Json => pod({ containers: [{ name: 'a', image: 'i', ...fields }] });

// S-262
// Compat Types, P1, yes: rules of a Pod's status; gates and ephemeral containers of new Pods
test('the status of a Pod is validated by what it was', () => {
  const was = { ...pod(), status: { qosClass: 'BestEffort', podIPs: [{ ip: 'old' }] } };
  const validateOne = (status: Json): string[] =>
    validationErrors('v1', 'pods', { ...was, status: { ...was.status, ...status } }, was);
  const cases: [Json, string[]][] = [
    [{}, []],
    [{ qosClass: 'Guaranteed' }, ['status.qosClass: Invalid value: "Guaranteed": field is immutable']],
    [
      { podIPs: [{ ip: 'old' }, { ip: 'x' }] },
      [
        'status.podIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'status.podIPs: Invalid value: [{"ip":"old"},{"ip":"x"}]: may specify no more than one IP for each IP family',
      ],
    ],
    [{ podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] }, []],
    [{ conditions: [{ type: 'Ready' }, { type: 'example.com/fine' }], nominatedNodeName: 'node-1' }, []],
  ];
  for (const [status, expected] of cases) assert.deepEqual(validateOne(status), expected);
  assert.match(
    validateOne({ nominatedNodeName: 'A_b' })[0]!,
    /^status\.nominatedNodeName: Invalid value: "A_b": a lowercase/,
  );
  assert.match(
    validateOne({ conditions: [{ type: 'a b' }] })[0]!,
    /^metadata\.conditions\[0\]\.Condition: Invalid value: "a b"/,
  );
});

// S-262
test('a new Pod has no gates it was let through, and no ephemeral containers', () => {
  const gates = (...names: string[]): Json[] => names.map((name) => ({ name }));
  assert.deepEqual(validationErrors('v1', 'pods', pod({ schedulingGates: gates('x', 'x'), nodeName: 'n' })), [
    'spec.schedulingGates[1]: Duplicate value: "x"',
    'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
  ]);
  assert.match(
    validationErrors('v1', 'pods', pod({ schedulingGates: gates('a b') }))[0]!,
    /^spec\.schedulingGates\[0\]: Invalid value/,
  );
  assert.deepEqual(validationErrors('v1', 'pods', pod({ ephemeralContainers: [{ name: 'e', image: 'i' }] })), [
    'spec.ephemeralContainers: Forbidden: cannot be set on create',
  ]);
  const stored = { metadata: { resourceVersion: '1' }, ...pod({ ephemeralContainers: [{ name: 'e', image: 'i' }] }) };
  assert.deepEqual(validationErrors('v1', 'pods', stored), [], 'validated through its subresource');
});

// S-003
test('Pods say what is wrong in upstream words', () => {
  const cases: [Json, string[]][] = [
    [pod(), []],
    [pod({ containers: [] }), ['spec.containers: Required value']],
    [{}, ['spec.containers: Required value']],
    [
      pod({ containers: [{}] }),
      ['spec.containers[0].name: Required value', 'spec.containers[0].image: Required value'],
    ],
    [
      pod({
        containers: [
          { name: 'a', image: 'i' },
          { name: 'a', image: 'i' },
        ],
      }),
      ['spec.containers[1].name: Duplicate value: "a"'],
    ],
    [
      pod({
        affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: '' }] } },
        topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'a', whenUnsatisfiable: 'Maybe' }],
      }),
      [
        `${ANTI}[0].topologyKey: Required value: can not be empty`,
        `${ANTI}[0].topologyKey: Invalid value: "": name part must be non-empty`,
        `${ANTI}[0].topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
        'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
        'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"',
      ],
    ],
    [
      pod({ restartPolicy: 'Maybe' }),
      ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
    ],
    [
      container({ ports: [{ containerPort: 70000 }] }),
      ['spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive'],
    ],
    [
      container({ resources: { limits: { cpu: '1' }, requests: { cpu: '2' } } }),
      ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ],
    [
      container({ resources: { limits: { memory: 'lots' } } }),
      [
        'spec.containers[0].resources.limits[memory]: Invalid value: "lots": quantities must match the regular expression \'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$\'',
      ],
    ],
  ];
  for (const [object, expected] of cases) assert.deepEqual(validationErrors('v1', 'pods', object), expected);
});

test('a Pod update may change only its few mutable fields', () => {
  const start = 'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,';
  const toleration = { key: 'k', operator: 'Exists', effect: 'NoExecute' };
  const allowed: [Json, Json][] = [
    [pod(), container({ image: 'new' })],
    [pod({ initContainers: [{ name: 'i', image: 'a' }] }), pod({ initContainers: [{ name: 'i', image: 'b' }] })],
    [pod(), pod({ activeDeadlineSeconds: 5 })],
    [pod(), pod({ tolerations: [toleration] })],
    [pod({ tolerations: [toleration] }), pod({ tolerations: [{ ...toleration, tolerationSeconds: 5 }] })],
    [pod({ schedulingGates: [{ name: 'g' }] }), pod({ schedulingGates: [], nodeSelector: { a: 'b' } })],
  ];
  for (const [old, now] of allowed) assert.deepEqual(validationErrors('v1', 'pods', now, old), [], JSON.stringify(now));
  const refused: Json[] = [
    container({ command: ['x'] }),
    pod({
      containers: [
        { name: 'a', image: 'i' },
        { name: 'b', image: 'i' },
      ],
    }),
    pod({ hostNetwork: true }),
    // Only a Binding puts a Pod on a node.
    pod({ nodeName: 'n' }),
  ];
  for (const now of refused) {
    const [error, ...more] = validationErrors('v1', 'pods', now, pod());
    assert.ok(error?.startsWith(start), String(error));
    assert.deepEqual(more, []);
  }
  assert.deepEqual(validationErrors('v1', 'pods', pod({ nodeName: 'b' }), pod({ nodeName: 'a' })).length, 1);
  assert.deepEqual(validationErrors('v1', 'pods', pod(), pod({ tolerations: [toleration] })), [
    'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
  ]);
});

test('the other kinds', () => {
  const service = (spec: Json): Json => ({
    spec: { type: 'ClusterIP', ports: [{ port: 80, protocol: 'TCP' }], ...spec },
  });
  const bindingOf = (kind: string, ...subjects: object[]) => ({
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: 'r' },
    subjects,
  });
  const binding = (name: string): Json => ({ roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name } });
  const cases: [string, string, Json, Json | undefined, string[]][] = [
    [
      'v1',
      'configmaps',
      { data: { 'a b': '' } },
      undefined,
      [
        "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      ],
    ],
    [
      'v1',
      'configmaps',
      { immutable: true, data: { a: '2' } },
      { immutable: true, data: { a: '1' } },
      ['data: Forbidden: field is immutable when `immutable` is set'],
    ],
    [
      'v1',
      'configmaps',
      { data: {} },
      { immutable: true },
      ['immutable: Forbidden: field is immutable when `immutable` is set'],
    ],
    [
      'v1',
      'configmaps',
      { data: { a: 'x'.repeat(1_048_577) } },
      undefined,
      ['[]: Too long: may not be more than 1048576 bytes'],
    ],
    [
      'v1',
      'secrets',
      { type: 'kubernetes.io/tls', data: { 'tls.crt': '' } },
      undefined,
      ['data[tls.key]: Required value'],
    ],
    ['v1', 'secrets', { type: 'b' }, { type: 'a' }, ['type: Invalid value: "b": field is immutable']],
    ['v1', 'services', service({ ports: [] }), undefined, ['spec.ports: Required value']],
    ['v1', 'services', service({ ports: [], clusterIP: 'None' }), undefined, []],
    [
      'v1',
      'services',
      service({ clusterIP: '10.0.0.2' }),
      service({ clusterIP: '10.0.0.1' }),
      ['spec.clusterIPs[0]: Invalid value: "10.0.0.2": may not change once set'],
    ],
    [
      'v1',
      'services',
      service({ type: 'X' }),
      undefined,
      ['spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'],
    ],
    [
      'v1',
      'events',
      { metadata: { namespace: 'a' }, involvedObject: { namespace: 'b' } },
      undefined,
      ['involvedObject.namespace: Invalid value: "b": does not match event.namespace'],
    ],
    [
      'v1',
      'persistentvolumeclaims',
      { spec: {} },
      undefined,
      [
        'spec.accessModes: Required value: at least 1 access mode is required',
        'spec.resources[storage]: Required value',
      ],
    ],
    [
      'rbac.authorization.k8s.io/v1',
      'rolebindings',
      binding('b'),
      binding('a'),
      [
        'roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"b"}: cannot change roleRef',
      ],
    ],
    // The account of a RoleBinding is one of its own namespace when it names none; a name has to be one.
    [
      'rbac.authorization.k8s.io/v1',
      'rolebindings',
      bindingOf('Role', { kind: 'ServiceAccount', name: 'sa' }),
      undefined,
      [],
    ],
    [
      'rbac.authorization.k8s.io/v1',
      'clusterrolebindings',
      bindingOf('ClusterRole', { kind: 'ServiceAccount', name: 'sa' }),
      undefined,
      ['subjects[0].namespace: Required value'],
    ],
    [
      'rbac.authorization.k8s.io/v1',
      'rolebindings',
      bindingOf('Role', { kind: 'ServiceAccount', name: 'S', namespace: 'ns' }),
      undefined,
      [
        "subjects[0].name: Invalid value: \"S\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      'rbac.authorization.k8s.io/v1',
      'roles',
      { rules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] },
      undefined,
      ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ],
    [
      'coordination.k8s.io/v1',
      'leases',
      { spec: { leaseDurationSeconds: 0 } },
      undefined,
      ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'],
    ],
    [
      'scheduling.k8s.io/v1',
      'priorityclasses',
      { metadata: { name: 'x' }, value: 2 },
      { value: 1 },
      ['value: Forbidden: may not be changed in an update.'],
    ],
    [
      'scheduling.k8s.io/v1',
      'priorityclasses',
      { metadata: { name: 'system-node-critical' }, value: 2_000_001_000 },
      undefined,
      [],
    ],
    [
      'scheduling.k8s.io/v1',
      'priorityclasses',
      { metadata: { name: 'system-mine' }, value: 1 },
      undefined,
      ["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only"],
    ],
  ];
  for (const [apiVersion, resource, object, old, expected] of cases) {
    assert.deepEqual(validationErrors(apiVersion, resource, object, old), expected, resource);
  }
});

// S-003
// Compat Status, P0, yes: the shape, `details.kind` by reason, `Retry-After`
test('errors render into the Status that clients match', () => {
  const { validate } = builtinStrategy('v1', 'pods');
  const error = invalid({ group: '', kind: 'Pod' }, 'p', validate!(pod({ containers: [] })));
  assert.equal(error.message, 'Pod "p" is invalid: spec.containers: Required value');
});
