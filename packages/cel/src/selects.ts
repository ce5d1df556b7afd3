/** Whether an expression looks at one field by its name, for rules about what an expression must mention. */
import { children, type Expr } from './syntax.ts';

/** True for `operand.field`, `operand.?field` and `has(operand.field)` anywhere in it; an index is no field. */
export function selectsField(expr: Expr, operand: string, field: string): boolean {
  if (expr.op === 'select' && expr.field === field && expr.operand.op === 'ident' && expr.operand.name === operand) {
    return true;
  }
  return children(expr).some((part) => selectsField(part, operand, field));
}
