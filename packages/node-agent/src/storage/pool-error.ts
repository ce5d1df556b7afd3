import type { PoolErrorReason } from '@coracle/cluster-rules/storage/pool-calls';

/** A call to a pool that is refused. `Conflict` may be repeated a moment later; `InUse` once a guest has ended. */
export class PoolError extends Error {
  readonly reason: PoolErrorReason;
  constructor(reason: PoolErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'PoolError';
    this.reason = reason;
  }
}
