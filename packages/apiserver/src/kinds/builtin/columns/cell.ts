/** What the cell tables of this folder share: the cell type and the formats used by several kinds. */
import { isObject, type JsonObject, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';

export type Cell = (object: JsonObject, now: number) => string | number | boolean | null;

/** Cells of one kind by column name. */
export type Cells = Readonly<Record<string, Cell>>;

/** Cells of a group's resources, by plural name. */
export type GroupCells = Readonly<Record<string, Cells>>;

export const NONE = '<none>';
export const UNSET = '<unset>';

/** A text field, or `empty` when it is absent or ''. */
export const text =
  (path: string, empty = ''): Cell =>
  (object) =>
    textAt(object, ...path.split('.')) || empty;

/** `a=b,c=d` sorted by key, `<none>` when empty (labels.FormatLabels). */
export function formatLabels(labels: unknown): string {
  if (!isObject(labels)) return NONE;
  const pairs = Object.keys(labels)
    .sort()
    .map((key) => `${key}=${String(labels[key])}`);
  return pairs.length === 0 ? NONE : pairs.join(',');
}

/** The string form of a LabelSelector, '' when it selects everything or nothing. */
export function selectorText(selector: unknown): string {
  const labels = valueAt(selector, 'matchLabels');
  const parts: [string, string][] = isObject(labels)
    ? Object.entries(labels).map(([key, value]) => [key, `${key}=${String(value)}`])
    : [];
  for (const requirement of objectsAt(selector, 'matchExpressions')) {
    const key = textAt(requirement, 'key');
    const values = `(${[...textsAt(requirement, 'values')].sort().join(',')})`;
    switch (requirement['operator']) {
      case 'In':
        parts.push([key, `${key} in ${values}`]);
        break;
      case 'NotIn':
        parts.push([key, `${key} notin ${values}`]);
        break;
      case 'Exists':
        parts.push([key, key]);
        break;
      case 'DoesNotExist':
        parts.push([key, `!${key}`]);
        break;
    }
  }
  return parts
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, part]) => part)
    .join(',');
}

/** `selectorText`, `<none>` when empty (metav1.FormatLabelSelector). */
export const formatSelector = (selector: unknown): string => selectorText(selector) || NONE;

/** The first items, then ` + 2 more...`. */
export function firstFew(items: readonly string[], options: { readonly max: number; readonly empty: string }): string {
  if (items.length === 0) return options.empty;
  const shown = items.slice(0, options.max).join(',');
  return items.length > options.max ? `${shown} + ${items.length - options.max} more...` : shown;
}

const ACCESS_MODES: readonly (readonly [string, string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];

/** `RWO,RWX`: always in the same order. */
export const accessModes = (modes: readonly unknown[]): string =>
  ACCESS_MODES.filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',');

/** The condition of a type, if the object's status has one. */
export const conditionOf = (object: unknown, type: string): Record<string, unknown> | undefined =>
  objectsAt(object, 'status', 'conditions').find((condition) => condition['type'] === type);

export const isConditionTrue = (object: unknown, type: string): boolean =>
  conditionOf(object, type)?.['status'] === 'True';
