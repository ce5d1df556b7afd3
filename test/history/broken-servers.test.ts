/** The history checker is worth as much as what it notices: a whole server passes, and each broken one is caught. */
// test:full: a load for each way in which a server can be broken.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import type { ApiHandler } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { seed } from '../testkit/seed.ts';
import { BREAKAGES, type Breakage } from './broken-servers.ts';
import { checkHistory, type Result } from './check-history.ts';
import { handlerEndpoint } from './endpoint.ts';
import type { HistoryRecord } from './history.ts';
import { finish, now, prepare, runLoad } from './load.ts';

const sleep = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/** Loads a server of this process with one restart on the way; returns what the checker says. */
async function run(breakage: Partial<Breakage>, operations: number): Promise<Result> {
  const state = breakage.backend?.();
  let backend = state?.backend ?? createMemoryBackend();
  const records: HistoryRecord[] = [];
  const record = (line: HistoryRecord): void => void records.push(line);
  const operationsDone = (): number => records.filter(({ r }) => r === 'op').length;
  const bookmarks = (): number => records.filter((line) => line.r === 'bookmark' && !line.initialEnd).length;
  let server: InProcessServer | undefined;
  const start = async (): Promise<void> => {
    server = await startServer({ backend, ...(breakage.store && { betweenStore: breakage.store }) });
    record({ r: 'fault', t: now(), kind: 'start' });
  };
  // What was on its way when the server was killed gets no answer.
  const handler: ApiHandler = async (request) => {
    const asked = server;
    if (!asked) throw new Error('the server is away');
    const answer = await (breakage.handler?.(asked.handler) ?? asked.handler)(request);
    if (asked !== server) throw new Error('the server was killed');
    return answer;
  };
  const endpoint = handlerEndpoint(() => handler);
  await start();
  await prepare(endpoint);
  const stop = new AbortController();
  const settle = new AbortController();
  // Two clients: what one remembers, the other has changed meanwhile.
  const load = Promise.all(
    ['c0', 'c1'].map((client, at) =>
      runLoad({
        endpoint,
        client,
        seed: seed + at,
        record,
        stop: stop.signal,
        settle: settle.signal,
        callers: 3,
        watchers: 5,
        rest: 3,
      }),
    ),
  );
  await eventually(() => operationsDone() >= operations / 2);
  const killed = server!;
  server = undefined;
  record({ r: 'fault', t: now(), kind: 'kill' });
  backend = (await state?.afterKill()) ?? backend;
  await killed.stop();
  await start();
  // Bookmarks come by the clock, however fast calls are answered: some have to come amid the load.
  const enoughBookmarks = bookmarks() + (breakage.bookmarks ?? 0);
  await eventually(() => operationsDone() >= operations && bookmarks() >= enoughBookmarks);
  stop.abort();
  await sleep(20);
  await finish(endpoint, record);
  const late = setTimeout(() => settle.abort(), 4000);
  await load;
  clearTimeout(late);
  await server!.stop();
  return checkHistory(records);
}

// S-211
test('a whole server: nothing to tell', { timeout: 600_000 }, async (t) => {
  t.diagnostic(`CORACLE_SEED=${seed}`);
  const { violations, broken, ...figures } = await run({}, 1000);
  t.diagnostic(JSON.stringify(figures));
  for (const { rule, message } of violations.slice(0, 20)) t.diagnostic(`${rule}: ${message}`);
  assert.deepEqual(broken, {});
  assert.ok(figures.writes > 50 && figures.events > 200, JSON.stringify(figures));
});

for (const breakage of BREAKAGES) {
  // S-211
  test(`caught: ${breakage.name}`, { timeout: 600_000 }, async (t) => {
    t.diagnostic(`CORACLE_SEED=${seed}`);
    const { violations, broken, ...figures } = await run(breakage, 1000);
    const caught = breakage.rules.filter((rule) => broken[rule]);
    const example = violations.find(({ rule }) => caught.includes(rule));
    t.diagnostic(`${JSON.stringify(broken)}; ${example?.rule}: ${example?.message}`);
    assert.ok(caught.length > 0, `${JSON.stringify(broken)} ${JSON.stringify(figures)}`);
  });
}

test('W7, W8: a forgotten revision is refused, a future one tells nothing old', async () => {
  const server = await startServer({ historyLimit: { minChanges: 20, maxChanges: 20, maxAge: 0 } });
  const path = '/api/v1/namespaces/default/configmaps';
  const make = async (name: string): Promise<number> => {
    const answer = await server.request('POST', path, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
    });
    return Number(answer.json.metadata.resourceVersion);
  };
  const first = await make('first');
  for (let i = 0; i < 60; i++) await make(`more-${i}`);
  const old = await server.request('GET', `${path}?watch=1&resourceVersion=${first}`).catch(() => undefined);
  if (old) assert.deepEqual([old.status, old.json.reason], [410, 'Expired']);
  else {
    const reported = await server.watch(`${path}?watch=1&resourceVersion=${first}`);
    const frame = await reported.next();
    assert.deepEqual([frame?.type, frame?.object.code, frame?.object.reason], ['ERROR', 410, 'Expired']);
  }
  const listed = await server.request('GET', `${path}?resourceVersion=${first}&resourceVersionMatch=Exact`);
  assert.deepEqual([listed.status, listed.json.reason], [410, 'Expired']);

  const future = server.store.revision() + 3;
  const watch = await server.watch(`${path}?watch=1&resourceVersion=${future}&timeoutSeconds=5`).catch((error) => {
    assert.match(String(error), /Too large resource version/);
  });
  for (let i = 0; i < 6; i++) await make(`late-${i}`);
  if (watch) {
    const frame = await watch.next();
    assert.equal(frame?.type, 'ADDED', JSON.stringify(frame));
    assert.ok(Number(frame.object.metadata.resourceVersion) > future);
    watch.close();
  }
  await server.stop();
});
