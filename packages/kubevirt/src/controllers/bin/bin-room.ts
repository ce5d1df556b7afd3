/** What the bin takes and may take: counted of the pools, shown on each record, and kept within bounds. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import type { PoolFacts } from '@coracle/cluster-rules/storage/pool-calls';
import type { Logger } from '@coracle/runtime/log/log';
import { DELETED_VIRTUAL_MACHINE_CONTENTS, type DeletedVirtualMachineContent } from '../../kinds/kinds.ts';
import { type BinEntry, type Eviction, evictions } from '../../rules/bin/bin-bounds.ts';
import { heldHandles } from '../../rules/bin/bin-names.ts';
import { type CallPool, type Content, poolReason } from './bin-pass.ts';

export interface BinRoom {
  readonly contents: readonly Content[];
  readonly client: Client;
  readonly callPool: CallPool;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Hears of each that goes, before it does. */
  readonly onEviction: (content: Content, eviction: Eviction) => void;
}

/** Counts once, and begins the end of those that the bin may not hold. */
export async function countRoom(room: BinRoom): Promise<void> {
  const { contents, client, signal } = room;
  const pools = await poolsOf(room);
  const spaces = Object.fromEntries(
    [...pools].map(([pool, { freeBytes, totalBytes = 0 }]) => [pool, { free: freeBytes, total: totalBytes }]),
  );
  const entries = new Map<string, BinEntry>();
  for (const content of contents) {
    const disks = disksOf(content, pools);
    const name = content.metadata.name ?? '';
    const phase = content.status?.phase ?? 'Deleted';
    const isLeaving = isDeleting(content);
    const { deletedAt, bytes } = content.spec;
    entries.set(name, { name, deletedAt, bytes, disks, isLeaving, isBusy: isLeaving || phase !== 'Deleted' });
    const usedBytes = Object.values(disks).reduce((sum, each) => sum + each, 0);
    const isKnown = heldHandles(content.metadata.labels).length === 0 || Object.keys(disks).length > 0;
    if (content.status?.phase === undefined || !isKnown || content.status.usedBytes === usedBytes) continue;
    const after = { ...content, status: { ...content.status, usedBytes } };
    await orAbsent(
      commit<DeletedVirtualMachineContent>(client, DELETED_VIRTUAL_MACHINE_CONTENTS, {
        before: content,
        after,
        signal,
      }),
    );
  }
  for (const eviction of evictions([...entries.values()], spaces)) {
    const content = contents.find(({ metadata }) => metadata.name === eviction.name);
    if (!content) continue;
    room.onEviction(content, eviction);
    await removeContent(client, content, signal);
  }
}

/** Begins the end of a content, if it is still the one that was looked at. */
export async function removeContent(client: Client, content: Content, signal: AbortSignal): Promise<void> {
  const { name = '', uid = '' } = content.metadata;
  const preconditions = { uid };
  await orAbsent(client.delete(DELETED_VIRTUAL_MACHINE_CONTENTS, { namespace: '', name }, { preconditions, signal }));
}

/** Pools with volumes of the bin; those that cannot be asked are left out. */
async function poolsOf({ contents, callPool, log, signal }: BinRoom): Promise<ReadonlyMap<string, PoolFacts>> {
  const found = new Map<string, PoolFacts>();
  const names = new Set(contents.flatMap(({ spec }) => (spec.volumes ?? []).flatMap(({ pool }) => pool ?? [])));
  for (const pool of names) {
    try {
      found.set(pool, await callPool<PoolFacts>(pool, 'inspect', {}, signal));
    } catch (error) {
      if (poolReason(error) === undefined) throw error;
      log.debug('space of the bin in a pool not counted', { pool, error: (error as Error).message });
    }
  }
  return found;
}

/** Bytes of the disks that a content still holds, by pool. */
function disksOf(content: Content, pools: ReadonlyMap<string, PoolFacts>): Record<string, number> {
  const held = new Set(heldHandles(content.metadata.labels));
  const disks: Record<string, number> = {};
  for (const { pool, handle } of content.spec.volumes ?? []) {
    if (pool === undefined || handle === undefined || !held.has(handle)) continue;
    const volume = pools.get(pool)?.volumes.find((each) => each.handle === handle);
    if (volume) disks[pool] = (disks[pool] ?? 0) + volume.usedBytes;
  }
  return disks;
}
