/**
 * A RootSync over a repository of 1,000 objects, as a user has it: `coracle up` as its own process, `git push` to a server of
 * the repository on loopback. From the push to the applied object, the first sync of all, drift put back, and what it costs
 * while nothing happens: of the component in a process of its own, with the git that it starts.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '../packages/apimachinery/src/meta/object.ts';
import { CONFIG_MAPS } from '../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../packages/client/src/client.ts';
import { ENGINE_FLAGS } from '../packages/coracle/src/config/program-files.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS, type Sync } from '../packages/gitops/src/kinds/kinds.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { createRepository, type GitRepository, serveRepository } from '../test/testkit/git-repository.ts';
import { LAUNCHER, newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { cpuMicros } from './process-cpu.ts';
import { residentMib } from './process-memory.ts';

const OBJECTS = 1000;
/** `CORACLE_BENCH_RUNS=1` is for a first look. */
const RUNS = Number(process.env['CORACLE_BENCH_RUNS'] ?? 3);
const PUSHES = 10;
const DRIFTS = 10;
const PERIOD = '1s';
/** What a sync has without a word. */
const IDLE_PERIOD = '15s';
const IDLE_SECONDS = 30;
const SETTLE_MS = 40_000;
const LIMIT_MS = 120_000;
const NAME = 'bench';

type Map = KubeObject & { data?: Record<string, string> };

const fileOf = (index: number): string => `ns-${index % 10}/map-${index}.yaml`;
const manifest = (index: number, value: string): string =>
  [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    `  name: map-${index}`,
    '  namespace: default',
    '  labels:',
    '    app: bench',
    'data:',
    `  value: "${value}"`,
    `  text: "${'x'.repeat(500)}"`,
    '',
  ].join('\n');

/** Waits for a state that a watch shows: asking again and again would be part of what is measured. */
async function until<T extends KubeObject>(
  client: Client,
  { type, namespace, name }: { type: Parameters<Client['watch']>[0]; namespace: string; name: string },
  test: (object: T) => boolean,
): Promise<number> {
  const signal = AbortSignal.timeout(LIMIT_MS);
  const events = client.watch<T>(type as never, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
    sendInitialEvents: true,
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: true,
    signal,
  });
  for await (const { type: change, object } of events)
    if (change !== 'BOOKMARK' && change !== 'ERROR' && test(object)) return performance.now();
  throw new Error(`${name} did not come to be as expected`);
}

const untilSynced = (client: Client, commit: string): Promise<number> =>
  until<Sync>(client, { type: ROOT_SYNCS as never, namespace: CONFIG_SYNC_NAMESPACE, name: NAME }, ({ status }) => {
    const errors = status?.sync?.errors?.[0] ?? status?.source?.errors?.[0];
    if (errors) throw new Error(errors.errorMessage);
    return status?.lastSyncedCommit === commit;
  });
const untilMap = (client: Client, index: number, value: string): Promise<number> =>
  until<Map>(
    client,
    { type: CONFIG_MAPS as never, namespace: 'default', name: `map-${index}` },
    ({ data }) => data?.['value'] === value,
  );

const createSync = (client: Client, repo: string): Promise<Sync> =>
  client.create(ROOT_SYNCS, {
    apiVersion: 'configsync.gke.io/v1beta1',
    kind: 'RootSync',
    metadata: {
      namespace: CONFIG_SYNC_NAMESPACE,
      name: NAME,
      annotations: { 'configsync.gke.io/deletion-propagation-policy': 'Foreground' },
    },
    spec: { sourceFormat: 'unstructured', git: { repo, branch: 'main', auth: 'none', period: PERIOD } },
  });

/** What a process has used, with the children that it waited for, microseconds. */
function cpuWithChildren(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (cpuMicros(pid) ?? 0) + (Number(fields[13]) + Number(fields[14])) * 10_000;
}

export async function benchGitops({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  for (let run = 0; run < RUNS; run++) {
    const repository = await createRepository();
    const server = await serveRepository(repository);
    const dir = newDataDir();
    const plane = await startPlane(dir, { controllers: '*,-gitops' });
    const admin = adminOf(dir);
    const component = await startComponent(dir);
    try {
      await measure({
        runs,
        repository,
        repo: server.url,
        client: admin.client,
        pid: component.pid,
        plane: plane.process.pid,
      });
    } finally {
      await component.stop();
      await admin.close();
      await plane.process.kill('SIGTERM');
      await server.stop();
      repository.remove();
      removeDataDir(dir);
    }
    say(`run ${run + 1} of ${RUNS} done`);
  }
  return { state: 'measured', figures: runs.figures() };
}

interface Measured {
  readonly runs: Runs;
  readonly repository: GitRepository;
  readonly repo: string;
  readonly client: Client;
  /** Of the component. */
  readonly pid: number;
  /** Of the control plane. */
  readonly plane: number;
}

async function measure({ runs, repository, repo, client, pid, plane }: Measured): Promise<void> {
  const all = Object.fromEntries(Array.from({ length: OBJECTS }, (_, index) => [fileOf(index), manifest(index, '0')]));
  const first = await repository.commit(all);
  await sleep(2000);
  const before = residentMib(pid)!;
  const cpu = () => (cpuWithChildren(pid) + cpuWithChildren(plane)) / 1000;
  const idle = cpu();
  const began = performance.now();
  await createSync(client, repo);
  runs.add('gitops.full', 'ms', { value: (await untilSynced(client, first)) - began });
  runs.add('cpu.gitops.full', 'ms', { value: cpu() - idle });

  for (let push = 0; push < PUSHES; push++) {
    const index = (push * 97) % OBJECTS;
    // At any moment of the period.
    await sleep(Math.round((1000 * push) / PUSHES));
    await repository.commit({ [fileOf(index)]: manifest(index, `pushed-${push}`) });
    const before = cpu();
    const pushed = performance.now();
    runs.add('gitops.push', 'ms', { value: (await untilMap(client, index, `pushed-${push}`)) - pushed });
    runs.add('gitops.synced', 'ms', {
      value: (await untilSynced(client, await repository.git('rev-parse', 'main'))) - pushed,
    });
    runs.add('cpu.gitops.push', 'ms', { value: cpu() - before });
  }

  for (let drift = 0; drift < DRIFTS; drift++) {
    const index = 500 + drift;
    const changed = performance.now();
    await client.patch(
      CONFIG_MAPS,
      { namespace: 'default', name: `map-${index}` },
      { type: 'merge', body: { data: { value: 'drifted' } } },
    );
    runs.add('gitops.drift', 'ms', { value: (await untilMap(client, index, '0')) - changed });
  }

  await client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name: NAME },
    { type: 'merge', body: { spec: { git: { period: IDLE_PERIOD } } } },
  );
  // The engine gives back what it took for the first sync once little happens.
  await sleep(SETTLE_MS);
  const at = cpuWithChildren(pid);
  await sleep(IDLE_SECONDS * 1000);
  runs.add('gitops.idle.cpu', '%', { value: (cpuWithChildren(pid) - at) / (IDLE_SECONDS * 10_000) });
  runs.add('gitops.idle.memory', 'MiB', { value: residentMib(pid)! - before });
}

/** `coracle controllers` with this one alone, as it runs against a cluster. */
async function startComponent(dir: string): Promise<{ readonly pid: number; stop(): Promise<void> }> {
  const root = resolve(import.meta.dirname, '..');
  const child = spawn(
    process.execPath,
    [...ENGINE_FLAGS, join(root, 'packages/coracle/src/main.ts'), 'controllers', '--controllers', 'gitops'],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...LAUNCHER, KUBECONFIG: join(dir, 'kubeconfig') } },
  );
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  await new Promise<void>((ready, fail) => {
    child.stdout!.once('data', () => ready());
    child.once('exit', (code) => fail(new Error(`coracle controllers ended with ${code}`)));
  });
  return {
    pid: child.pid!,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
