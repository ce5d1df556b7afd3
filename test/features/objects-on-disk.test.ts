/** Objects whose bytes lie on the disk: every request sees them as it sees those in memory. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createSqliteBackend } from '../../packages/apiserver/src/storage/sqlite-backend.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type ByteSink, NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const KIB = 1024;
/** Less than two of the large objects below, and a few of the small ones. */
const HELD = { large: 500 * KIB, small: 8 * KIB };
const LARGE = 30;
const clock = createFakeClock();
let directory: string;
let server: InProcessServer;

const start = (): Promise<InProcessServer> =>
  startServer({
    clock,
    backend: createSqliteBackend({ directory, clock, log: silentLogger }),
    heldLimits: HELD,
    historyLimit: { minChanges: 1, maxChanges: 5 },
  });

const textOf = (i: number): string => `${i}-`.repeat((300 * KIB) / 4);

/** The whole body of a streamed list, taken slowly: `between` runs when the first bytes are there. */
async function slowly(path: string, between: () => Promise<void>): Promise<{ text: string; pieces: number }> {
  const [target, query = ''] = path.split('?');
  const request = { method: 'GET', path: target!, query, headers: {}, body: new Uint8Array(), peer: { address: '' } };
  const { body } = await server.handler({ ...request, signal: NEVER });
  assert.ok(typeof body === 'function', 'the list is a stream');
  const chunks: Uint8Array[] = [];
  let first = true;
  await new Promise<void>((resolve, reject) => {
    const sink: ByteSink = {
      write: (chunk) => {
        chunks.push(chunk);
        return false;
      },
      buffered: 0,
      async drained() {
        if (!first) return;
        first = false;
        await between();
      },
      end: resolve,
      fail: () => reject(new Error('the list broke off')),
      signal: NEVER,
    };
    body(sink);
  });
  return { text: Buffer.concat(chunks).toString(), pieces: chunks.length };
}

describe('objects on the disk', () => {
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'coracle-on-disk-'));
    server = await start();
    for (let i = 0; i < LARGE; i++) {
      const labels = { parity: i % 2 === 0 ? 'even' : 'odd' };
      await server.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `large-${i}`, labels },
        data: { text: textOf(i) },
      });
    }
  });
  after(async () => {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const names = (path: string) =>
    server
      .request('GET', path)
      .then(({ json }) => json.items.map((item: never) => (item as { metadata: { name: string } }).metadata.name));

  // S-691: Objects that are large or many lie on the disk: every request sees them whole, memory keeps a bound, and a
  //   start reads none of the large ones into memory.
  it('memory holds no more than the bound', () => {
    assert.ok(server.store.stats().heldBytes <= HELD.large + HELD.small);
    assert.equal(server.store.count('/configmaps'), LARGE);
  });

  it('get, selectors, pages, Tables and metadata show them whole', async () => {
    for (const i of [0, 17, LARGE - 1]) {
      const { json } = await server.request('GET', `${CONFIG_MAPS}/large-${i}`);
      assert.equal(json.data.text, textOf(i));
    }
    assert.equal((await names(`${CONFIG_MAPS}?labelSelector=parity%3Dodd&limit=4`)).length, 4);
    assert.deepEqual(await names(`${CONFIG_MAPS}?fieldSelector=metadata.name%3Dlarge-3`), ['large-3']);
    const page = await server.request('GET', `${CONFIG_MAPS}?limit=3`);
    assert.equal(page.json.items.length, 3);
    assert.equal(
      (await server.request('GET', `${CONFIG_MAPS}?limit=3&continue=${page.json.metadata.continue}`)).json.items.length,
      3,
    );
    const accept = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const table = await server.request('GET', `${CONFIG_MAPS}?limit=5`, { headers: accept });
    assert.equal(table.json.rows.length, 5);
    assert.ok(server.store.stats().heldBytes <= HELD.large + HELD.small);
  });

  // S-691
  it('a list of all is read while it is taken, and shows the state it began with although that is compacted', async () => {
    const { text, pieces } = await slowly(CONFIG_MAPS, async () => {
      // At once: most are on the disk again when they are superseded.
      const changes = [];
      for (let i = 0; i < LARGE; i += 3) {
        const path = `${CONFIG_MAPS}/large-${i}`;
        if (i % 2 === 0) changes.push(server.request('DELETE', path));
        else changes.push(server.request('PATCH', path, { body: { data: { text: 'short' } } }));
      }
      for (const { status } of await Promise.all(changes)) assert.equal(status, 200);
      // Three intervals: the revisions that the list began with are forgotten.
      for (let n = 0; n < 3; n++) {
        await server.request('PATCH', `${CONFIG_MAPS}/large-1`, { body: { metadata: { labels: { n: String(n) } } } });
        await clock.advance(10 * 60_000);
        while (server.store.stats().compactions < n) await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const { items } = JSON.parse(text) as { items: { metadata: { name: string }; data: { text: string } }[] };
    assert.equal(items.length, LARGE);
    for (const { metadata, data } of items)
      assert.equal(data.text, textOf(Number(metadata.name.slice('large-'.length))));
    assert.ok(pieces > LARGE);
  });

  // S-691
  it('an update and a watch see them after a restart, which reads none of them into memory', async () => {
    const before = await names(`${CONFIG_MAPS}?limit=500`);
    await server.stop();
    server = await start();
    assert.ok(server.store.stats().heldBytes <= HELD.large + HELD.small);
    assert.deepEqual(await names(`${CONFIG_MAPS}?limit=500`), before);
    const watch = await server.watch(`${CONFIG_MAPS}?watch=true&resourceVersion=${server.store.revision()}`);
    await server.request('PATCH', `${CONFIG_MAPS}/large-5`, { body: { metadata: { labels: { seen: 'yes' } } } });
    const event = (await watch.next())!;
    assert.equal(event.type, 'MODIFIED');
    assert.equal((event.object as unknown as { data: { text: string } }).data.text, textOf(5));
    watch.close();
  });
});
