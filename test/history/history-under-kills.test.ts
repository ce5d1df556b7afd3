/**
 * The history checker on a real server (reliability section 4): client processes write, read, list and watch over TLS
 * while the server is killed at random moments, and everything they have seen must be one history.
 * CORACLE_HISTORY_SECONDS makes it longer, CORACLE_SEED makes other choices, CORACLE_HISTORY_DIR keeps the records.
 */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSqliteBackend } from '../../packages/apiserver/src/storage/sqlite-backend.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { randomFrom, seed } from '../testkit/seed.ts';
import { checkHistory } from './check-history.ts';
import { httpsEndpoint } from './endpoint.ts';
import { type Dump, type HistoryRecord, parseHistory, type Resource } from './history.ts';
import { finish, NAMESPACES, now, prepare } from './load.ts';
import { sightOf } from './sight.ts';

const SECONDS = Number(process.env['CORACLE_HISTORY_SECONDS'] ?? 12);
const MORE_NS = 400e9;
const CLIENTS = 3;
/** A process lives for longer where starts take long: else a busy machine would do nothing but start. */
const MORE_FOR_A_START = 0.5;
const sleep = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

// S-211: Many clients under `kill -9` see one history: nothing lost, nothing back, no gap in a watch; the checker that
//   says so catches broken servers.
test(`${SECONDS} s of ${CLIENTS} client processes under kill -9: one history, L1-L8 and W1-W11`, {
  timeout: (SECONDS + 700) * 1000,
}, async (t) => {
  t.diagnostic(`CORACLE_SEED=${seed}`);
  const kept = process.env['CORACLE_HISTORY_DIR'];
  const dir = kept ?? mkdtempSync(join(tmpdir(), 'coracle-history-'));
  mkdirSync(dir, { recursive: true });
  const dataDir = join(dir, 'data');
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const random = randomFrom(seed);
  const records: HistoryRecord[] = [{ r: 'header', client: 'conductor', seed, commit }];
  const files: string[] = [];
  const clients: ChildProcess[] = [];
  let plane: ControlPlaneProcess | undefined;
  let port = 0;
  let kills = 0;
  let lastStart = 0;
  const start = async (): Promise<void> => {
    const began = performance.now();
    plane = await startProcess(dataDir, { port, controllers: '' });
    lastStart = performance.now() - began;
    port = plane.port;
    records.push({ r: 'fault', t: now(), kind: 'start' });
  };
  const kill = async (): Promise<void> => {
    const victim = plane!;
    plane = undefined;
    await victim.kill('SIGKILL');
    records.push({ r: 'fault', t: now(), kind: 'kill' });
  };
  try {
    await start();
    const endpoint = httpsEndpoint(dataDir);
    await prepare(endpoint);
    for (let at = 0; at < CLIENTS; at++) {
      const file = join(dir, `client-${at}.jsonl`);
      files.push(file);
      const main = join(import.meta.dirname, 'load-process.ts');
      clients.push(fork(main, [dataDir, file, `c${at}`, String(seed + at + 1), commit], { stdio: 'inherit' }));
    }
    const ended = clients.map((client) => once(client, 'exit'));
    // A slow machine gets a little longer to do enough.
    for (const end = now() + SECONDS * 1e9; now() < end || (now() < end + MORE_NS && !isEnough(doneSoFar(files))); ) {
      await sleep(600 + random() * 2000 + MORE_FOR_A_START * lastStart);
      await kill();
      kills++;
      await start();
    }
    await sleep(500);
    for (const client of clients) client.send('stop');
    await sleep(500);
    await finish(endpoint, (record) => records.push(record));
    const late = setTimeout(() => {
      for (const client of clients) if (client.connected) client.send('settle');
    }, 10_000);
    for (const [code] of await Promise.all(ended)) assert.equal(code, 0, 'a client process failed');
    clearTimeout(late);
    endpoint.close();
    await kill();
    records.push(await dump(dataDir));

    for (const file of files) for (const record of parseHistory(readFileSync(file, 'utf8'))) records.push(record);
    const began = now();
    const result = checkHistory(records);
    const { violations, broken, ...figures } = result;
    t.diagnostic(`${kills} kills, ${JSON.stringify(figures)}, checked in ${Math.round((now() - began) / 1e6)} ms`);
    for (const { rule, message } of violations.slice(0, 30)) t.diagnostic(`${rule}: ${message}`);
    assert.deepEqual(broken, {}, `CORACLE_SEED=${seed}`);
    assert.ok(isEnough(figures), `too little was tried: ${JSON.stringify(figures)}`);
    assert.ok(kills > 0);
  } finally {
    for (const client of clients) client.kill('SIGKILL');
    await plane?.kill('SIGKILL');
    if (!kept) rmSync(dir, { recursive: true, force: true });
  }
});

const isEnough = ({ writes, events }: { readonly writes: number; readonly events: number }): boolean =>
  writes > 100 && events > 500;

/** Acknowledged writes and events that the clients have written down by now. The last line may be half a line. */
function doneSoFar(files: readonly string[]): { writes: number; events: number } {
  const records = files.flatMap((file) => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return [...parseHistory(text.slice(0, text.lastIndexOf('\n') + 1))];
  });
  const changed = (record: HistoryRecord): boolean =>
    record.r === 'op' && record.out === 'ok' && !record.dryRun && record.verb !== 'get' && record.verb !== 'list';
  return { writes: records.filter(changed).length, events: records.filter(({ r }) => r === 'event').length };
}

/** The log on the disk, of the recorded kinds and namespaces. */
async function dump(dataDir: string): Promise<Dump> {
  const backend = createSqliteBackend({ directory: join(dataDir, 'state'), clock: systemClock, log: silentLogger });
  const opened = await backend.open(AbortSignal.timeout(30_000));
  const rows: Dump['rows'][number][] = [];
  for await (const chunk of opened.rows) {
    for (const { revision, key, value } of chunk) {
      const [group, resource, ns = '', name = ''] = key.split('/');
      const recorded = (group === '' && resource === 'configmaps') || resource === 'poddisruptionbudgets';
      if (!recorded || !(NAMESPACES as readonly string[]).includes(ns) || !name.startsWith('o-')) continue;
      const stored = value && JSON.parse(new TextDecoder().decode(value));
      if (stored) stored.metadata.resourceVersion = String(revision);
      rows.push({ rv: revision, resource: resource as Resource, ns, name, ...(stored && { object: sightOf(stored) }) });
    }
  }
  assert.deepEqual(opened.corrupt, []);
  await backend.close();
  return { r: 'dump', rows };
}
