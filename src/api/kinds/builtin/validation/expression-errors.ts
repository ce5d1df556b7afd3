/** Errors of CEL expressions that objects hold. */
import type { CelCompileError } from '../../../cel/cel.ts';
import type { FieldError } from '../../../meta/status.ts';
import { invalid } from './field-errors.ts';

/** An expression that does not compile. What only fails as a program is an internal error, as upstream has it. */
export const expressionFault = (field: string, expression: string, error: CelCompileError): FieldError =>
  error.reason === 'program'
    ? { type: 'InternalError', field, detail: error.message }
    : invalid(field, expression, error.message);
