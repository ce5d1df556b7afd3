/** The walk that conformance suites take with every resource: create, read, patch, apply, update, status, delete. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceInfo } from '../../packages/apimachinery/src/types/resource.ts';
import { builtinResources } from '../../packages/apiserver/src/kinds/builtin/builtin-resources.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { SAMPLE_NAMES, SAMPLES } from './fixtures/samples.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const MERGE = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const SELECTED = 'labelSelector=walk%3Dyes';

const stored = builtinResources().filter(
  // Definitions change what is served: they have walks of their own.
  (info) =>
    info.verbs.includes('create') && info.verbs.includes('list') && info.resource !== 'customresourcedefinitions',
);

test('every built-in resource has a sample', () => {
  assert.deepEqual(
    stored.filter((info) => sampleOf(info) === undefined).map((info) => info.resource),
    [],
  );
});

const keyOf = ({ group, resource }: ResourceInfo): string => (group === '' ? resource : `${resource}.${group}`);
const sampleOf = (info: ResourceInfo): object | undefined => SAMPLES[keyOf(info)];

for (const info of stored) {
  const { group, version, resource, kind } = info;
  const apiVersion = group === '' ? version : `${group}/${version}`;
  // S-021
  test(`${apiVersion} ${resource}`, async () => {
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const collection = info.namespaced ? `${root}/namespaces/default/${resource}` : `${root}/${resource}`;
    const name = SAMPLE_NAMES[keyOf(info)] ?? `walk-${version}`;
    const one = `${collection}/${name}`;
    const body = { apiVersion, kind, metadata: { name, labels: { walk: 'yes' } }, ...sampleOf(info) };
    const ok = async (method: string, path: string, how: Parameters<InProcessServer['request']>[2] = {}) => {
      const answer = await server.request(method, path, how);
      assert.ok(answer.status === 200 || answer.status === 201, `${method} ${path}: ${answer.text}`);
      return answer.json;
    };

    const from = server.store.revision();
    const created = await ok('POST', collection, { body });
    assert.equal(created.kind, kind);
    assert.equal((await ok('GET', one)).metadata.uid, created.metadata.uid);
    assert.equal((await ok('GET', `${collection}?${SELECTED}`)).items.length, 1);
    assert.equal((await ok('GET', `${root}/${resource}?${SELECTED}`)).items.length, 1);
    const note = (text: string) => ({ metadata: { annotations: { note: text } } });
    await ok('PATCH', one, { body: note('merge'), headers: MERGE });
    await ok('PATCH', one, { body: note('strategic'), headers: STRATEGIC });
    const config = { apiVersion, kind, metadata: { annotations: { applied: 'yes' } } };
    await ok('PATCH', `${one}?fieldManager=walker`, { body: config, headers: APPLY });
    const live = await ok('GET', one);
    assert.deepEqual([live.metadata.annotations.note, live.metadata.annotations.applied], ['strategic', 'yes']);
    live.metadata.annotations.note = 'put';
    const updated = await ok('PUT', one, { body: live });
    const unchanged = await ok('PUT', one, { body: updated });
    assert.equal(unchanged.metadata.resourceVersion, updated.metadata.resourceVersion);
    const applied = await ok('PATCH', `${one}?fieldManager=walker`, { body: config, headers: APPLY });
    assert.equal(applied.metadata.resourceVersion, updated.metadata.resourceVersion);

    if (info.strategy.statusSubresource) {
      assert.equal((await ok('GET', `${one}/status`)).kind, kind);
      const { metadata } = await ok('PATCH', `${one}/status`, { body: note('status'), headers: MERGE });
      assert.equal(metadata.annotations.note, info.strategy.statusMetadata === 'accept' ? 'status' : 'put');
      await ok('PUT', `${one}/status`, { body: await ok('GET', one) });
    }
    const deleted = await ok('DELETE', `${one}?propagationPolicy=Background`);
    // A namespace waits for its finalizer.
    if (resource !== 'namespaces') {
      assert.equal(deleted.kind, info.strategy.deleteReturnsObject ? kind : 'Status');
      const watch = await server.watch(`${collection}?watch=1&${SELECTED}&resourceVersion=${from}`);
      const types: string[] = [];
      while (types.at(-1) !== 'DELETED') types.push((await watch.next())!.type);
      watch.close();
      assert.equal(types[0], 'ADDED');
    }
    if (info.verbs.includes('deletecollection')) {
      await ok('POST', collection, { body });
      assert.equal((await ok('DELETE', `${collection}?propagationPolicy=Background&${SELECTED}`)).items.length, 1);
      assert.equal((await ok('GET', `${collection}?${SELECTED}`)).items.length, 0);
    }
  });
}
