/** `@kubernetes/client-node`, unchanged, against a running server: objects, patches, lists, watches, an informer, rights. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  ApiException,
  ApiextensionsV1Api,
  AuthorizationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  VersionApi,
  Watch,
} from '@kubernetes/client-node';
import { type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';

const namespace = 'default';
const dir = mkdtempSync(join(tmpdir(), 'coracle-node-client-'));
let plane: ControlPlaneProcess;
let config: KubeConfig;
let core: CoreV1Api;
before(async () => {
  plane = await startProcess(dir, { controllers: '' });
  config = new KubeConfig();
  config.loadFromFile(join(dir, 'kubeconfig'));
  core = config.makeApiClient(CoreV1Api);
});
after(async () => {
  await plane.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

const map = (name: string, data: Record<string, string> = {}): V1ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { made: 'here' } },
  data,
});
const refused = (code: number, reason: string) => (error: unknown) => {
  assert.ok(error instanceof ApiException, String(error));
  assert.equal(error.code, code);
  assert.match(String(error.body), new RegExp(`"reason":"${reason}"`));
  return true;
};

// S-210: The official Node client of Kubernetes works unchanged: objects, patches, lists, watches, an informer, custom
//   resources.
test('objects are made, read, replaced, listed and deleted', { timeout: 600_000 }, async () => {
  const made = await core.createNamespacedConfigMap({ namespace, body: map('crud', { a: '1' }) });
  assert.ok(made.metadata?.uid && made.metadata.creationTimestamp instanceof Date);
  await assert.rejects(core.createNamespacedConfigMap({ namespace, body: map('crud') }), refused(409, 'AlreadyExists'));
  const read = await core.readNamespacedConfigMap({ namespace, name: 'crud' });
  const replaced = await core.replaceNamespacedConfigMap({
    namespace,
    name: 'crud',
    body: { ...read, data: { a: '2' } },
  });
  assert.equal(replaced.data?.['a'], '2');
  await assert.rejects(
    core.replaceNamespacedConfigMap({ namespace, name: 'crud', body: read }),
    refused(409, 'Conflict'),
  );
  const listed = await core.listNamespacedConfigMap({ namespace, labelSelector: 'made=here', limit: 1 });
  assert.deepEqual(
    listed.items.map(({ metadata }) => metadata?.name),
    ['crud'],
  );
  const deleted = await core.deleteNamespacedConfigMap({ namespace, name: 'crud' });
  assert.equal(deleted.status, 'Success');
  await assert.rejects(core.readNamespacedConfigMap({ namespace, name: 'crud' }), refused(404, 'NotFound'));
});

test('pages of a list', { timeout: 600_000 }, async () => {
  for (let at = 0; at < 7; at++)
    await core.createNamespacedSecret({ namespace, body: { metadata: { name: `page-${at}` } } });
  const names: string[] = [];
  let _continue: string | undefined;
  do {
    const page = await core.listNamespacedSecret({ namespace, limit: 3, ...(_continue && { _continue }) });
    names.push(...page.items.map(({ metadata }) => metadata!.name!));
    _continue = page.metadata?._continue;
  } while (_continue);
  assert.deepEqual(
    names,
    Array.from({ length: 7 }, (_, at) => `page-${at}`),
  );
});

test('every kind of patch', { timeout: 600_000 }, async () => {
  const name = 'patched';
  await core.createNamespacedConfigMap({ namespace, body: map(name, { a: '1', b: '1' }) });
  const patch = (type: string, body: object, more: object = {}) =>
    core.patchNamespacedConfigMap({ namespace, name, body, ...more }, setHeaderOptions('Content-Type', type));
  const json = await patch(PatchStrategy.JsonPatch, [{ op: 'replace', path: '/data/a', value: '2' }]);
  assert.equal(json.data?.['a'], '2');
  const merged = await patch(PatchStrategy.MergePatch, { data: { b: null, c: '3' } });
  assert.deepEqual(merged.data, { a: '2', c: '3' });
  const strategic = await patch(PatchStrategy.StrategicMergePatch, { metadata: { labels: { more: 'yes' } } });
  assert.deepEqual(strategic.metadata?.labels, { made: 'here', more: 'yes' });
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { d: '4' } };
  const applied = await patch(PatchStrategy.ServerSideApply, config, { fieldManager: 'node-client', force: true });
  assert.equal(applied.data?.['d'], '4');
  assert.ok(
    applied.metadata?.managedFields?.some(
      ({ manager, operation }) => manager === 'node-client' && operation === 'Apply',
    ),
  );
});

// S-210
test('a watch, and an informer that follows it', { timeout: 600_000 }, async () => {
  const reported: string[] = [];
  const ended: unknown[] = [];
  const stop = await new Watch(config).watch(
    '/api/v1/namespaces/default/configmaps',
    { labelSelector: 'made=here', fieldSelector: 'metadata.name=seen' },
    (phase, object) => void reported.push(`${phase} ${object.metadata.name} ${object.data?.a ?? ''}`),
    (error) => void ended.push(error),
  );
  const informer = makeInformer(config, '/api/v1/namespaces/default/configmaps', () =>
    core.listNamespacedConfigMap({ namespace }),
  );
  const heard: string[] = [];
  const isSeen = (object: V1ConfigMap): boolean => object.metadata?.name === 'seen';
  for (const verb of ['add', 'update', 'delete'] as const)
    informer.on(verb, (object) => isSeen(object) && heard.push(`${verb} ${object.data?.['a'] ?? ''}`));
  await informer.start();
  const made = await core.createNamespacedConfigMap({ namespace, body: map('seen', { a: '1' }) });
  await eventually(() => heard.length === 1);
  assert.equal(informer.get('seen', namespace)?.metadata?.uid, made.metadata?.uid);
  await core.replaceNamespacedConfigMap({ namespace, name: 'seen', body: { ...made, data: { a: '2' } } });
  await core.deleteNamespacedConfigMap({ namespace, name: 'seen' });
  await eventually(() => heard.length === 3 && reported.length === 3);
  assert.deepEqual(heard, ['add 1', 'update 2', 'delete 2']);
  assert.deepEqual(reported, ['ADDED seen 1', 'MODIFIED seen 2', 'DELETED seen 2']);
  assert.equal(informer.get('seen', namespace), undefined);
  await informer.stop();
  stop.abort();
  await eventually(() => ended.length === 1);
});

// S-210
test('custom resources, from their definition on', { timeout: 600_000 }, async () => {
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', properties: { size: { type: 'integer', minimum: 1 } } } },
    },
  };
  await config.makeApiClient(ApiextensionsV1Api).createCustomResourceDefinition({
    body: {
      metadata: { name: 'boats.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'boats', singular: 'boat', kind: 'Boat' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    },
  });
  const custom = config.makeApiClient(CustomObjectsApi);
  const at = { group: 'example.com', version: 'v1', namespace, plural: 'boats' };
  const boat = (size: number) => ({
    apiVersion: 'example.com/v1',
    kind: 'Boat',
    metadata: { name: 'b' },
    spec: { size },
  });
  for (;;) {
    const listed = await custom.listNamespacedCustomObject(at).catch((error: ApiException<unknown>) => error);
    if (!(listed instanceof ApiException)) break;
    assert.equal(listed.code, 404);
    await new Promise((done) => setTimeout(done, 20));
  }
  await assert.rejects(custom.createNamespacedCustomObject({ ...at, body: boat(0) }), refused(422, 'Invalid'));
  const made = await custom.createNamespacedCustomObject({ ...at, body: boat(3) });
  assert.equal(made.spec.size, 3);
  const objects = KubernetesObjectApi.makeApiClient(config);
  const read = await objects.read({ apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'b', namespace } });
  assert.equal((read as ReturnType<typeof boat>).spec.size, 3);
  await objects.delete({ apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'b', namespace } });
});

test('who it is, what it may do, what it talks to', { timeout: 600_000 }, async () => {
  const review = await config.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
    body: { spec: { resourceAttributes: { verb: 'delete', resource: 'nodes' } } },
  });
  assert.equal(review.status?.allowed, true);
  const { gitVersion, major } = await config.makeApiClient(VersionApi).getCode();
  assert.match(gitVersion, /^v1\.\d+\./);
  assert.equal(major, '1');
  const account = await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'robot' } } });
  const issued = await core.createNamespacedServiceAccountToken({
    namespace,
    name: account.metadata!.name!,
    body: { spec: { audiences: [], expirationSeconds: 600 } },
  });
  const other = new KubeConfig();
  const cluster = config.getCurrentCluster()!;
  other.loadFromClusterAndUser(cluster, { name: 'robot', token: issued.status!.token! });
  await assert.rejects(other.makeApiClient(CoreV1Api).listNode(), refused(403, 'Forbidden'));
});
