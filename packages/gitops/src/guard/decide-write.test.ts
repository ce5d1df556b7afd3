import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../apimachinery/src/meta/object.ts';
import { guardHookName, isGuardOn, refusalOfWrite } from './decide-write.ts';

const COMPONENT = 'system:serviceaccount:kubevirt:coracle-gitops';
const reconciler = (name: string): string => `system:serviceaccount:config-management-system:${name}`;
const MANAGED = {
  'configmanagement.gke.io/managed': 'enabled',
  'configsync.gke.io/resource-id': 'rbac.authorization.k8s.io_role_world_hello',
};
const FIELDS = { 'configsync.gke.io/declared-fields': '{"f:rules":{}}' };
const role = (annotations: Record<string, string> = {}, more: object = {}): KubeObject =>
  ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'hello', namespace: 'world', annotations },
    rules: [{ verbs: ['get'] }],
    ...more,
  }) as KubeObject;
const going = (object: KubeObject): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});
const managed = role({ ...MANAGED, ...FIELDS });
const managedBy = (manager: string): KubeObject => role({ ...MANAGED, 'configsync.gke.io/manager': manager });
const sync = (kind: string, name: string, namespace: string, manager: string): KubeObject => ({
  apiVersion: 'configsync.gke.io/v1beta1',
  kind,
  metadata: { name, namespace, annotations: { 'configsync.gke.io/manager': manager } },
});
const inventory = (id: string): KubeObject => ({
  apiVersion: 'kpt.dev/v1alpha1',
  kind: 'ResourceGroup',
  metadata: { name: 'repo-sync', namespace: 'world', labels: { 'cli-utils.sigs.k8s.io/inventory-id': id } },
});
type Row = [
  what: string,
  username: string,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  refusal?: RegExp,
];
const rows: Row[] = [
  ['makes what is not managed', 'bob', undefined, role()],
  ['makes what only says managed', 'bob', undefined, role({ 'configmanagement.gke.io/managed': 'enabled' })],
  [
    'makes a copy with the id of another object',
    'bob',
    undefined,
    role({ ...MANAGED, 'configsync.gke.io/resource-id': '_role_world_other' }),
  ],
  ['makes a managed object', 'bob', undefined, managed, /^bob is not authorized to create managed resource "rbac/],
  ['deletes a managed object', 'bob', managed, undefined, /^bob is not authorized to delete managed resource "rbac/],
  ['deletes one that is on its way out', 'bob', going(managed), undefined],
  ['changes one that is on its way out', 'bob', going(managed), going(role())],
  ['deletes what is not managed', 'bob', role(), undefined],
  ['changes what is not managed', 'bob', role(), role({}, { rules: [] })],
  ['changes an undeclared field', 'bob', managed, role({ ...MANAGED, ...FIELDS, more: '1' })],
  [
    'changes a declared field',
    'bob',
    managed,
    role({ ...MANAGED, ...FIELDS }, { rules: [] }),
    /^bob cannot modify fields of object "rbac.authorization.k8s.io_role_world_hello" managed by Config Sync: .rules$/,
  ],
  [
    'changes a declared field of one that ignores mutations',
    'bob',
    role({ ...MANAGED, ...FIELDS, 'client.lifecycle.config.k8s.io/mutation': 'ignore' }),
    role({ ...MANAGED, ...FIELDS, 'client.lifecycle.config.k8s.io/mutation': 'ignore' }, { rules: [] }),
  ],
  [
    'ends that mutations are ignored',
    'bob',
    role({ ...MANAGED, 'client.lifecycle.config.k8s.io/mutation': 'ignore' }),
    role(MANAGED),
    /Config Sync metadata of object .*: .metadata.annotations.client.lifecycle.config.k8s.io\/mutation$/,
  ],
  ['takes it from its manager', 'bob', managed, role(), /^bob cannot modify Config Sync metadata of object/],
  ['puts it under a manager', 'bob', role(), managed, /^bob cannot modify Config Sync metadata of object/],
  [
    'says what becomes of the objects of a sync',
    'bob',
    managed,
    role({ ...MANAGED, ...FIELDS, 'configsync.gke.io/deletion-propagation-policy': 'Orphan' }),
  ],
  ['deletes all of a namespace', 'system:serviceaccount:kube-system:namespace-controller', managed, undefined],
  ['deletes dependents', 'system:serviceaccount:kube-system:generic-garbage-collector', managed, undefined],
  ['writes for all syncs', COMPONENT, managed, undefined],
  [
    'changes an inventory',
    'bob',
    inventory('world_repo-sync'),
    inventory(''),
    /^bob is not authorized to modify ResourceG/,
  ],
  [
    'makes an inventory',
    'bob',
    undefined,
    inventory('world_repo-sync'),
    /^bob is not authorized to modify ResourceGroup/,
  ],
  ['makes a ResourceGroup of its own', 'bob', undefined, inventory('mine')],
  ['has its own', reconciler('root-reconciler-my'), managedBy(':root_my'), undefined],
  ['changes what a RepoSync has', reconciler('root-reconciler-my'), managedBy('shop_mine'), managedBy(':root_my')],
  [
    'deletes what a RepoSync has',
    reconciler('root-reconciler-my'),
    managedBy('shop_mine'),
    undefined,
    /can not DELETE/,
  ],
  ['has what nobody has', reconciler('ns-reconciler-shop'), role(), undefined],
  [
    'deletes what another RepoSync has',
    reconciler('ns-reconciler-books-mine-4'),
    managedBy('video_mine'),
    undefined,
    /^config sync "ns-reconciler-books-mine-4" can not DELETE object "Role.rbac.authorization.k8s.io, world\/hello" managed by config sync "ns-reconciler-video-mine-4"$/,
  ],
  [
    'takes over from another RootSync',
    reconciler('root-reconciler'),
    managedBy(':root_my'),
    managedBy(':root'),
    /can not UPDATE/,
  ],
  [
    'changes its own sync',
    reconciler('ns-reconciler-shop'),
    sync('RepoSync', 'repo-sync', 'shop', ':root'),
    sync('RepoSync', 'repo-sync', 'shop', ':root'),
  ],
  [
    'deletes its own sync',
    reconciler('ns-reconciler-shop'),
    sync('RepoSync', 'repo-sync', 'shop', ':root'),
    undefined,
    /can not DELETE/,
  ],
  [
    'changes any sync',
    reconciler('reconciler-manager'),
    sync('RootSync', 'my', 'config-management-system', ':root'),
    sync('RootSync', 'my', 'config-management-system', ':root'),
  ],
];
// S-960
for (const [what, username, oldObject, object, refusal] of rows)
  test(`${username.replace(/^.*:/, '')} ${what}: ${refusal ? 'refused' : 'allowed'}`, () => {
    const operation = !oldObject ? 'CREATE' : object ? 'UPDATE' : 'DELETE';
    const said = refusalOfWrite({ operation, username, oldObject, object }, [COMPONENT]);
    if (refusal) assert.match(said ?? '', refusal);
    else assert.equal(said, undefined);
  });

test('it is on while the configuration is there and does not say disabled; webhooks have upstream’s names', () => {
  const configuration = (annotations?: Record<string, string>) => ({ ...role(annotations), kind: 'x' });
  assert.equal(isGuardOn(undefined), false);
  assert.equal(isGuardOn(configuration()), true);
  assert.equal(isGuardOn(configuration({ 'configsync.gke.io/webhook-configuration-update': 'disabled' })), false);
  assert.equal(guardHookName({ group: '', version: 'v1' }), 'v1.admission-webhook.configsync.gke.io');
  assert.equal(guardHookName({ group: 'apps', version: 'v1' }), 'apps.v1.admission-webhook.configsync.gke.io');
});
