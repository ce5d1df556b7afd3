import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

/** Errors of a Pod as `field: message`. */
function errors(spec: object, container: object = {}): string[] {
  const pod = { spec: { containers: [{ name: 'c', image: 'i', ...container }], ...spec } };
  return validationErrors('v1', 'pods', pod);
}
const sysctls = (...names: string[]): object => ({
  securityContext: { sysctls: names.map((name) => ({ name, value: '1' })) },
});

// S-262: Pods, Services and the kinds of networking, storage, devices and jobs are validated by upstream's rules, in
//   upstream's words.
test('sysctls are names that a kernel could have', () => {
  const at = 'spec.securityContext.sysctls';
  assert.deepEqual(errors(sysctls('kernel.shmmax', 'net/ipv4/ip_forward', 'safe-and-unsafe')), []);
  const rule =
    'must have at most 253 characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
  assert.deepEqual(errors(sysctls('foo-', 'kernel.shmmax', 'bar..', '', 'kernel.shmmax')), [
    `${at}[0].name: Invalid value: "foo-": ${rule}`,
    `${at}[2].name: Invalid value: "bar..": ${rule}`,
    `${at}[3].name: Required value`,
    `${at}[4].name: Duplicate value: "kernel.shmmax"`,
  ]);
});

// Compat Types, P1, yes: rules of Pods: sysctls, names of container resources
// S-262
test('a container asks for resources that exist', () => {
  const asking = (name: string): string[] => errors({}, { resources: { limits: { [name]: '1' }, requests: {} } });
  for (const name of ['cpu', 'ephemeral-storage', 'hugepages-2Mi', 'example.com/gpu'])
    assert.deepEqual(asking(name), []);
  const at = 'spec.containers[0].resources.limits';
  assert.deepEqual(asking('invalid_resource'), [
    `${at}[invalid_resource]: Invalid value: "invalid_resource": must be a standard resource type or fully qualified`,
    `${at}[invalid_resource]: Invalid value: "invalid_resource": must be a standard resource for containers`,
  ]);
});

// Compat Types, P1, yes: rules of Pods: DNS, names, labels, ids, tolerations
test('DNS settings: search paths may hold underscores, the policy None needs a name server', () => {
  const searching = (search: string): string[] => errors({ dnsConfig: { searches: [search] } });
  for (const search of ['_sip._tcp.abc_d.example.com', '.', 'example.com', 'example.com.']) {
    assert.deepEqual(searching(search), []);
  }
  for (const search of ['..', '☃.example.com'])
    assert.match(searching(search).join(), /^spec\.dnsConfig\.searches\[0\]: /);
  assert.deepEqual(errors({ dnsPolicy: 'None' }), [
    'spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None',
  ]);
  assert.deepEqual(errors({ dnsPolicy: 'None', dnsConfig: {} }), [
    'spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None',
  ]);
  assert.deepEqual(errors({ dnsConfig: { nameservers: ['1.1.1.1', 'x'], options: [{}] } }), [
    'spec.dnsConfig.nameservers[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    'spec.dnsConfig.options[0]: Required value: must not be empty',
  ]);
});

test('names, labels and ids of a Pod', () => {
  const ids = 'must be between 0 and 2147483647, inclusive';
  const fields = (spec: object): string[] => errors(spec).map((text) => text.replace(/: a .*/, ''));
  assert.deepEqual(fields({ hostname: 'A_B', subdomain: '.x' }), [
    'spec.hostname: Invalid value: "A_B"',
    'spec.subdomain: Invalid value: ".x"',
  ]);
  assert.equal(errors({ nodeSelector: { 'a b': 'c' } }).length, 1);
  assert.equal(errors({ readinessGates: [{ conditionType: 'a b' }] }).length, 1);
  assert.deepEqual(errors({ securityContext: { runAsUser: -1, supplementalGroups: [-2] } }), [
    `spec.securityContext.runAsUser: Invalid value: -1: ${ids}`,
    `spec.securityContext.supplementalGroups[0]: Invalid value: -2: ${ids}`,
  ]);
  assert.deepEqual(errors({ os: { name: 'x' } }), [
    'spec.os: Unsupported value: "x": supported values: "linux", "windows"',
  ]);
  assert.deepEqual(fields({ hostAliases: [{ ip: 'x', hostnames: ['A_b'] }] }), [
    'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    'spec.hostAliases[0].hostnames[0]: Invalid value: "A_b"',
  ]);
});

// S-1610: What only a container runtime acts on is stored as it comes, for none runs here: of containers their names,
//   images, ports and amounts are validated.
test('a container is validated by its name, image, ports and amounts alone', () => {
  const at = 'spec.containers[0]';
  const found = (container: object): string[] => errors({}, container);
  assert.deepEqual(found({ image: ' i', imagePullPolicy: 'Y' }), [
    `${at}.image: Invalid value: " i": must not have leading or trailing whitespace`,
    `${at}.imagePullPolicy: Unsupported value: "Y": supported values: "Always", "IfNotPresent", "Never"`,
  ]);
  const ports = [
    { containerPort: 80, name: 'web' },
    { containerPort: 81, name: 'web', protocol: 'X' },
  ];
  assert.deepEqual(found({ ports }), [
    `${at}.ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"`,
    `${at}.ports[1].name: Duplicate value: "web"`,
  ]);
  const ofRuntimes = {
    env: [{ name: 'a=b' }],
    lifecycle: { preStop: {} },
    livenessProbe: {},
    volumeMounts: [{ name: 'none', mountPath: '' }],
    securityContext: { privileged: true, allowPrivilegeEscalation: false },
  };
  assert.deepEqual(found(ofRuntimes), []);
});

test('tolerations: how long one lasts, and what its key may be', () => {
  const of = (toleration: object): string[] => errors({ tolerations: [toleration] });
  assert.deepEqual(of({ key: 'k', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 1 }), [
    'spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set',
  ]);
  assert.equal(of({ key: 'a b', operator: 'Exists' }).length, 1);
  assert.equal(of({ key: 'a', value: 'a b' }).length, 1);
});

test('a Pod at its gates: gates go, its nodes get fewer', () => {
  const gated = (more: object) => ({
    metadata: { resourceVersion: '1' },
    spec: { containers: [{ name: 'c', image: 'i' }], schedulingGates: [{ name: 'g' }], ...more },
  });
  const change = (old: object, now: object): string[] => validationErrors('v1', 'pods', gated(now), gated(old));
  const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
  const on = (...nodeSelectorTerms: object[]) => ({
    affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } },
  });
  const a = { key: 'a', operator: 'In', values: ['x'] };
  const b = { key: 'b', operator: 'Exists' };
  const at = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
  assert.deepEqual(change({}, { schedulingGates: [] }), []);
  assert.deepEqual(change({}, { schedulingGates: [{ name: 'g' }, { name: 'h' }] }), [
    "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'",
  ]);
  assert.deepEqual(change({}, { nodeSelector: { a: 'b' } }), []);
  assert.deepEqual(change({ nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'z', c: 'd' } }), [
    'spec.nodeSelector: Invalid value: {"a":"z","c":"d"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
  ]);
  assert.deepEqual(change({}, on({ matchExpressions: [a] })), []);
  const fields = [{ key: 'metadata.name', operator: 'In', values: ['n'] }];
  const narrower = on({ matchExpressions: [a, b], matchFields: fields });
  assert.deepEqual(change(on({ matchExpressions: [a] }), narrower), []);
  assert.deepEqual(change(on({ matchExpressions: [a] }), on({ matchExpressions: [b] })), [
    `${at}[0]: Invalid value: {"matchExpressions":[{"key":"b","operator":"Exists"}]}: only additions are allowed (no mutations or deletions)`,
  ]);
  assert.match(
    change(on({ matchExpressions: [a] }), on({ matchExpressions: [a] }, { matchExpressions: [b] })).join(),
    /nodeSelectorTerms: Invalid value: .*: no additions\/deletions to non-empty NodeSelectorTerms list are allowed$/,
  );
  const apart = { affinity: { podAntiAffinity: { [REQUIRED]: [{ topologyKey: 'k' }] } } };
  assert.match(change({}, apart).join(), /^spec: Forbidden: pod updates may not change fields other than /);
});
