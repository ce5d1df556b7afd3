/**
 * Literals of lists and maps have members of one type, and `dyn` is a type of its own there (cel-go
 * homogeneousAggregateLiteralValidator): `[d, 'a']` is refused although either could be a text. What stands inside a call
 * of `format` may be mixed.
 */
import type { Report } from './report.ts';
import { children, type Expr, type ListLiteral, type MapLiteral } from './syntax.ts';
import { type CelType, DYN, formatType, sameType } from './types.ts';

/** Adds an error for each member of another type than the first. Expects a checked expression. */
export function validateAggregates(expr: Expr, report: Report): void {
  if (expr.op === 'call' && expr.name === 'format') return;
  if (expr.op === 'list') validateList(expr, report);
  if (expr.op === 'map') validateMap(expr, report);
  for (const child of children(expr)) validateAggregates(child, report);
}

/** Of a list, the first member that differs is reported. */
function validateList({ items }: ListLiteral, report: Report): void {
  const [first, ...rest] = items.map(({ value, optional }) => ({ at: value.at, type: memberType(value, optional) }));
  const other = rest.find(({ type }) => !sameType(first!.type, type));
  if (other) report.add(other.at, mismatch(first!.type, other.type));
}

/** Of a map, every one. */
function validateMap({ entries }: MapLiteral, report: Report): void {
  const [first, ...rest] = entries.map(({ key, value, optional }) => ({
    key: { at: key.at, type: key.type! },
    value: { at: value.at, type: memberType(value, optional) },
  }));
  for (const entry of rest) {
    for (const part of ['key', 'value'] as const) {
      const [wanted, { at, type }] = [first![part].type, entry[part]];
      if (!sameType(wanted, type)) report.add(at, mismatch(wanted, type));
    }
  }
}

const memberType = ({ type }: Expr, optional: boolean): CelType =>
  optional && type?.kind === 'optional' ? type.params[0]! : optional ? DYN : type!;

const mismatch = (wanted: CelType, found: CelType): string =>
  `expected type '${formatType(wanted)}' but found '${formatType(found)}'`;
