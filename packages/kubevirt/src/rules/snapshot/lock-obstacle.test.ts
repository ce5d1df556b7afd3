import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { type LockFacts, lockObstacle } from './lock-obstacle.ts';

const bound = partly<PersistentVolumeClaim>({ metadata: { name: 'c' }, status: { phase: 'Bound' } });
const vm = (status: object = {}): VirtualMachine => partly({ metadata: { name: 'a', namespace: 'n' }, status });

describe('lockObstacle()', () => {
  const cases: [name: string, facts: Partial<LockFacts>, expected: string | undefined][] = [
    ['nothing', {}, undefined],
    ['a claim that is not there', { claims: new Map([['c', undefined]]) }, 'source n/a volume doesnt exist: c'],
    [
      'a claim on its way out',
      { claims: new Map([['c', { ...bound, metadata: { name: 'c', deletionTimestamp: 'x' } }]]) },
      'source n/a volume is being deleted: c',
    ],
    ['a claim that waits', { claims: new Map([['c', { ...bound, status: {} }]]) }, 'source n/a volume not bound: c'],
    ['a claim that is being filled', { unpopulated: new Set(['c']) }, 'source n/a volume not populated: c'],
    ['a Pod of a machine that is off', { pods: 1 }, 'source is offline but 1 pods using PVCs [c]'],
    ['the Pod of a machine that runs', { pods: 1, online: true }, undefined],
    ['another snapshot', { vm: vm({ snapshotInProgress: 'other' }) }, 'snapshot "other" in progress'],
    ['this snapshot', { vm: vm({ snapshotInProgress: 's' }) }, undefined],
    ['a restore', { vm: vm({ restoreInProgress: 'r' }) }, 'restore "r" in progress'],
  ];
  for (const [name, facts, expected] of cases)
    it(name, () => {
      const all = {
        vm: vm(),
        snapshotName: 's',
        online: false,
        claims: new Map([['c', bound]]),
        unpopulated: new Set<string>(),
        pods: 0,
      };
      assert.equal(lockObstacle({ ...all, ...facts }), expected);
    });
});
