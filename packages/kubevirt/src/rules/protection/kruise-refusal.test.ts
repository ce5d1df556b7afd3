import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KRUISE_PROTECTION_LABEL, kruiseHookOf } from './kruise-label.ts';
import { isActivePod, isBoundClaim, type KruiseCounts, kruiseRefusal } from './kruise-refusal.ts';

const PREFIX = `forbidden by ResourcesProtectionDeletion for ${KRUISE_PROTECTION_LABEL}=`;
const NONE: KruiseCounts = { activePods: () => 0, boundClaims: () => 0, customResources: () => 0 };
const of = (
  [group, resource]: readonly [string, string],
  value: string | undefined,
  { spec, counts = NONE, metadata = {} }: { spec?: object; counts?: KruiseCounts; metadata?: object } = {},
) =>
  kruiseRefusal(
    kruiseHookOf(group, resource)!,
    {
      metadata: {
        name: 'x',
        ...(value !== undefined && { labels: { [KRUISE_PROTECTION_LABEL]: value } }),
        ...metadata,
      },
      ...(spec && { spec: spec as Record<string, unknown> }),
    },
    counts,
  );

const NAMESPACE = ['', 'namespaces'] as const;
const CRD = ['apiextensions.k8s.io', 'customresourcedefinitions'] as const;
const DEPLOYMENT = ['apps', 'deployments'] as const;
const SERVICE = ['', 'services'] as const;
const INGRESS = ['networking.k8s.io', 'ingresses'] as const;
const KINDS = [
  NAMESPACE,
  CRD,
  DEPLOYMENT,
  ['apps', 'replicasets'],
  ['apps', 'statefulsets'],
  SERVICE,
  INGRESS,
] as const;
const CRD_SPEC = { group: 'e2e.kruise.io', names: { plural: 'cases' } };

test('Always refuses every kind; another value, no label and a deletion under way refuse none', () => {
  for (const kind of KINDS) {
    assert.equal(of(kind, 'Always', { spec: CRD_SPEC }), `${PREFIX}Always`, kind.join('/'));
    for (const value of ['always', 'cascading', 'true', '', undefined])
      assert.equal(of(kind, value, { spec: CRD_SPEC }), undefined, `${kind.join('/')} ${value}`);
    const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    assert.equal(of(kind, 'Always', { metadata }), undefined, kind.join('/'));
  }
});

test('nothing in kube-system is refused, and kube-system itself is not', () => {
  assert.equal(of(SERVICE, 'Always', { metadata: { namespace: 'kube-system' } }), undefined);
  assert.equal(of(NAMESPACE, 'Always', { metadata: { name: 'kube-system' } }), undefined);
  assert.equal(of(SERVICE, 'Always', { metadata: { name: 'kube-system', namespace: 'a' } }), `${PREFIX}Always`);
});

// S-741
test('Cascading counts what is in a namespace: Pods first, then bound claims', () => {
  const asked: string[] = [];
  const counts = (pods: number, claims: number): KruiseCounts => ({
    ...NONE,
    activePods(namespace) {
      asked.push(namespace);
      return pods;
    },
    boundClaims: () => claims,
  });
  assert.equal(of(NAMESPACE, 'Cascading', { counts: counts(2, 1) }), `${PREFIX}Cascading and active pods 2>0`);
  assert.equal(of(NAMESPACE, 'Cascading', { counts: counts(0, 3) }), `${PREFIX}Cascading and "Bound" status pvc 3>0`);
  assert.equal(of(NAMESPACE, 'Cascading', { counts: counts(0, 0) }), undefined);
  assert.deepEqual(asked, ['x', 'x', 'x']);
});

test('Cascading counts the objects of a definition', () => {
  const customResources = (group: string, resource: string): number =>
    group === 'e2e.kruise.io' && resource === 'cases' ? 4 : 0;
  const counts = { ...NONE, customResources };
  assert.equal(of(CRD, 'Cascading', { spec: CRD_SPEC, counts }), `${PREFIX}Cascading and active CRs 4>0`);
  assert.equal(of(CRD, 'Cascading', { spec: CRD_SPEC }), undefined);
});

test('Cascading looks at the replicas that a workload asks for, and means nothing to a Service or an Ingress', () => {
  assert.equal(of(DEPLOYMENT, 'Cascading', { spec: { replicas: 2 } }), `${PREFIX}Cascading and replicas 2>0`);
  for (const spec of [{ replicas: 0 }, {}]) assert.equal(of(DEPLOYMENT, 'Cascading', { spec }), undefined);
  for (const kind of [SERVICE, INGRESS]) assert.equal(of(kind, 'Cascading', { spec: { replicas: 2 } }), undefined);
});

test('the webhooks have the names of OpenKruise; other kinds have none', () => {
  assert.deepEqual(
    KINDS.map(([group, resource]) => kruiseHookOf(group, resource)?.name),
    [
      'vnamespace.kb.io',
      'vcustomresourcedefinition.kb.io',
      'vbuiltindeployment.kb.io',
      'vbuiltinreplicaset.kb.io',
      'vbuiltinstatefulset.kb.io',
      'vservice.kb.io',
      'vingress.kb.io',
    ],
  );
  for (const [group, resource] of [
    ['', 'pods'],
    ['apps', 'daemonsets'],
    ['extensions', 'deployments'],
  ] as const)
    assert.equal(kruiseHookOf(group, resource), undefined);
});

test('Pods count until they have ended, claims while they are bound, neither while they are deleted', () => {
  const metadata = { name: 'x' };
  const deleted = { name: 'x', deletionTimestamp: '2026-01-01T00:00:00Z' };
  for (const phase of ['Pending', 'Running', 'Unknown']) assert.ok(isActivePod({ metadata, status: { phase } }));
  assert.ok(isActivePod({ metadata }));
  for (const phase of ['Succeeded', 'Failed']) assert.ok(!isActivePod({ metadata, status: { phase } }));
  assert.ok(!isActivePod({ metadata: deleted, status: { phase: 'Running' } }));
  assert.ok(isBoundClaim({ metadata, status: { phase: 'Bound' } }));
  for (const phase of ['Pending', 'Lost']) assert.ok(!isBoundClaim({ metadata, status: { phase } }));
  assert.ok(!isBoundClaim({ metadata: deleted, status: { phase: 'Bound' } }));
});
