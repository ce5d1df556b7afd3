import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReadonlyPod, ResourceQuota } from '@coracle/apimachinery/types/types';
import { AUTO_MEMORY_RATIO_LABEL, namespaceLimits, namespaceLimitsOf } from './namespace-limits.ts';

const quota = (...resources: string[]): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'q', namespace: 'n' },
  spec: { hard: Object.fromEntries(resources.map((name) => [name, '1'])) },
});
const selector = { matchLabels: { limited: 'yes' } };

const CASES: readonly (readonly [string, Parameters<typeof namespaceLimits>[0], boolean, number | undefined])[] = [
  ['nothing', { selector: undefined, labels: {}, quotas: [quota('requests.memory', 'pods')] }, false, undefined],
  ['a quota of processors', { selector: undefined, labels: {}, quotas: [quota('limits.cpu')] }, true, undefined],
  ['the selector of the cluster', { selector, labels: { limited: 'yes' }, quotas: [] }, true, undefined],
  ['a selector of others', { selector, labels: {}, quotas: [] }, false, undefined],
  ['a quota of memory', { selector: undefined, labels: {}, quotas: [quota('pods'), quota('limits.memory')] }, false, 2],
  [
    'its own ratio',
    { selector: undefined, labels: { [AUTO_MEMORY_RATIO_LABEL]: '1.5' }, quotas: [quota('limits.memory')] },
    false,
    1.5,
  ],
  [
    'a ratio below one',
    { selector: undefined, labels: { [AUTO_MEMORY_RATIO_LABEL]: '0.5' }, quotas: [quota('limits.memory')] },
    false,
    2,
  ],
  [
    'a ratio without a quota',
    { selector: undefined, labels: { [AUTO_MEMORY_RATIO_LABEL]: '3' }, quotas: [] },
    false,
    undefined,
  ],
];
for (const [name, facts, limitsCpu, memoryLimitRatio] of CASES) {
  // S-1542: In a namespace whose quota counts limits, a guest that names none gets them: a processor for each vCPU, and
  //   twice the memory that its Pod asks for (label `alpha.kubevirt.io/auto-memory-limits-ratio` says otherwise).
  test(`namespaceLimits(): ${name}`, () => {
    assert.deepEqual(namespaceLimits(facts), { limitsCpu, memoryLimitRatio });
  });
}

test('namespaceLimitsOf() is what a launcher Pod was given', () => {
  const pod = (resources: object) =>
    ({ spec: { containers: [{ name: 'compute', resources }] } }) as unknown as ReadonlyPod;
  assert.deepEqual(namespaceLimitsOf(pod({ requests: { memory: '1Gi' }, limits: { memory: '3Gi', cpu: '1' } })), {
    limitsCpu: true,
    memoryLimitRatio: 3,
  });
  assert.deepEqual(namespaceLimitsOf(pod({ requests: { memory: '1Gi' } })), {
    limitsCpu: false,
    memoryLimitRatio: undefined,
  });
});
