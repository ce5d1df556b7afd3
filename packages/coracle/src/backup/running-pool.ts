/**
 * The volumes of a control plane that runs: held still by a snapshot of each, those of one guest at one moment, its file
 * systems frozen by the guest agent where there is one.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { NODES, PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import { createClient } from '@coracle/client/create-client';
import type { CreateSnapshots, DeleteHandle, PoolCall, PoolFacts } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kubevirt';
import { parseState } from '@coracle/node-agent/storage/pool-state';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createNodeConnector } from '../compose/node-connection.ts';
import { clusterFrom } from '../config/cluster.ts';
import type { DataDir } from '../config/data-dir.ts';
import { BackupError } from './backup-error.ts';
import { forgetSnapshots, leftSnapshots, noteSnapshots } from './backup-journal.ts';
import { kindOfPath } from './manifest.ts';
import type { PoolView, SourceFile } from './pool-files.ts';
import { poolOfBackup, type TakenSnapshot } from './pool-state-of-backup.ts';

export interface RunningPoolOptions {
  readonly dir: DataDir;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The calls to the pool, through an agent that serves it. */
export interface PoolCaller {
  call(name: PoolCall, body: object): Promise<unknown>;
}

/** How long a volume may be moving, starting or ending. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 500;
/** A guest that was frozen and forgotten thaws by itself. */
const THAW_AFTER = '60s';

/** Takes snapshots of all volumes of the pool. Throws BackupError; no snapshot is left then. */
export async function holdRunningPool(options: RunningPoolOptions): Promise<PoolView> {
  const { dir, signal } = options;
  const cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment: {} });
  const [certificate, key] = await Promise.all(
    ['virt-api.crt', 'virt-api.key'].map((name) => readFile(join(dir.pki, name), 'utf8')),
  );
  const connector = createNodeConnector({ certificate: certificate!, key: key! });
  const close = async (): Promise<void> => {
    await connector.close();
    await cluster.close();
  };
  try {
    const id = await poolId(dir);
    const node = id === undefined ? undefined : await servingNode(cluster.client, id, signal);
    if (node === undefined) {
      await close();
      return { files: [], notes: [], release: async () => {}, unserved: true };
    }
    const agent = createClient(await connector.connect(node, cluster.client), { userAgent: 'coracle-backup' });
    const pool: PoolCaller = { call: (name, body) => agent.raw('POST', `/storage/v1/${name}`, { body, signal }) };
    const view = await holdPool(cluster.client, pool, options);
    return {
      ...view,
      release: () => view.release().finally(close),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The id in the metadata of the pool; undefined where there is none. */
async function poolId(dir: DataDir): Promise<string | undefined> {
  return (await readState(dir))?.id;
}

async function readState(dir: DataDir) {
  const path = join(dir.root, 'claims/pool.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const state = parseState(text);
  if (!state) throw new BackupError(`${path} is damaged`);
  return state;
}

async function servingNode(client: Client, pool: string, signal: AbortSignal): Promise<string | undefined> {
  const { items } = await client.list(NODES, { labelSelector: `${POOL_LABEL}=${pool}`, signal });
  return items.find((node) => isConditionTrue(node, 'Ready'))?.metadata.name;
}

/** The same over a way to the pool that is open. For `holdRunningPool`, and for tests. */
export async function holdPool(
  client: Client,
  pool: PoolCaller,
  { dir, clock, signal }: RunningPoolOptions,
): Promise<PoolView> {
  for (const handle of await leftSnapshots(dir.root))
    await pool.call('deleteSnapshot', { handle } satisfies DeleteHandle);
  const { volumes } = (await pool.call('inspect', {})) as PoolFacts;
  const groups = await groupVolumes(
    client,
    volumes.map(({ handle }) => handle),
    signal,
  );
  const taken: TakenSnapshot[] = [];
  const all = groups.map((group) => ({
    ...group,
    snapshots: group.volumes.map((volume) => ({ handle: randomUUID(), volume })),
  }));
  await noteSnapshots(
    dir.root,
    all.flatMap(({ snapshots }) => snapshots.map(({ handle }) => handle)),
  );
  const scratch = await mkdtemp(join(tmpdir(), 'coracle-backup-'));
  const release = async (): Promise<void> => {
    await rm(scratch, { recursive: true, force: true });
    for (const { handle } of all.flatMap(({ snapshots }) => snapshots)) await pool.call('deleteSnapshot', { handle });
    await forgetSnapshots(dir.root);
  };
  try {
    const notes: string[] = [];
    for (const { vmi, snapshots } of all) {
      const outcome = await takeGroup(client, pool, { vmi, snapshots, clock, signal });
      if (outcome === 'taken') taken.push(...snapshots);
      else notes.push(`volume ${snapshots[0]!.volume} was removed while the backup was made`);
    }
    const state = await readState(dir);
    if (!state) throw new BackupError('the metadata of the pool is gone');
    const kept = poolOfBackup(state, taken);
    const metadata = join(scratch, 'pool.json');
    await writeFile(metadata, JSON.stringify(kept.state), { mode: 0o600 });
    const at = (path: string): SourceFile => ({ source: join(dir.root, 'claims', path), path: `claims/${path}` });
    const files: SourceFile[] = [{ source: metadata, path: 'claims/pool.json' }, ...kept.layers.map(at)];
    for (const handle of Object.keys(kept.state.volumes)) {
      const note = at(`${handle}/claim.json`);
      if (await stat(note.source).catch(() => undefined)) files.push(note);
    }
    for (const { from, to } of kept.files) files.push(...(await filesOf(dir, from, to)));
    return { files, notes, release };
  } catch (error) {
    await release().catch(() => {});
    throw error;
  }
}

/** The regular files below `files/` of one handle, under the name of another. */
async function filesOf(dir: DataDir, from: string, to: string): Promise<SourceFile[]> {
  const root = join(dir.root, 'claims', from, 'files');
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const source = join(entry.parentPath, entry.name);
      return { source, path: `claims/${to}/files${source.slice(root.length)}` };
    })
    .filter(({ path }) => kindOfPath(path) === 'chunked');
}

interface Group {
  /** The guest that has them open. */
  readonly vmi?: ReadonlyVmi;
  readonly volumes: readonly string[];
}

/** The volumes of each guest that runs together, the others one by one. */
async function groupVolumes(client: Client, handles: readonly string[], signal: AbortSignal): Promise<Group[]> {
  const claims = new Map<string, string>();
  for (const { metadata } of (await client.list(PERSISTENT_VOLUME_CLAIMS, { signal, metadataOnly: true })).items)
    claims.set(`${metadata.namespace}/${metadata.name}`, metadata.uid ?? '');
  const left = new Set(handles);
  const groups: Group[] = [];
  for (const vmi of (await client.list(VIRTUAL_MACHINE_INSTANCES, { signal })).items) {
    if (vmi.status?.phase !== 'Running') continue;
    const names = (vmi.spec.volumes ?? []).flatMap(
      ({ persistentVolumeClaim, dataVolume }) => persistentVolumeClaim?.claimName ?? dataVolume?.name ?? [],
    );
    const volumes = names
      .map((name) => claims.get(`${vmi.metadata.namespace}/${name}`) ?? '')
      .filter((handle) => left.delete(handle));
    if (volumes.length > 0) groups.push({ vmi, volumes });
  }
  return [...groups, ...[...left].map((volume) => ({ volumes: [volume] }))];
}

/** Takes the snapshots of one group at one moment; waits while its guest starts, ends or moves. */
async function takeGroup(
  client: Client,
  pool: PoolCaller,
  {
    vmi,
    snapshots,
    clock,
    signal,
  }: {
    readonly vmi?: ReadonlyVmi | undefined;
    readonly snapshots: CreateSnapshots['snapshots'];
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<'taken' | 'gone'> {
  const deadline = clock.monotonic() + PATIENCE_MS;
  const act = (name: string, body: object): Promise<unknown> =>
    client.raw(
      'PUT',
      `/apis/subresources.kubevirt.io/v1/namespaces/${vmi?.metadata.namespace}/virtualmachineinstances/${vmi?.metadata.name}/${name}`,
      { body, signal },
    );
  const hasAgent = isConditionTrue(vmi, 'AgentConnected');
  for (;;) {
    // A guest that cannot be frozen is copied as it would look after a power cut.
    const frozen =
      hasAgent &&
      (await act('freeze', { unfreezeTimeout: THAW_AFTER }).then(
        () => true,
        () => false,
      ));
    try {
      await pool.call('createSnapshots', { snapshots } satisfies CreateSnapshots);
      return 'taken';
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.reason === ('NotFound' as string) && snapshots.length === 1) return 'gone';
      if (error.code !== 409 || clock.monotonic() > deadline)
        throw new BackupError(
          `${vmi ? `the volumes of ${vmi.metadata.namespace}/${vmi.metadata.name}` : `volume ${snapshots[0]?.volume}`}: ${error.message}`,
        );
    } finally {
      if (frozen) await act('unfreeze', {}).catch(() => {});
    }
    await clock.sleep(RETRY_MS, signal);
  }
}
