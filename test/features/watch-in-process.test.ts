import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import type { WatchCallOptions, WatchEvent } from '../../packages/client/src/client.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const CONFIG_MAPS = { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true } as const;

const cases: { name: string; options: WatchCallOptions; types: string[] }[] = [
  { name: 'whole objects', options: {}, types: ['ADDED', 'BOOKMARK', 'ADDED', 'MODIFIED', 'MODIFIED', 'DELETED'] },
  {
    name: 'metadata only',
    options: { metadataOnly: true },
    types: ['ADDED', 'BOOKMARK', 'ADDED', 'MODIFIED', 'MODIFIED', 'DELETED'],
  },
  {
    name: 'an object that leaves the selection',
    options: { labelSelector: 'in=yes' },
    types: ['ADDED', 'BOOKMARK', 'ADDED', 'MODIFIED', 'DELETED'],
  },
];

for (const [i, { name, options, types }] of cases.entries()) {
  // S-164: A reader in the process sees what one over the wire sees.
  test(`a reader in this process is given values that say what the bytes say: ${name}`, async () => {
    const namespace = `values-${i}`;
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    const make = (object: string) =>
      server.create(path, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: object, labels: { in: 'yes' } },
        data: { a: '1' },
      } as KubeObject);
    await make('old');

    const stop = new AbortController();
    let begun = 0;
    let bothBegan = (): void => {};
    const began = new Promise<void>((resolve) => {
      bothBegan = resolve;
    });
    const read = async (readOnly: boolean): Promise<WatchEvent<KubeObject>[]> => {
      const seen: WatchEvent<KubeObject>[] = [];
      const call = { ...options, namespace, readOnly, allowWatchBookmarks: true, sendInitialEvents: true };
      const watch = createClient(server.handler).watch<KubeObject>(CONFIG_MAPS, {
        ...call,
        resourceVersionMatch: 'NotOlderThan',
        signal: stop.signal,
      });
      for await (const event of watch) {
        seen.push(event);
        if (event.type === 'BOOKMARK' && ++begun === 2) bothBegan();
        if (seen.length === types.length) break;
      }
      return seen;
    };
    const reading = [read(true), read(false)];
    await began;
    await make('new');
    await server.request('PATCH', `${path}/new`, { body: { data: { a: '2' } } });
    await server.request('PATCH', `${path}/new`, { body: { metadata: { labels: { in: 'no' } } } });
    await server.request('DELETE', `${path}/new`);
    const [values, parsed] = await Promise.all(reading);
    stop.abort();
    assert.deepEqual(
      values!.map(({ type }) => type),
      types,
    );
    // Of metadata alone, a reader in this process is promised all but managedFields (`WatchCallOptions.readOnly`).
    const promised = ({ type, object }: WatchEvent<KubeObject>) => {
      const { managedFields: _, ...metadata } = object.metadata;
      return { type, object: { ...object, metadata } };
    };
    if ('metadataOnly' in options) assert.deepEqual(values!.map(promised), parsed!.map(promised));
    else assert.deepEqual(values, parsed);
    assert.ok(values!.every((event) => event.type === 'BOOKMARK' || Object.isFrozen(event.object.metadata)));
    assert.ok(parsed!.every(({ object }) => !Object.isFrozen(object)));
  });
}
