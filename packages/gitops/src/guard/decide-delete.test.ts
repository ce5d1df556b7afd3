import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../apimachinery/src/meta/object.ts';
import { decideDelete } from './decide-delete.ts';

const COMPONENT = 'system:serviceaccount:kubevirt:coracle-gitops';
const MODE = 'coracle.dev/delete-with-dependents';
const object = (mode: string, annotations: Record<string, string> = {}, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'a',
    namespace: 'shop',
    annotations: {
      'configmanagement.gke.io/managed': 'enabled',
      'configsync.gke.io/resource-id': '_configmap_shop_a',
      'configsync.gke.io/manager': 'shop_mine',
      'coracle.dev/dependents': JSON.stringify({ onDelete: mode, objects: ['ConfigMap, shop/b'] }),
      ...annotations,
    },
    ...more,
  },
});
const [refuse, warn] = [object('refuse'), object('warn')];

const rows: [what: string, username: string, oldObject: KubeObject, decision: 'allow' | 'warn' | 'refuse'][] = [
  ['an object with dependents', 'bob', refuse, 'refuse'],
  ['an object with dependents, of which a warning is wanted', 'bob', warn, 'warn'],
  ['one that lets it through itself', 'bob', object('refuse', { [MODE]: 'allow' }), 'allow'],
  ['one that is stricter than its sync', 'bob', object('warn', { [MODE]: 'refuse' }), 'refuse'],
  ['one that says what is no mode', 'bob', object('refuse', { [MODE]: 'maybe' }), 'refuse'],
  ['one on its way out', 'bob', object('refuse', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'allow'],
  ['a copy', 'bob', object('refuse', { 'configsync.gke.io/resource-id': '_configmap_shop_other' }), 'allow'],
  ['one that was let go', 'bob', object('refuse', { 'configmanagement.gke.io/managed': 'disabled' }), 'allow'],
  ['an annotation that cannot be read', 'bob', object('refuse', { 'coracle.dev/dependents': '{' }), 'allow'],
  ['as the sync', 'system:serviceaccount:config-management-system:ns-reconciler-shop-mine-4', refuse, 'allow'],
  ['as the component', COMPONENT, refuse, 'allow'],
  ['with its namespace', 'system:serviceaccount:kube-system:namespace-controller', refuse, 'allow'],
  ['with its owner', 'system:serviceaccount:kube-system:generic-garbage-collector', refuse, 'allow'],
  ['as all controllers in one', 'system:kube-controller-manager', refuse, 'allow'],
  ['as another controller', 'system:serviceaccount:kube-system:job-controller', refuse, 'refuse'],
];
// S-970
for (const [what, username, oldObject, decision] of rows)
  test(`${username.replace(/^.*:/, '')} deletes ${what}: ${decision}`, () => {
    const said = decideDelete({ username, oldObject }, [COMPONENT]);
    assert.equal(said.decision, decision);
    if (said.decision !== 'allow')
      assert.match(
        said.message,
        /^ConfigMap, shop\/a is declared by RepoSync shop\/mine, and objects that are declared too depend on it: ConfigMap, shop\/b\. /,
      );
    if (said.decision === 'refuse')
      assert.match(said.message, /annotate it with coracle.dev\/delete-with-dependents=allow/);
  });
