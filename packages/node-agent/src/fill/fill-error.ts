import type { FillProblem } from '@coracle/cluster-rules/storage/pool-calls';

/** Why a volume could not be filled, in words for whoever asked for it. */
export class FillError extends Error {
  readonly problem: FillProblem;
  constructor(problem: FillProblem, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'FillError';
    this.problem = problem;
  }
}

/** The problem at the root of any failure: no room, else what came from the source. */
export function asFillError(error: unknown): FillError {
  if (error instanceof FillError) return error;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if ((cause as NodeJS.ErrnoException).code === 'ENOSPC')
      return new FillError('NoSpace', 'no room is left on the disk of the pool', { cause: error });
  return new FillError('Source', error instanceof Error ? error.message : String(error), { cause: error });
}
