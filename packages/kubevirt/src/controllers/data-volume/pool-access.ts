/** The pools of volumes as the controller sees them; how they are reached is decided where it is put together. */
import type { PoolCall } from '@coracle/cluster-rules/storage/pool-calls';
import type { ApiHandler } from '@coracle/runtime/http/seam';

export interface PoolAccess {
  /** Pools that some Ready node serves. */
  ready(): readonly string[];
  /** Throws an Error with the `reason` of a refusal, or `Unreachable`. */
  call<T>(pool: string, call: PoolCall, body: object, signal: AbortSignal): Promise<T>;
  /** The port of a Ready node that serves the pool. Rejects when there is none. */
  handler(pool: string): Promise<ApiHandler>;
}

/** The reason of a call that failed; undefined for any other error. */
export const reasonOf = (error: unknown): string | undefined =>
  error instanceof Error && error.name === 'PoolCallError' ? (error as Error & { reason?: string }).reason : undefined;
