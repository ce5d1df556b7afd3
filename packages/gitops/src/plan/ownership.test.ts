import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applySetId } from '../status/apply-set.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import { managerName, reconcilerName, syncOfManager } from '../status/sync-identity.ts';
import { ownershipOf } from './ownership.ts';

const root: SyncIdentity = { kind: 'RootSync', namespace: 'config-management-system', name: 'root-sync' };
const other: SyncIdentity = { ...root, name: 'other' };
const repo: SyncIdentity = { kind: 'RepoSync', namespace: 'team', name: 'repo-sync' };
const more: SyncIdentity = { kind: 'RepoSync', namespace: 'team', name: 'more' };
const ref = { group: '', kind: 'ConfigMap', namespace: 'team', name: 'a' };
const full = (manager: string, inventory: string, id = '_configmap_team_a') => ({
  'configmanagement.gke.io/managed': 'enabled',
  'configsync.gke.io/resource-id': id,
  'configsync.gke.io/manager': manager,
  'config.k8s.io/owning-inventory': inventory,
});

const ROWS: readonly [what: string, annotations: Record<string, string> | undefined, by: string][] = [
  ['no annotations', undefined, 'nobody'],
  ['ours', full(':root', 'config-management-system_root-sync'), 'us'],
  ['another RootSync’s', full(':root_other', 'config-management-system_other'), 'other :root_other'],
  ['a RepoSync’s', full('team', 'team_repo-sync'), 'other team'],
  ['a copy of ours', full(':root', 'config-management-system_root-sync', '_configmap_team_b'), 'nobody'],
  ['a copy of another’s', full('team', 'team_repo-sync', '_secret_team_a'), 'nobody'],
  ['an inventory of another tool', { 'config.k8s.io/owning-inventory': 'somebody' }, 'other somebody'],
  ['no longer managed', { 'config.k8s.io/owning-inventory': 'config-management-system_root-sync' }, 'nobody'],
];
for (const [what, annotations, by] of ROWS)
  test(`ownershipOf() ${what}: ${by}`, () => {
    const live = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', ...(annotations && { annotations }) } };
    const found = ownershipOf(live, ref, root);
    assert.equal(found.by === 'other' ? `other ${found.manager}` : found.by, by);
  });

test('names are upstream’s, and lead back to the sync', () => {
  assert.deepEqual([root, other, repo, more].map(reconcilerName), [
    'root-reconciler',
    'root-reconciler-other',
    'ns-reconciler-team',
    'ns-reconciler-team-more-4',
  ]);
  assert.deepEqual([root, other, repo, more].map(managerName), [':root', ':root_other', 'team', 'team_more']);
  for (const sync of [root, other, repo, more]) assert.deepEqual(syncOfManager(managerName(sync)), sync);
  assert.deepEqual(syncOfManager('config-management-system_other'), other);
  assert.match(applySetId(root), /^applyset-[\w-]{43}-v1$/);
});
