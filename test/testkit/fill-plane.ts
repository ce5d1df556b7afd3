/** A control plane with the controllers of volumes and DataVolumes, over a real pool in a directory of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { poolRequest } from '../../packages/node-agent/src/agent/requests/pool-requests.ts';
import { createFills, type Fills } from '../../packages/node-agent/src/fill/fills.ts';
import { type ImageStore, openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { openPool, type Pool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock as clock } from '../../packages/runtime/src/clock/clock.ts';
import type { ApiResponse } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger as log } from '../../packages/runtime/src/log/log.ts';
import { type ImageServer, startImageServer } from './image-server.ts';
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
  /** Handle of its claim in the pool. */
  handleOf(name: string): Promise<string>;
}

/** Starts one, with more controllers of these names. */
export async function startFillPlane(more: readonly string[] = []): Promise<FillPlane> {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-fills-'));
  const stop = new AbortController();
  const realPool = await openPool({ directory: join(directory, 'claims'), clock, log, signal: stop.signal });
  const images = await openImageStore(join(directory, 'images'), { clock, log });
  const fills: Fills = createFills({ pool: realPool, images, clock, log, signal: stop.signal, stallMs: 1000 });
  const server = await startImageServer();
  const plane = await startStoragePlane(
    ['data-volume', 'garbage-collector-controller', 'local-volume-sweeper', ...more],
    undefined,
    async () => async (request) => {
      try {
        return (await poolRequest({ pool: realPool, fills, allowed: true }, request)) as ApiResponse;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const body = new TextEncoder().encode(JSON.stringify(error.status));
        return { status: error.code, headers: { 'content-type': 'application/json' }, body };
      }
    },
  );
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
    handleOf: async (name) =>
      (await plane.admin(`GET /api/v1/namespaces/default/persistentvolumeclaims/${name}`)).metadata.uid,
    async stop() {
      await plane.stop();
      stop.abort();
      await fills.close();
      await realPool.close();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
