/** The three ways a CEL expression can fail. Messages are cel-go's and the API server's. */

const PREFIXES = { compile: 'compilation failed: ', program: 'program instantiation failed: ', result: '' };

/** The expression cannot be used: syntax, types, or the kind of its result. */
export class CelCompileError extends Error {
  /**
   * `compile`: syntax and types, the message starts with `compilation failed: `. `result`: `must evaluate to bool`.
   * `program`: it is well typed and something constant in it fails, `program instantiation failed: `.
   */
  readonly reason: 'compile' | 'program' | 'result';
  /** Without the prefix: as cel-go reports it, `ERROR: <input>:LINE:COLUMN: ...` and the line with a mark below the place. */
  readonly issues: string;

  constructor(reason: 'compile' | 'program' | 'result', issues: string) {
    super(`${PREFIXES[reason]}${issues}`);
    this.name = 'CelCompileError';
    this.reason = reason;
    this.issues = issues;
  }
}

/**
 * The evaluation failed: `no such key: x`, `index out of bounds: 3`, `division by zero`, `no such overload`, ...
 * An `instanceof Error` without a stack: `&&`, `||` and optional access swallow these on the hot path, and a stack costs
 * more than the whole evaluation.
 */
export interface CelEvaluationError extends Omit<Error, 'message'> {}
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the prototype is set below, see the comment above
export class CelEvaluationError {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
Object.setPrototypeOf(CelEvaluationError.prototype, Error.prototype);
Object.defineProperty(CelEvaluationError.prototype, 'name', { value: 'CelEvaluationError' });

/** Ends an evaluation. */
export function fail(message: string): never {
  throw new CelEvaluationError(message);
}

/** Whether a text can be read: `read` neither throws nor gives undefined. */
export function isReadable(read: (text: string) => unknown, text: string): boolean {
  try {
    return read(text) !== undefined;
  } catch {
    return false;
  }
}

/** Whether an evaluation came out as a failure: inside of an expression a failure is a value like any other. */
export const isFailure = (value: unknown): value is CelEvaluationError => value instanceof CelEvaluationError;

/**
 * What was thrown while a value was made, as the failure it stands for. Hands on everything that is no failed evaluation,
 * above all an exhausted budget.
 */
export function failureOf(error: unknown): CelEvaluationError {
  if (error instanceof CelEvaluationError) return error;
  // Data too deep or a text too long is an evaluation that failed, not an error of ours.
  if (error instanceof RangeError) return new CelEvaluationError(error.message);
  // A null can get past the static types when a schema is nullable.
  // Nor has data of another kind than its schema says, which BigInt() refuses.
  if (error instanceof TypeError || error instanceof SyntaxError) return noOverload();
  throw error;
}

/** The value was made, but an object in it bears the name of another field than the one it stands in. */
export class CelTypeNameError extends CelEvaluationError {}

/** No function of that name takes these values. */
export const noOverload = (): CelEvaluationError => new CelEvaluationError('no such overload');

const BUDGET_MESSAGES = {
  call: 'operation cancelled: actual cost limit exceeded',
  total: 'validation failed due to running out of cost budget, no further validation rules will be run',
};

/**
 * The expression costs too much. `call`: this one evaluation went over the limit of one call. `total`: what is left of the
 * shared budget does not suffice.
 */
export class CelBudgetError extends Error {
  readonly scope: 'call' | 'total';

  constructor(scope: 'call' | 'total') {
    super(BUDGET_MESSAGES[scope]);
    this.name = 'CelBudgetError';
    this.scope = scope;
  }
}
