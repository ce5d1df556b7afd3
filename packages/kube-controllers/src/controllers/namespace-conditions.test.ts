import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namespaceConditions } from './namespace-conditions.ts';
import type { NamespaceContent } from './namespace-content.ts';

const NOW = Date.UTC(2030, 0, 2);
const BEFORE = '2030-01-01T00:00:00Z';
const nothing: NamespaceContent = { remaining: new Map(), finalizers: new Map(), failures: [], waitsForPods: false };
const shown = (
  content: Partial<NamespaceContent>,
  failures: { groupVersion: string; error: string }[] = [],
): string[] =>
  namespaceConditions([], { ...nothing, ...content }, { failures, now: NOW })
    .filter(({ status }) => status === 'True')
    .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

test('namespaceConditions(): what is wrong, in upstream’s words, sorted', () => {
  const remaining = new Map([
    ['virtualmachines.kubevirt.io', 2],
    ['configmaps.', 1],
  ]);
  const finalizers = new Map([
    ['b', 1],
    ['a', 2],
  ]);
  const cases: [Parameters<typeof shown>, string[]][] = [
    [[{}], []],
    [
      [{ remaining, finalizers }],
      [
        'NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, virtualmachines.kubevirt.io has 2 resource instances',
        'NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: a in 2 resource instances, b in 1 resource instances',
      ],
    ],
    [[{ remaining: new Map([['pods.', 1]]), finalizers, waitsForPods: true }], []],
    [
      [{ failures: ['two', 'one'] }],
      [
        'NamespaceDeletionContentFailure ContentDeletionFailed: Failed to delete all resource types, 2 remaining: one, two',
      ],
    ],
    [
      [{}, [{ groupVersion: 'metrics.k8s.io/v1beta1', error: 'no answer' }]],
      [
        'NamespaceDeletionDiscoveryFailure DiscoveryFailed: Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1',
      ],
    ],
  ];
  for (const [given, wanted] of cases) assert.deepEqual(shown(...given), wanted);
});

test('namespaceConditions(): each keeps its place, and its time as long as its status is the same', () => {
  const held = [
    {
      type: 'NamespaceContentRemaining',
      status: 'True' as const,
      lastTransitionTime: BEFORE,
      reason: 'r',
      message: 'm',
    },
    { type: 'Mine', status: 'True' as const, lastTransitionTime: BEFORE },
    { type: 'NamespaceFinalizersRemaining', status: 'True' as const, lastTransitionTime: BEFORE },
  ];
  const after = namespaceConditions(
    held,
    { ...nothing, remaining: new Map([['secrets.', 1]]) },
    { failures: [], now: NOW },
  );
  assert.deepEqual(
    after.slice(0, 3).map(({ type, status, lastTransitionTime }) => `${type}=${status} ${lastTransitionTime}`),
    [
      `NamespaceContentRemaining=True ${BEFORE}`,
      `Mine=True ${BEFORE}`,
      'NamespaceFinalizersRemaining=False 2030-01-02T00:00:00Z',
    ],
  );
  assert.equal(after.length, 6);
});
