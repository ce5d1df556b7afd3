import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sync, SyncCondition, SyncConditionType } from '../../../../gitops/src/kinds/kinds.ts';
import { statusText } from './status-text.ts';
import { compareStates, sourceText, syncState } from './sync-state.ts';

const COMMIT = '9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c';
const condition = (
  type: SyncConditionType,
  status: 'True' | 'False',
  more: Partial<SyncCondition> = {},
): SyncCondition => ({
  type,
  status,
  ...more,
});
const syncing = (status: 'True' | 'False', more: Partial<SyncCondition> = {}): SyncCondition =>
  condition('Syncing', status, { commit: COMMIT, ...more });
const sync = (conditions: SyncCondition[] | undefined, more: object = {}): Sync => ({
  apiVersion: 'configsync.gke.io/v1beta1',
  kind: 'RootSync',
  metadata: { namespace: 'config-management-system', name: 'root-sync' },
  spec: { git: { repo: 'https://user:secret@git.example/a', dir: '/b/', branch: 'main', auth: 'none' } },
  ...(conditions && {
    status: {
      sync: { commit: COMMIT, lastUpdate: '2025-03-04T10:11:12Z' },
      source: { errors: [{ code: '2004', errorMessage: 'KNV2004: no source\n\nFor more' }] },
      conditions,
      ...more,
    },
  }),
});
const failed = {
  errorSourceRefs: ['status.source.errors' as const],
  errorSummary: { totalCount: 3, truncated: true, errorCountAfterTruncation: 1 },
};

// S-944: `coracle nomos status` derives the state of a sync from its conditions as upstream does, in upstream's layout.
test('syncState() says of each set of conditions what upstream does', () => {
  const rows: [SyncCondition[] | undefined, string, string, number][] = [
    [undefined, 'PENDING', 'N/A', 0],
    [[], 'PENDING', 'N/A', 0],
    [[condition('Stalled', 'True', { message: 'KNV1061: no' }), syncing('False')], 'STALLED', 'N/A', 1],
    [[condition('Reconciling', 'True'), syncing('False')], 'RECONCILING', 'N/A', 0],
    [[condition('Reconciling', 'False'), condition('Stalled', 'False'), syncing('True')], 'PENDING', COMMIT, 0],
    [[syncing('True', failed)], 'PENDING', COMMIT, 3],
    [[syncing('False')], 'SYNCED', COMMIT, 0],
    [[syncing('False', failed)], 'ERROR', COMMIT, 3],
    [[syncing('False'), condition('ReconcilerFinalizing', 'True')], 'RECONCILING', 'N/A', 0],
    [
      [
        syncing('False'),
        condition('ReconcilerFinalizing', 'True'),
        condition('ReconcilerFinalizerFailure', 'True', { errors: [{ code: '2009', errorMessage: 'KNV2009: left' }] }),
      ],
      'ERROR',
      'N/A',
      1,
    ],
  ];
  for (const [conditions, status, commit, count] of rows) {
    const state = syncState(sync(conditions));
    assert.deepEqual(
      [state.status, state.commit, state.totalErrorCount],
      [status, commit, count],
      JSON.stringify(conditions),
    );
  }
});

test('sourceText() names every kind of source, without credentials', () => {
  const of = (spec: object): string => sourceText({ ...sync([]), spec } as Sync);
  const git = { repo: 'https://git.example/a', auth: 'none' };
  assert.equal(sourceText(sync([])), 'https://git.example/a/b@main');
  assert.equal(of({ git }), 'https://git.example/a@master');
  assert.equal(of({ git: { ...git, branch: 'b', revision: 'v1' } }), 'https://git.example/a@v1');
  assert.equal(of({ git: { ...git, branch: 'b', revision: 'HEAD' } }), 'https://git.example/a@b');
  assert.equal(of({ sourceType: 'oci', oci: { image: 'r.example/i:v1', dir: '.' } }), 'r.example/i:v1');
  assert.equal(
    of({ sourceType: 'helm', helm: { repo: 'https://h.example', chart: 'c', version: '1' } }),
    'https://h.example/c:1',
  );
  assert.equal(of({}), 'N/A');
});

// S-944
test('statusText() is upstream’s layout: objects of what is synced, errors of what is not, RootSyncs first', () => {
  const object = { group: 'kubevirt.io', kind: 'VirtualMachine', namespace: 'shop', name: 'db', sourceHash: '9f8e7d6' };
  const overlap = [{ type: 'OwnershipOverlap', status: 'True' }];
  const states = [
    syncState({
      ...sync([syncing('False', failed)]),
      kind: 'RepoSync',
      metadata: { namespace: 'shop', name: 'repo-sync' },
    }),
    syncState(sync([syncing('False')]), [
      { ...object, status: 'InProgress' },
      {
        group: '',
        kind: 'Namespace',
        namespace: '',
        name: 'shop',
        sourceHash: '9f8e7d6',
        status: 'Current',
        conditions: overlap,
      },
    ]),
  ].sort(compareStates);
  const attempts = [
    { at: '2025-03-04T10:11:12Z', commit: COMMIT, result: 'Failed', errors: 2, codes: ['1060', '2009'] } as const,
  ];
  const syncs = states.map((state, at) => ({ ...state, attempts: at === 1 ? attempts : [] }));
  const answers = [
    { name: 'lab-east', isCurrent: true, answer: { value: { type: 'syncs', syncs } as const } },
    { name: 'lab-west', isCurrent: false, answer: { error: 'no answer within 15000 ms' } },
  ];
  const expected = `*lab-east
  --------------------
  <root>:root-sync    https://git.example/a/b@main
  SYNCED @ 2025-03-04 10:11:12 +0000 UTC    ${COMMIT}
  Managed resources:
        NAMESPACE   NAME                            STATUS       SOURCEHASH
                    namespace/shop                  Conflict     9f8e7d6
        shop        virtualmachine.kubevirt.io/db   InProgress   9f8e7d6
  --------------------
  shop:repo-sync    https://git.example/a/b@main
  ERROR    ${COMMIT}
  TotalErrorCount: 3, ErrorTruncated: true, ErrorCountAfterTruncation: 1
  Error:    KNV2004: no source
  Last attempts:
        TIME                            COMMIT                                     RESULT   ERRORS
        2025-03-04 10:11:12 +0000 UTC   ${COMMIT}   Failed   2 (KNV1060, KNV2009)

lab-west
  --------------------
  N/A
  Error:    no answer within 15000 ms`;
  assert.equal(statusText(answers, { history: true }), expected);
});
