/**
 * Finds volumes of pools that no PersistentVolume was ever written for: the provisioner was killed between the two, and
 * the claim went before it came back. They are deleted after a while; one that a PersistentVolume stands for is confirmed.
 * Only volumes that were made provisional are looked at: what policy Retain leaves behind is not among them.
 */
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import { type Controller, createController, requeueAfter, source } from '@coracle/client/controller/controller';
import type { PoolFacts } from '@coracle/cluster-rules/storage/pool-calls';
import { placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import { createPools, PoolCallError, poolOf } from './pools.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';

/** Rights the controller needs, and no others. */
export const sweeperRules = policyRules(
  'list : core : persistentvolumes persistentvolumeclaims',
  'get list watch : core : nodes',
);

/** A volume that nothing stands for is left alone for so long: its claim may be about to be provisioned once more. */
export const ORPHAN_MS = 600_000;
/** Pools are looked through so often. */
const SWEEP_MS = 300_000;

/** Makes the controller. Its keys are pools. */
export function createSweeperController(options: PoolControllerOptions): Controller {
  const { client, informers, clock } = options;
  const nodes = informers.of(NODES);
  const pools = createPools({ nodes, connect: options.connect, clock });

  /** False while a guest has it, or reads what lies on it. */
  const remove = async (pool: string, handle: string, signal: AbortSignal): Promise<boolean> => {
    try {
      await pools.call(pool, 'deleteVolume', { handle }, signal);
      return true;
    } catch (error) {
      if (error instanceof PoolCallError && (error.reason === 'InUse' || error.reason === 'Conflict')) return false;
      throw error;
    }
  };

  return createController({
    ...options,
    name: 'local-volume-sweeper',
    concurrency: 1,
    sources: [
      source(nodes, (node, previous) => {
        const pool = poolOf(node);
        return pool !== undefined && (previous === undefined || poolOf(previous) !== pool)
          ? [{ namespace: '', name: pool }]
          : [];
      }),
    ],
    async reconcile({ name: pool }, { signal, log: passLog }) {
      if (!nodes.list().some((node) => poolOf(node) === pool)) return;
      const again = requeueAfter(SWEEP_MS);
      try {
        const { volumes, fills = [] } = await pools.call<PoolFacts>(pool, 'inspect', {}, signal);
        const provisional = volumes.filter(({ provisionalSince }) => provisionalSince !== undefined);
        if (provisional.length === 0 && fills.length === 0) return again;
        // Asked of the API and after the pool: what a cache does not show may be there, and absence decides here.
        const claims = (await client.list(PERSISTENT_VOLUME_CLAIMS, { signal })).items;
        const volumeObjects = (await client.list(PERSISTENT_VOLUMES, { signal })).items;
        const uids = new Set(claims.map(({ metadata }) => metadata.uid));
        const handles = new Set(volumeObjects.map((volume) => placeOf(volume)?.handle));
        // A fill begins after its claim was made: what has none any more is of use to nobody.
        for (const handle of fills) if (!uids.has(handle)) await remove(pool, handle, signal);
        for (const { handle, provisionalSince } of provisional) {
          if (handles.has(handle)) await pools.call(pool, 'confirmVolume', { handle }, signal);
          else if (!uids.has(handle) && clock.now() - Date.parse(provisionalSince ?? '') >= ORPHAN_MS) {
            const isGone = await remove(pool, handle, signal);
            if (isGone)
              passLog.info('volume that no PersistentVolume was written for deleted', { pool, volume: handle });
          }
        }
      } catch (error) {
        if (!(error instanceof PoolCallError)) throw error;
        passLog.debug('pool not looked through', { pool, error: error.message });
      }
      return again;
    },
  });
}
