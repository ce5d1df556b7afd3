/** What the cell tables of this folder share: the cell type and the formats used by several kinds. */
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
} from '@coracle/apimachinery/types/read-value';

export type Cell = (object: JsonObject, now: number) => string | number | boolean | null;

/** Cells of one kind by column name. */
export type Cells = Readonly<Record<string, Cell>>;

/** Cells of resources, by plural name, behind their group where it is not the core group. */
export type KindCells = Readonly<Record<string, Cells>>;

export const NONE = '<none>';
export const UNSET = '<unset>';

/** `a=b,c=d` sorted by key, `<none>` when empty (labels.FormatLabels). */
export function formatLabels(labels: unknown): string {
  if (!isObject(labels)) return NONE;
  const pairs = Object.keys(labels)
    .sort()
    .map((key) => `${key}=${String(labels[key])}`);
  return pairs.length === 0 ? NONE : pairs.join(',');
}

/** A LabelSelector as text, `<none>` when it selects everything or nothing (metav1.FormatLabelSelector). */
export function formatSelector(selector: unknown): string {
  const parts = Object.entries(objectAt(selector, 'matchLabels')).map(([key, value]) => [
    key,
    `${key}=${String(value)}`,
  ]);
  for (const requirement of objectsAt(selector, 'matchExpressions')) {
    const key = textAt(requirement, 'key');
    const values = `(${[...textsAt(requirement, 'values')].sort().join(',')})`;
    const texts: Readonly<Record<string, string>> = {
      In: `${key} in ${values}`,
      NotIn: `${key} notin ${values}`,
      Exists: key,
      DoesNotExist: `!${key}`,
    };
    const text = texts[textAt(requirement, 'operator')];
    if (text !== undefined) parts.push([key, text]);
  }
  const sorted = parts.sort(([a = ''], [b = '']) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.map(([, part]) => part).join(',') || NONE;
}

/** The first items, then ` + 2 more...`. */
export function firstFew(items: readonly string[], options: { readonly max: number; readonly empty: string }): string {
  if (items.length === 0) return options.empty;
  const shown = items.slice(0, options.max).join(',');
  return items.length > options.max ? `${shown} + ${items.length - options.max} more...` : shown;
}

const ACCESS_MODES = { ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' };

/** `RWO,RWX`: always in the same order. */
export const accessModes = (modes: readonly unknown[]): string =>
  Object.entries(ACCESS_MODES)
    .filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',');

/** The condition of a type, if the object's status has one. */
export const conditionOf = (object: unknown, type: string): Record<string, unknown> | undefined =>
  objectsAt(object, 'status', 'conditions').find((condition) => condition['type'] === type);

export const isConditionTrue = (object: unknown, type: string): boolean =>
  conditionOf(object, type)?.['status'] === 'True';
