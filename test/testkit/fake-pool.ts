/** A pool of volumes in memory, behind an agent's port as storage controllers call it, and a node that serves it. */

import type {
  CreateSnapshots,
  CreateVolume,
  DeleteHandle,
  ExpandVolume,
} from '../../packages/cluster-rules/src/storage/pool-calls.ts';
import { POOL_LABEL } from '../../packages/cluster-rules/src/storage/pool-names.ts';
import type { ApiHandler } from '../../packages/runtime/src/http/seam.ts';

interface FakeVolume {
  bytes: number;
  format: 'raw' | 'qcow2';
  /** What it was made from: `snapshot/HANDLE` or `volume/HANDLE`. */
  from?: string;
  provisionalSince?: string;
  /** 0 when absent. */
  usedBytes?: number;
}

export interface FakePool {
  readonly volumes: Map<string, FakeVolume>;
  readonly snapshots: Map<string, { readonly volume: string; readonly bytes: number; readonly call: number }>;
  /** Every call, in order. */
  readonly calls: string[];
  /** Refuses the next calls of these names, each with that reason. */
  readonly refuse: Map<string, string>;
  /** Handles of volumes that a guest has: they are not deleted. */
  readonly inUse: Set<string>;
  /** What `inspect` says is free. */
  freeBytes: number;
  totalBytes: number;
  readonly connect: (nodeName: string) => Promise<ApiHandler>;
}

/** Makes an empty pool. */
export function createFakePool(id = 'pool-1'): FakePool {
  const volumes: FakePool['volumes'] = new Map();
  const snapshots = new Map<string, { volume: string; bytes: number; call: number }>();
  const calls: string[] = [];
  const refuse = new Map<string, string>();
  const inUse = new Set<string>();

  const act = (name: string, body: unknown): object | string => {
    switch (name) {
      case 'createVolume': {
        const { handle, bytes, format, source, provisional } = body as CreateVolume;
        const from = source && `${source.kind}/${source.handle}`;
        if (from && !(source.kind === 'volume' ? volumes : snapshots).has(source.handle)) return 'NotFound';
        if (!volumes.has(handle)) {
          const since = provisional === true && { provisionalSince: new Date().toISOString() };
          volumes.set(handle, { bytes, format, ...(from && { from }), ...since });
        }
        const held = volumes.get(handle)!;
        return { handle, bytes: held.bytes, format: held.format };
      }
      case 'confirmVolume':
        delete volumes.get((body as DeleteHandle).handle)?.provisionalSince;
        return {};
      case 'expandVolume': {
        const { handle, bytes } = body as ExpandVolume;
        const held = volumes.get(handle);
        if (!held) return 'NotFound';
        held.bytes = Math.max(bytes, held.bytes);
        return { handle, bytes: held.bytes, format: held.format };
      }
      case 'deleteVolume':
        if (inUse.has((body as DeleteHandle).handle)) return 'InUse';
        volumes.delete((body as DeleteHandle).handle);
        return {};
      case 'deleteSnapshot':
        snapshots.delete((body as DeleteHandle).handle);
        return {};
      case 'createSnapshots': {
        const { snapshots: wanted } = body as CreateSnapshots;
        if (wanted.some(({ volume }) => !volumes.has(volume))) return 'NotFound';
        for (const { handle, volume } of wanted)
          if (!snapshots.has(handle))
            snapshots.set(handle, { volume, bytes: volumes.get(volume)!.bytes, call: calls.length });
        const createdAt = '2030-01-01T00:00:00Z';
        return { snapshots: wanted.map(({ handle }) => ({ handle, bytes: snapshots.get(handle)!.bytes, createdAt })) };
      }
      default:
        return {
          pool: id,
          freeBytes: pool.freeBytes,
          totalBytes: pool.totalBytes,
          volumes: [...volumes].map(([handle, { bytes, provisionalSince, usedBytes = 0 }]) => ({
            handle,
            bytes,
            usedBytes,
            ...(provisionalSince !== undefined && { provisionalSince }),
          })),
          snapshots: [...snapshots.keys()].map((handle) => ({ handle, usedBytes: 0 })),
        };
    }
  };
  const pool: FakePool = {
    freeBytes: 1e12,
    totalBytes: 2e12,
    volumes,
    snapshots,
    calls,
    refuse,
    inUse,
    connect: async () => async (request) => {
      const name = request.path.replace('/storage/v1/', '');
      const text = new TextDecoder().decode(request.body);
      calls.push(name === 'inspect' ? name : `${name} ${text}`);
      const refused = refuse.get(name);
      refuse.delete(name);
      const reply = refused ?? act(name, text === '' ? {} : JSON.parse(text));
      const body =
        typeof reply === 'string'
          ? {
              kind: 'Status',
              apiVersion: 'v1',
              status: 'Failure',
              reason: reply,
              message: `refused: ${reply}`,
              code: 409,
            }
          : reply;
      return {
        status: typeof reply === 'string' ? 409 : 200,
        headers: { 'content-type': 'application/json' },
        body: new TextEncoder().encode(JSON.stringify(body)),
      };
    },
  };
  return pool;
}

/** A Ready node that serves the pool. */
export const poolNode = (name: string, pool = 'pool-1') => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { [POOL_LABEL]: pool } },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});
