/** What is said when no function of a name takes the values it is called with. */
import { CelEvaluationError, noOverload } from './errors.ts';
import { runtimeTypeName } from './values.ts';

/** Operators are not named; functions are, with the types of the values. */
export const noFit = (name: string, values: readonly unknown[]): CelEvaluationError =>
  /^\w/.test(name) && !name.startsWith('_')
    ? new CelEvaluationError(`no such overload: ${name}(${values.map(runtimeTypeName).join(', ')})`)
    : noOverload();
