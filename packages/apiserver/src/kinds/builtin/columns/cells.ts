/**
 * The cells of every built-in resource that has columns of its own, and what a Table says of rows beside them. In
 * `cells.json` stand those that show one field: its path, and what is shown where it is not there or empty ('' if nothing is
 * named). A list shows its length.
 */
import { age } from '@coracle/apimachinery/types/age';
import { type JsonObject, numberAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import type { TableRows } from '@coracle/apimachinery/types/resource';
import type { Cell, Cells, KindCells } from './cell.ts';
import fields from './cells.json' with { type: 'json' };
import { CLUSTER_CELLS } from './cluster.ts';
import { CORE_CELLS } from './core.ts';

type Field = string | readonly [path: string, absent: string | number | boolean];

const FIELDS = fields as unknown as Readonly<Record<string, Readonly<Record<string, Field>>>>;
const CODE: KindCells = { ...CORE_CELLS, ...CLUSTER_CELLS };

const kindOf = (group: string, resource: string): string => (group === '' ? resource : `${group}/${resource}`);

/** Cells by column name; undefined when the resource shows only Name and Created At. */
export function cellsOf(group: string, resource: string): Cells | undefined {
  const kind = kindOf(group, resource);
  if (!Object.hasOwn(FIELDS, kind)) return undefined;
  const shown = Object.entries(FIELDS[kind]!).map(([name, field]) => [name, fieldCell(field)] as const);
  return { Age: age, ...Object.fromEntries(shown), ...CODE[kind] };
}

function fieldCell(field: Field): Cell {
  const [path, absent] = typeof field === 'string' ? [field, ''] : field;
  const steps = path.split('.');
  return (object) => {
    const value = valueAt(object, ...steps);
    if (Array.isArray(value)) return value.length;
    if (typeof value === 'number' || typeof value === 'bigint') return Number(value);
    return (typeof value === 'string' && value !== '') || typeof value === 'boolean' ? value : absent;
  };
}

const completed = (reason: string, message: string) => [{ type: 'Completed', status: 'True', reason, message }];

const ENDED: Readonly<Record<string, ReturnType<typeof completed>>> = {
  Succeeded: completed('Succeeded', 'The pod has completed successfully.'),
  Failed: completed('Failed', 'The pod failed.'),
};

/** As requests are matched: by precedence, then by name. */
function byPrecedence(a: JsonObject, b: JsonObject): number {
  const ahead = numberAt(a, 'spec', 'matchingPrecedence') - numberAt(b, 'spec', 'matchingPrecedence');
  if (ahead !== 0) return ahead;
  return textAt(a, 'metadata', 'name') < textAt(b, 'metadata', 'name') ? -1 : 1;
}

const ROWS: Readonly<Record<string, TableRows>> = {
  pods: { conditions: (pod) => ENDED[textAt(pod, 'status', 'phase')] },
  'flowcontrol.apiserver.k8s.io/flowschemas': { compare: byPrecedence },
};

/** Which rows of a kind have come to an end, and in which order they stand; nothing of nearly all kinds. */
export const rowsOf = (group: string, resource: string): TableRows | undefined => ROWS[kindOf(group, resource)];
