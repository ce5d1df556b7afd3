import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod } from '../../../../apimachinery/src/types/types.ts';
import { isDeletedForSilence } from './silent-deletion.ts';

const pod = (more: { grace?: number; reason?: string; status?: string; marked?: boolean } = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      ...((more.marked ?? true) && { deletionTimestamp: 't', deletionGracePeriodSeconds: more.grace ?? 210 }),
    },
    spec: {
      containers: [],
      terminationGracePeriodSeconds: 210,
      tolerations: [{ key: 'mine', operator: 'Exists' }],
    },
    status: {
      conditions: [
        {
          type: 'DisruptionTarget',
          status: more.status ?? 'True',
          reason: more.reason ?? 'DeletionByTaintManager',
        },
      ],
    },
  }) as unknown as Pod;
const node = (...keys: string[]): Node =>
  ({
    metadata: { name: 'n' },
    spec: { taints: keys.map((key) => ({ key, effect: 'NoExecute' })) },
  }) as unknown as Node;

// S-497: A node that comes back keeps the guests that were marked for deletion for its silence, or hands them over; it
//   ends none of them by itself.
test('only a mark of the taint manager for the silence of the node keeps a guest', () => {
  const cases: readonly [string, Pod, Node | undefined, boolean][] = [
    ['not marked', pod({ marked: false }), node(), false],
    ['marked by the taint manager', pod(), node(), true],
    ['the node is not known', pod(), undefined, true],
    ['the taints of silence are still there', pod(), node('node.kubernetes.io/unreachable'), true],
    ['a taint of somebody', pod(), node('node.kubernetes.io/not-ready', 'maintenance'), false],
    ['a taint that it tolerates', pod(), node('mine'), true],
    ['evicted through the API', pod({ reason: 'EvictionByEvictionAPI' }), node(), false],
    ['taken back', pod({ status: 'False' }), node(), false],
    ['deleted by somebody with less time since', pod({ grace: 1 }), node(), false],
  ];
  for (const [what, one, at, kept] of cases) assert.equal(isDeletedForSilence(one, at), kept, what);
});
