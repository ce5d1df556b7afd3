/** Every built-in resource as the server needs it: the generated table joined with strategies, cells, defaults and rules. */
import { apiVersionOf, type GroupVersionKind } from '@coracle/apimachinery/meta/gvk';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { builtinSchema, builtinTypeName } from '@coracle/apimachinery/types/builtin-types';
import type { PrinterColumn, ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import type { ResourceName } from '@coracle/apimachinery/types/strategy';
import { cellsOf, rowsOf } from './columns/cells.ts';
import table from './resources.generated.json' with { type: 'json' };
import { selectableFieldsOf } from './selectable-fields.ts';
import { strategyOf } from './strategies/strategy-of.ts';
import { autoscalerView } from './views/autoscaler-view.ts';
import { eventView } from './views/event-view.ts';

interface ResourceRow {
  readonly names: string;
  readonly scope: string;
  readonly verbs: string;
  readonly short?: string;
  readonly categories?: string;
  readonly sub?: readonly string[];
  readonly columns?: string;
}

const VERBS: Readonly<Record<string, string>> = {
  c: 'create',
  d: 'delete',
  D: 'deletecollection',
  g: 'get',
  l: 'list',
  p: 'patch',
  u: 'update',
  w: 'watch',
};

/** What differs between the versions of a resource: its storage, and what is on its way out. */
const VERSIONS: Readonly<
  Record<string, Pick<ResourceInfo, 'storageVersion' | 'storedAs' | 'view' | 'deprecationWarning'>>
> = {
  '/v1/endpoints': {
    deprecationWarning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  },
  'autoscaling/v1/horizontalpodautoscalers': { storageVersion: 'autoscaling/v2', view: autoscalerView },
  'events.k8s.io/v1/events': { storageVersion: 'v1', storedAs: { group: '', resource: 'events' }, view: eventView },
};

const verbs = (letters: string): string[] => [...letters].map((letter) => VERBS[letter] ?? letter);
const words = (text: string | undefined): string[] => (text === undefined ? [] : text.split(' '));

let all: readonly ResourceInfo[] | undefined;

/**
 * All built-in resources, in the order in which discovery lists them. Schemas are decoded when first read, so the list
 * itself is cheap; the same array is returned each time.
 */
export function builtinResources(): readonly ResourceInfo[] {
  all ??= table.groupVersions.flatMap(({ group, version, resources }) =>
    (resources as readonly ResourceRow[]).map((row) => toResourceInfo(row, { group, version })),
  );
  return all;
}

/** One built-in resource, by plural name. */
export const builtinResource = ({ group, version, resource }: ResourceName): ResourceInfo | undefined =>
  builtinResources().find((info) => info.group === group && info.version === version && info.resource === resource);

function toResourceInfo(row: ResourceRow, { group, version }: { group: string; version: string }): ResourceInfo {
  const [resource = '', singular = '', kind = ''] = row.names.split(' ');
  const subresources = (row.sub ?? []).map(toSubresource);
  let decoded: Schema | undefined;
  // Asked for several times in every write.
  const schema = (): Schema => {
    decoded ??= schemaOf({ group, version, kind });
    return decoded;
  };
  const rows = rowsOf(group, resource);
  return {
    group,
    version,
    resource,
    singular,
    kind,
    listKind: `${kind}List`,
    namespaced: row.scope === 'n',
    verbs: verbs(row.verbs),
    shortNames: words(row.short),
    categories: words(row.categories),
    subresources,
    get schema() {
      return schema();
    },
    columns: toColumns(row.columns, { group, resource }),
    ...(rows && { rows }),
    selectableFields: selectableFieldsOf(group, resource),
    strategy: strategyOf({ group, resource, hasStatus: subresources.some((sub) => sub.name === 'status'), schema }),
    ...VERSIONS[`${group}/${version}/${resource}`],
  };
}

function schemaOf(gvk: GroupVersionKind): Schema {
  const name = builtinTypeName(gvk);
  if (name === undefined) throw new Error(`the type table has no ${gvk.kind} of ${apiVersionOf(gvk)}`);
  return builtinSchema(name);
}

function toSubresource(text: string): SubresourceInfo {
  const [name = '', full = '', letters = ''] = text.split(' ');
  const [kind = '', version, group] = full.split('/').reverse();
  return {
    name,
    kind,
    verbs: verbs(letters),
    ...(group !== undefined && { group }),
    ...(version !== undefined && { version }),
  };
}

/** Columns after Name; none when the resource has only the general Created At. */
function toColumns(
  text: string | undefined,
  { group, resource }: { group: string; resource: string },
): PrinterColumn[] {
  const cells = cellsOf(group, resource);
  if (text === undefined || cells === undefined) return [];
  const columns = text.split('|').map((column) => {
    const wide = column.endsWith('*');
    const [name = '', type = 'string'] = (wide ? column.slice(0, -1) : column).split(':');
    const cell = cells[name];
    if (cell === undefined) throw new Error(`${resource}.${group}: no cell function for the column ${name}`);
    const format = name === 'Name' ? { format: 'name' } : {};
    return { name, type: type as PrinterColumn['type'], ...format, priority: wide ? 1 : 0, cell };
  });
  const ownName = cells['Name'];
  if (ownName === undefined || columns.some((column) => column.name === 'Name')) return columns;
  return [{ name: 'Name', type: 'string', format: 'name', priority: 0, cell: ownName }, ...columns];
}
