/** A control plane with the controllers of volumes and DataVolumes, over a real pool in a directory of its own. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createSigningKey } from '../../packages/apiserver/src/auth/service-account-tokens.ts';
import { createEventRecorder } from '../../packages/client/src/events/recorder.ts';
import { createInformer } from '../../packages/client/src/informer/informer.ts';
import { startUploadProxy } from '../../packages/coracle/src/upload-proxy/upload-proxy.ts';
import { createUploadTokens } from '../../packages/coracle/src/upload-proxy/upload-tokens.ts';
import type { AgentEnvironment } from '../../packages/node-agent/src/agent/environment.ts';
import { createUnmanagedPodStatus } from '../../packages/node-agent/src/agent/registration/other-pods.ts';
import { poolRequest } from '../../packages/node-agent/src/agent/requests/pool-requests.ts';
import { createVolumeReader } from '../../packages/node-agent/src/export/volume-content.ts';
import { createFills, type Fills } from '../../packages/node-agent/src/fill/fills.ts';
import { type ImageStore, openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { openPool, type Pool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock as clock } from '../../packages/runtime/src/clock/clock.ts';
import { type ApiResponse, NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger as log } from '../../packages/runtime/src/log/log.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { type ImageServer, startImageServer } from './image-server.ts';
import { newAuthority } from './listen-tls.ts';
import { partly } from './partly.ts';
import { type Row, type StoragePlane, startStoragePlane } from './storage-plane.ts';

export const DATA_VOLUMES_PATH = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes';

export interface FillPlane extends StoragePlane {
  readonly realPool: Pool;
  readonly images: ImageStore;
  readonly server: ImageServer;
  readonly directory: string;
  /** Makes a DataVolume of 16 MiB; `spec` goes before. */
  dataVolume(name: string, spec: object, metadata?: object): Promise<Row>;
  /** Waits for it; asks until `holds`. */
  dataVolumeSettled(name: string, holds: (object: Row) => boolean): Promise<Row>;
  /** What a guest would read of the claim. */
  contentOf(name: string): Promise<Buffer>;
  /** The port of the upload proxy, and what its tokens are signed with. */
  readonly uploads: { readonly port: number; readonly ca: string; readonly signingKey: string };
  /** Handle of its claim in the pool. */
  handleOf(name: string): Promise<string>;
}

/** Starts one, with more controllers of these names. */
export async function startFillPlane(more: readonly string[] = []): Promise<FillPlane> {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-fills-'));
  const stop = new AbortController();
  const realPool = await openPool({ directory: join(directory, 'claims'), clock, log, signal: stop.signal });
  const images = await openImageStore(join(directory, 'images'), { clock, log });
  const volumes = createVolumeReader(realPool, clock);
  const fills: Fills = createFills({ pool: realPool, images, clock, log, signal: stop.signal, stallMs: 1000 });
  const server = await startImageServer();
  const signingKey = await createSigningKey();
  const authority = await newAuthority();
  const proxy = await startUploadProxy({
    ...(await authority.issue({ commonName: 'p', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 })),
    host: '127.0.0.1',
    port: 0,
    pairFor: (name) => authority.issue({ commonName: 'e', dnsNames: [name], usage: 'server', days: 1 }),
    tokens: await createUploadTokens(signingKey, () => Date.now()),
    clock,
    log,
  });
  const ca = authority.certificate;
  const plane = await startStoragePlane(
    ['data-volume', 'garbage-collector-controller', 'local-volume-sweeper', 'scheduler', ...more],
    undefined,
    async () => async (request) => {
      try {
        return (await poolRequest({ pool: realPool, fills, volumes, allowed: true }, request)) as ApiResponse;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const body = new TextEncoder().encode(JSON.stringify(error.status));
        return { status: error.code, headers: { 'content-type': 'application/json' }, body };
      }
    },
    () => ({ uploadProxy: { url: `https://127.0.0.1:${proxy.port}`, ca, ...proxy } }),
    { signingKey },
  );
  await plane.admin('POST /api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  const room = { cpu: '4', memory: '4Gi', pods: '110', 'devices.kubevirt.io/tun': '1k' };
  await plane.admin('PATCH /api/v1/nodes/n1/status', { status: { capacity: room, allocatable: room } });
  await runPods(plane, { signal: stop.signal, addressesDirectory: join(directory, 'addresses') });
  const handleOf = async (name: string): Promise<string> =>
    (await plane.admin(`GET /api/v1/namespaces/default/persistentvolumeclaims/${name}`)).metadata.uid;
  return {
    ...plane,
    realPool,
    images,
    server,
    directory,
    dataVolume: (name, spec, metadata = {}) =>
      plane.admin(`POST ${DATA_VOLUMES_PATH}`, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { name, ...metadata },
        spec: { storage: { resources: { requests: { storage: '16Mi' } } }, ...spec },
      }),
    dataVolumeSettled: (name, holds) => plane.settled(`${DATA_VOLUMES_PATH}/${name}`, holds),
    uploads: { port: proxy.port, ca, signingKey },
    handleOf,
    async contentOf(name) {
      const disk = realPool.diskOf(await handleOf(name));
      const out = join(directory, `${name}.raw`);
      const graph = (one: typeof disk | NonNullable<typeof disk.backing>): object => ({
        driver: one.format,
        file: { driver: 'file', filename: one.file },
        ...(one.format === 'qcow2' && { backing: one.backing ? graph(one.backing) : null }),
      });
      const result = await run(['qemu-img', 'convert', '-O', 'raw', `json:${JSON.stringify(graph(disk))}`, out], {
        signal: NEVER,
        timeoutMs: 60_000,
      });
      assert.ok(result.ok, result.ok ? '' : result.message);
      return readFile(out);
    },
    async stop() {
      await plane.stop();
      stop.abort();
      await proxy.close();
      await fills.close();
      await realPool.close();
      await server.close();
      // A call that was under way when the controllers stopped may still write.
      await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** What an agent does with Pods of its node that are no launchers. */
async function runPods(
  { plane }: StoragePlane,
  at: Pick<AgentEnvironment, 'signal' | 'addressesDirectory'>,
): Promise<void> {
  const { signal } = at;
  const client = plane.clientForNode('n1');
  const events = createEventRecorder(client, { component: 'agent', clock, log });
  const report = createUnmanagedPodStatus(
    partly<AgentEnvironment>({ ...at, nodeName: 'n1', client, clock, log, events, hostIP: '127.0.0.1' }),
  );
  const pods = createInformer(client, PODS, { fieldSelector: 'spec.nodeName=n1', clock, log });
  pods.onChange(({ type, object }) => {
    if (type !== 'deleted') report(object);
  });
  void pods.start(signal);
  await pods.synced(signal);
}
