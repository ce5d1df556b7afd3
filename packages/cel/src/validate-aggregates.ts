/**
 * Literals of lists and maps have members of one type, and `dyn` is a type of its own there (cel-go
 * homogeneousAggregateLiteralValidator): `[d, 'a']` is refused although either could be a text. What stands inside a call
 * of `format` may be mixed.
 */
import { SourceError } from './report.ts';
import { children, type Expr, type ListLiteral, type MapLiteral } from './syntax.ts';
import { type CelType, DYN, formatType, sameType } from './types.ts';

/** Expects a checked expression. Throws SourceError for a member of another type than the first. */
export function validateAggregates(expr: Expr): void {
  if (expr.op === 'call' && expr.name === 'format') return;
  if (expr.op === 'list') validateList(expr);
  if (expr.op === 'map') validateMap(expr);
  for (const child of children(expr)) validateAggregates(child);
}

function validateList({ items }: ListLiteral): void {
  const [first, ...rest] = items.map(({ value, optional }) => ({ at: value.at, type: memberType(value, optional) }));
  const other = rest.find(({ type }) => !sameType(first!.type, type));
  if (other) throw mismatch(first!.type, other);
}

function validateMap({ entries }: MapLiteral): void {
  const [first, ...rest] = entries.map(({ key, value, optional }) => ({
    key: { at: key.at, type: key.type! },
    value: { at: value.at, type: memberType(value, optional) },
  }));
  for (const entry of rest) {
    for (const part of ['key', 'value'] as const) {
      const wanted = first![part].type;
      if (!sameType(wanted, entry[part].type)) throw mismatch(wanted, entry[part]);
    }
  }
}

const memberType = ({ type }: Expr, optional: boolean): CelType =>
  optional && type?.kind === 'optional' ? type.params[0]! : optional ? DYN : type!;

const mismatch = (wanted: CelType, { at, type }: { readonly at: number; readonly type: CelType }): SourceError =>
  new SourceError(at, `expected type '${formatType(wanted)}' but found '${formatType(type)}'`);
