/** What is said when no function of a name takes the values it is called with. */
import { CelEvaluationError, noOverload } from './errors.ts';
import { runtimeTypeName } from './values.ts';

/** Operators that upstream names when their first operand is of none of these kinds. */
const OPERANDS: Readonly<Record<string, string>> = {
  '_+_': 'bytes double duration int list string timestamp uint',
  '_-_': 'double duration int string timestamp uint',
  '_*_': 'double duration int string timestamp uint',
  '_/_': 'double duration int string timestamp uint',
  '_%_': 'duration int string timestamp uint',
  '-_': 'bool double duration int string timestamp',
  '_<_': 'bool bytes double duration int string timestamp uint',
  '_<=_': 'bool bytes double duration int string timestamp uint',
  '_>_': 'bool bytes double duration int string timestamp uint',
  '_>=_': 'bool bytes double duration int string timestamp uint',
  size: 'bytes duration list map string timestamp',
  sort: 'duration list string timestamp',
  '@sortByAssociatedKeys': 'duration list string timestamp',
};
/** Functions that upstream does not name when they do not fit. */
const UNNAMED = new Set(['!_', '@in', 'contains', 'endsWith', 'matches', 'startsWith']);

/** What is said when no function of a name takes these values. */
export function noFit(name: string, values: readonly unknown[]): CelEvaluationError {
  const kind = runtimeTypeName(values[0]).replace('google.protobuf.', '').toLowerCase();
  const operands = Object.hasOwn(OPERANDS, name) ? OPERANDS[name] : undefined;
  if (UNNAMED.has(name) || operands?.split(' ').includes(kind)) return noOverload();
  if (operands !== undefined) return new CelEvaluationError(`no such overload: ${name}`);
  return new CelEvaluationError(`no such overload: ${name}(${values.map(runtimeTypeName).join(', ')})`);
}
