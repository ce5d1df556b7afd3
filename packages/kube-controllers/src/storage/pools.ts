/**
 * The pools of volumes that nodes serve, and how they are called: any Ready node that carries the label of a pool may be
 * asked, the next one when it cannot be reached. Calls may be repeated, so it does not matter which of them acted.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Node } from '@coracle/apimachinery/types/types';
import { createClient } from '@coracle/client/create-client';
import type { Informer } from '@coracle/client/informer/informer';
import type { PoolCall, PoolErrorReason } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';

/** Reaches the port of a node's agent; rejects when that names no endpoint. */
export type ConnectNode = (nodeName: string) => Promise<ApiHandler>;

/** A call that a pool refused, or for which it could not be reached (`Unreachable`). */
export class PoolCallError extends Error {
  readonly reason: PoolErrorReason | 'Unreachable';
  constructor(reason: PoolErrorReason | 'Unreachable', message: string) {
    super(message);
    this.name = 'PoolCallError';
    this.reason = reason;
  }
}

export interface Pools {
  /** Pools that some Ready node serves, in the order of their ids. */
  ready(): readonly string[];
  /** @throws PoolCallError */
  call<T>(pool: string, call: PoolCall, body: object, signal: AbortSignal): Promise<T>;
  /** The port of a Ready node that serves the pool. @throws PoolCallError */
  handler(pool: string): Promise<ApiHandler>;
}

export interface PoolsOptions {
  readonly nodes: Informer<Node>;
  readonly connect: ConnectNode;
  readonly clock: Clock;
}

/** A call that takes longer is given up and made again: it is recognised by its handles. */
const CALL_MS = 120_000;
const REASONS: readonly string[] = ['Invalid', 'NotFound', 'InUse', 'Conflict', 'NoSpace'];

export const poolOf = ({ metadata }: DeepReadonly<Node>): string | undefined => metadata.labels?.[POOL_LABEL];
const isReady = ({ status }: DeepReadonly<Node>): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;

/** Makes the way to the pools. */
export function createPools({ nodes, connect, clock }: PoolsOptions): Pools {
  const serving = (pool: string): string[] =>
    nodes
      .list()
      .filter((node) => poolOf(node) === pool && isReady(node))
      .map(({ metadata }) => metadata.name ?? '')
      .sort();
  return {
    ready: () =>
      [
        ...new Set(
          nodes
            .list()
            .filter(isReady)
            .flatMap((node) => poolOf(node) ?? []),
        ),
      ].sort(),
    async handler(pool) {
      const [name] = serving(pool);
      if (name === undefined) throw new PoolCallError('Unreachable', `no node that serves pool ${pool} is ready`);
      return connect(name);
    },
    async call<T>(pool: string, call: PoolCall, body: object, signal: AbortSignal): Promise<T> {
      let last = 'no node that serves it is ready';
      for (const name of serving(pool)) {
        const limit = createLinkedController(signal);
        const stop = clock.schedule(CALL_MS, () => limit.abort(new Error(`no reply within ${CALL_MS / 1000} s`)));
        try {
          const client = createClient(await connect(name));
          return (await client.raw('POST', `/storage/v1/${call}`, { body, signal: limit.signal })) as T;
        } catch (error) {
          if (signal.aborted) throw error;
          if (error instanceof ApiError && REASONS.includes(error.reason))
            throw new PoolCallError(error.reason as PoolErrorReason, error.message);
          last = `node ${name}: ${error instanceof Error ? error.message : String(error)}`;
        } finally {
          stop();
          limit.release();
        }
      }
      throw new PoolCallError('Unreachable', `pool ${pool} cannot be reached: ${last}`);
    },
  };
}
