/** The guard of declared fields, turned on by the configuration that upstream's webhook has: scenarios of admission_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { CONFIG_MAPS, NAMESPACES, ROLE_BINDINGS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { RESOURCE_GROUPS } from '../../packages/gitops/src/kinds/kinds.ts';
import { GUARD_CONFIGURATIONS } from '../../packages/gitops/src/sync/guard-configuration.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository, serveRepository } from '../testkit/git-repository.ts';
import { configMapYaml, createNamespace, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const NAME = 'admission-webhook.configsync.gke.io';
const FIELDS = 'configsync.gke.io/declared-fields';
const namespaceYaml = (name: string, annotations: object = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations } });

let at: GitOpsCluster;
let repository: GitRepository;
before(async () => {
  at = await startGitOpsCluster();
  repository = await createRepository();
  const commit = await repository.commit({
    'ns.yaml': namespaceYaml('hello', { goodbye: 'moon' }),
    'map.yaml': configMapYaml('map', { k: 'declared' }, { namespace: 'hello' }),
  });
  await at.rootSync('root-sync', repository.url);
  await at.synced('root-sync', commit);
  assert.equal((await fieldsOf('hello')) ?? '', '', 'declared fields are written while nothing reads them');
  await turnOn();
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});

const fieldsOf = async (name: string): Promise<string | undefined> =>
  (await at.find(NAMESPACES, name))?.metadata.annotations?.[FIELDS];
const turnOn = async (): Promise<void> => {
  await at.client.create(GUARD_CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: NAME },
  });
  await eventually('declared fields are written', () => fieldsOf('hello'));
};
const annotate = (name: string, annotations: Record<string, string | null>) =>
  at.client.patch(NAMESPACES, { namespace: '', name }, { type: 'merge', body: { metadata: { annotations } } });
const refused = (act: Promise<unknown>, message: RegExp) =>
  assert.rejects(act, (error: unknown) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.code, error.reason], [403, 'Forbidden']);
    assert.match(error.message, message);
    return true;
  });

// S-960: While ValidatingWebhookConfiguration `admission-webhook.configsync.gke.io` is there and does not say
//   `disabled`, managed objects are made and deleted by their source alone, and their declared fields, their metadata
//   of Config Sync and inventories are nobody else's to change; fields that nobody declares stay free, a namespace that
//   is not managed goes with what is in it, and commits are applied as before.
test('TestAdmission: declared objects are not deleted, declared data not changed, the rest is free', async () => {
  await refused(
    at.client.delete(NAMESPACES, { namespace: '', name: 'hello' }),
    /admission webhook "v1.admission-webhook.configsync.gke.io" denied the request: .* is not authorized to delete managed resource "_namespace_hello"/,
  );
  for (const goodbye of ['world', null])
    await refused(
      annotate('hello', { goodbye }),
      /cannot modify fields of object "_namespace_hello" managed by Config Sync: .metadata.annotations.goodbye/,
    );
  for (const stop of ['go', 'oh no', null]) await annotate('hello', { stop });
  await refused(
    annotate('hello', { 'configmanagement.gke.io/managed': null }),
    /cannot modify Config Sync metadata of object "_namespace_hello": .metadata.annotations.configmanagement.gke.io\/managed/,
  );
  const made = (id: string) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: 'test-ns',
      annotations: { 'configmanagement.gke.io/managed': 'enabled', 'configsync.gke.io/resource-id': id },
      labels: { 'configsync.gke.io/declared-version': 'v1' },
    },
  });
  await refused(
    at.client.create(NAMESPACES, made('_namespace_test-ns')),
    /is not authorized to create managed resource "_namespace_test-ns"/,
  );
  await at.client.create(NAMESPACES, made('_namespace_wrong-ns'));
  await at.client.delete(NAMESPACES, { namespace: '', name: 'test-ns' });
});

// S-960
test('collections and applies are decided alike, a dry run is free; an inventory is nobody’s to change', async () => {
  const map = { namespace: 'hello', name: 'map' };
  await at.client.delete(CONFIG_MAPS, map, { dryRun: true });
  const { status, json } = await at.cluster.board.send('DELETE', '/api/v1/namespaces/hello/configmaps');
  assert.equal(status, 403);
  assert.match(json.message, /is not authorized to delete managed resource "_configmap_hello_map"/);
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: map, data: { k: 'mine' } };
  await refused(
    at.client.patch(CONFIG_MAPS, map, { type: 'apply', body: object, fieldManager: 'me', force: true }),
    /: .data.k$/,
  );
  await at.client.patch(CONFIG_MAPS, map, { type: 'merge', body: { data: { mine: 'x' } } });
  await refused(
    at.client.delete(RESOURCE_GROUPS, { namespace: 'config-management-system', name: 'root-sync' }),
    /is not authorized to modify ResourceGroup.kpt.dev generated by Config Sync/,
  );
});

// S-960
test('commits change, add and prune as before; declared fields follow', async () => {
  const commit = await repository.commit({
    'ns.yaml': namespaceYaml('hello', { more: '1' }),
    'map.yaml': null,
    'other.yaml': configMapYaml('other', { k: '1' }, { namespace: 'hello' }),
  });
  await at.synced('root-sync', commit);
  assert.deepEqual(JSON.parse((await fieldsOf('hello')) ?? ''), {
    'f:metadata': { 'f:annotations': { 'f:more': {} } },
  });
  assert.equal(await at.configMap('map', 'hello'), undefined);
  await annotate('hello', { goodbye: 'again' });
  await refused(annotate('hello', { more: '2' }), /: .metadata.annotations.more$/);
  assert.deepEqual(JSON.parse((await at.configMap('other', 'hello'))?.metadata.annotations?.[FIELDS] ?? ''), {
    'f:data': { 'f:k': {} },
  });
});

// S-960
test('an object that ignores mutations may be changed by anybody, and not deleted', async () => {
  const ignored = { annotations: { 'client.lifecycle.config.k8s.io/mutation': 'ignore' }, namespace: 'hello' };
  const commit = await repository.commit({ 'ignored.yaml': configMapYaml('ignored', { k: 'declared' }, ignored) });
  await at.synced('root-sync', commit);
  const key = { namespace: 'hello', name: 'ignored' };
  await at.client.patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { k: 'mine' } } });
  await refused(at.client.delete(CONFIG_MAPS, key), /is not authorized to delete/);
  await refused(
    at.client.patch(CONFIG_MAPS, key, {
      type: 'merge',
      body: { metadata: { annotations: { 'client.lifecycle.config.k8s.io/mutation': null } } },
    }),
    /cannot modify Config Sync metadata/,
  );
});

// S-960
test('a namespace that is not managed goes with the managed objects in it', async (t) => {
  await createNamespace(at.client, 'tenant');
  await at.client.create(ROLE_BINDINGS, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'edit', namespace: 'tenant' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ kind: 'ServiceAccount', name: 'ns-reconciler-tenant', namespace: 'config-management-system' }],
  });
  const own = await createRepository();
  const server = await serveRepository(own);
  t.after(async () => {
    await server.stop();
    own.remove();
  });
  const commit = await own.commit({ 'a.yaml': configMapYaml('a', {}) });
  await at.repoSync('tenant', 'repo-sync', server.url);
  await at.synced(['tenant', 'repo-sync'], commit);
  await refused(at.client.delete(CONFIG_MAPS, { namespace: 'tenant', name: 'a' }), /is not authorized to delete/);
  await at.client.delete(NAMESPACES, { namespace: '', name: 'tenant' });
  await at.gone(NAMESPACES, 'tenant');
});

// S-960
test('TestDisableWebhookConfigurationUpdate: disabled, or gone, nothing is guarded, and drift is put back', async () => {
  const disable = (value: string | null) =>
    at.client.patch(
      GUARD_CONFIGURATIONS,
      { namespace: '', name: NAME },
      {
        type: 'merge',
        body: { metadata: { annotations: { 'configsync.gke.io/webhook-configuration-update': value } } },
      },
    );
  await disable('disabled');
  await eventually('declared fields are taken off', async () =>
    (await fieldsOf('hello')) === undefined ? true : undefined,
  );
  await at.client.delete(CONFIG_MAPS, { namespace: 'hello', name: 'other' });
  await eventually('it is made anew', () => at.configMap('other', 'hello'));
  await disable(null);
  await eventually('declared fields are back', () => fieldsOf('hello'));
  await refused(at.client.delete(CONFIG_MAPS, { namespace: 'hello', name: 'other' }), /is not authorized to delete/);
  await at.client.delete(GUARD_CONFIGURATIONS, { namespace: '', name: NAME });
  await at.client.delete(CONFIG_MAPS, { namespace: 'hello', name: 'other' });
});
