// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { ConfigMap } from '../../packages/apimachinery/src/types/types.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { seed } from '../testkit/seed.ts';

const ROUNDS = Number(process.env['CORACLE_ROUNDS'] ?? 50);
const WRITERS = 8;

// One walk, decided by the seed.
let state = seed;
const random = (): number => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return state / 0x7fffffff;
};

// S-038: `kill -9` of the control plane at random moments under load, 50 rounds: no acknowledged write lost, no
//   revision going back, watchers without gap or duplicate.
test(`kill -9 at random moments, ${ROUNDS} rounds: no acknowledged write is lost, watchers see each change once`, {
  timeout: 900_000,
}, async (t) => {
  t.diagnostic(`CORACLE_SEED=${seed}`);
  const dir = mkdtempSync(join(tmpdir(), 'coracle-kill-'));
  /** Name -> newest acknowledged count and its revision. */
  const acked = new Map<string, { count: number; revision: number }>();
  const seen: { name: string; count: number; revision: number }[] = [];
  let highest = 0;
  let port = 0;
  let acks = 0;
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const plane = await startProcess(dir, { port, controllers: '' });
      port = plane.port;
      const admin = adminOf(dir);
      const stop = new AbortController();
      const first = Promise.withResolvers<void>();
      const namespace = 'default';

      const listed = await admin.client.list(CONFIG_MAPS, { namespace });
      const stored = new Map(listed.items.map((item) => [item.metadata.name, item]));
      for (const [name, { count, revision }] of acked) {
        const item = stored.get(name);
        assert.ok(item, `round ${round}: ${name} was acknowledged and is gone`);
        assert.ok(
          Number(item.data?.['count']) >= count,
          `round ${round}: ${name} was acknowledged at ${count} and is at ${item.data?.['count']}`,
        );
        assert.ok(Number(item.metadata.resourceVersion) >= revision);
      }
      const now = Number(listed.metadata.resourceVersion);
      assert.ok(now >= highest, `round ${round}: the revision went back from ${highest} to ${now}`);
      highest = now;

      const from = seen.at(-1)?.revision ?? 0;
      const watching = watch(admin.client, { from, signal: stop.signal, seen });
      if (round === ROUNDS) {
        // The last round only catches up.
        const newest = Math.max(...[...acked.values()].map(({ revision }) => revision));
        await eventually('the watcher has caught up', () => (seen.at(-1)?.revision ?? 0) >= newest);
        stop.abort();
        await watching;
        await admin.close();
        await plane.kill('SIGKILL');
        break;
      }
      const writers = Array.from({ length: WRITERS }, (_, at) =>
        write(admin.client, {
          name: `w${at}-${round % 5}`,
          namespace,
          signal: stop.signal,
          acked,
          onAck: () => {
            acks++;
            first.resolve();
          },
        }),
      );
      // From the first answer on: on a busy machine a time from the start on would kill before there is any load. Nobody
      // answers where all writers have ended.
      await Promise.race([first.promise, Promise.all(writers)]);
      await sleep(random() * 120);
      await plane.kill('SIGKILL');
      stop.abort();
      await Promise.all([...writers, watching]);
      await admin.close();
    }
    for (let i = 1; i < seen.length; i++)
      assert.ok(seen[i]!.revision > seen[i - 1]!.revision, 'a watcher saw a change twice or out of order');
    const counts = new Map<string, number>();
    for (const { name, count } of seen) {
      const before = counts.get(name);
      if (before !== undefined)
        assert.equal(count, before + 1, `${name}: a watcher missed a change between ${before} and ${count}`);
      counts.set(name, count);
    }
    for (const [name, { count }] of acked)
      assert.ok((counts.get(name) ?? -1) >= count, `${name}: acknowledged ${count}, watched ${counts.get(name)}`);
    assert.ok(acks > ROUNDS, `only ${acks} writes were acknowledged: the test did not test`);
    t.diagnostic(`${acks} acknowledged writes, ${seen.length} watched, revision ${highest}`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

type AdminClient = ReturnType<typeof adminOf>['client'];

/** Counts one ConfigMap up until stopped; each acknowledged count is recorded. Each write is exactly one step. */
async function write(
  client: AdminClient,
  at: {
    name: string;
    namespace: string;
    signal: AbortSignal;
    acked: Map<string, { count: number; revision: number }>;
    onAck: () => void;
  },
): Promise<void> {
  const { name, namespace, signal, acked } = at;
  let current: ConfigMap | undefined;
  while (!signal.aborted) {
    try {
      current ??= await client.get(CONFIG_MAPS, { namespace, name }, { signal }).catch((error: unknown) => {
        if (error instanceof ApiError && error.code === 404) return undefined;
        throw error;
      });
      const count = current ? Number(current.data?.['count']) + 1 : 0;
      current = current
        ? await client.update(CONFIG_MAPS, { ...current, data: { count: String(count) } }, { signal })
        : await client.create(
            CONFIG_MAPS,
            { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { count: '0' } },
            { signal },
          );
      acked.set(name, { count, revision: Number(current.metadata.resourceVersion) });
      at.onAck();
    } catch {
      return; // the server is gone: this round is over
    }
  }
}

/** Follows the ConfigMaps from a revision on; ends when the server dies. */
async function watch(
  client: AdminClient,
  at: { from: number; signal: AbortSignal; seen: { name: string; count: number; revision: number }[] },
): Promise<void> {
  try {
    for await (const event of client.watch(CONFIG_MAPS, {
      namespace: 'default',
      resourceVersion: String(at.from || 1),
      signal: at.signal,
    })) {
      if (event.type === 'ERROR') throw new Error(`the watch was refused: ${JSON.stringify(event.object)}`);
      if (event.type === 'BOOKMARK' || event.object.data?.['count'] === undefined) continue;
      at.seen.push({
        name: event.object.metadata.name ?? '',
        count: Number(event.object.data['count']),
        revision: Number(event.object.metadata.resourceVersion),
      });
    }
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('the watch was refused')) throw error;
  }
}
