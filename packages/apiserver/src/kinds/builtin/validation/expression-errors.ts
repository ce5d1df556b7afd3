/** Errors of CEL expressions that objects hold. */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import { invalid } from '@coracle/apimachinery/validation/field-errors';
import type { CelCompileError } from '@coracle/cel/cel';

/** An expression that does not compile. What only fails as a program is an internal error, as upstream has it. */
export const expressionFault = (field: string, expression: string, error: CelCompileError): FieldError =>
  error.reason === 'program'
    ? { type: 'InternalError', field, detail: error.message }
    : invalid(field, expression, error.message);
