/** Tables (meta.k8s.io Table): what `kubectl get` prints. Cells are computed here, the client only lays them out. */

import { goJson, goNumber, sortMembers } from '@coracle/apimachinery/meta/go-text';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest } from '@coracle/apimachinery/meta/status';
import { humanDuration } from '@coracle/apimachinery/types/age';
import type { PrinterColumn, ResourceInfo } from '@coracle/apimachinery/types/resource';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { JsonPathError, readJsonPath } from '../kinds/json-path.ts';

export type IncludeObject = 'Metadata' | 'Object' | 'None';
export type Cell = string | number | bigint | boolean | null;

interface ColumnDefinition {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

interface Layout {
  readonly definitions: readonly ColumnDefinition[];
  readonly cells: readonly ((object: Readonly<UnstructuredObject>, now: number) => Cell)[];
}

export const NAME_DESCRIPTION =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names';
export const CREATED_DESCRIPTION =
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata';

/** Of columns that built-in kinds share. */
const KNOWN: Readonly<Record<string, string>> = { Name: NAME_DESCRIPTION, Age: CREATED_DESCRIPTION };

/** What a table needs of a resource. */
type Columns = Pick<ResourceInfo, 'columns' | 'rows'>;

const layouts = new WeakMap<Columns, Layout>();

/** Computed once per ResourceInfo. */
const layoutOf = (info: Columns): Layout => getOrInsert(layouts, info, makeLayout);

function makeLayout(info: Columns): Layout {
  const definitions: ColumnDefinition[] = [];
  const cells: Layout['cells'][number][] = [];
  const nameCell = (object: Readonly<UnstructuredObject>): Cell => object.metadata.name ?? '';
  // Events put their own Name column last. One that reads a path is another column of that name.
  if (!info.columns.some(({ name, path }) => name === 'Name' && path === undefined)) {
    definitions.push({ name: 'Name', type: 'string', format: 'name', description: NAME_DESCRIPTION, priority: 0 });
    cells.push(nameCell);
  }
  for (const column of info.columns) {
    const { name, type, format = '', priority } = column;
    const description = column.description ?? (column.cell === undefined ? '' : (KNOWN[name] ?? ''));
    definitions.push({ name, type, format, description, priority });
    cells.push(column.cell ?? (column.path === undefined ? nameCell : pathCell(column, column.path)));
  }
  if (info.columns.length === 0) {
    definitions.push({ name: 'Created At', type: 'date', format: '', description: CREATED_DESCRIPTION, priority: 0 });
    cells.push((object) => object.metadata.creationTimestamp ?? null);
  }
  return { definitions, cells };
}

/**
 * A column given by a JSONPath, of its first result (apiextensions tableconvertor): dates become ages, a text column shows
 * whatever it finds, and every other column shows only values of its own type.
 */
function pathCell({ type }: PrinterColumn, path: string): Layout['cells'][number] {
  return (object, now) => {
    const value = firstResult(object, path);
    if (value === undefined) return null;
    if (value === null) return type === 'string' ? '<no value>' : null;
    switch (type) {
      case 'string':
        return textOf(value);
      case 'integer':
        return typeof value === 'number' ? wholeOf(value) : typeof value === 'bigint' ? value : null;
      case 'number':
        return typeof value === 'number' || typeof value === 'bigint' ? value : null;
      case 'boolean':
        return typeof value === 'boolean' ? value : null;
      case 'date':
        return typeof value === 'string' ? ageOf(value, now) : null;
      default:
        return null;
    }
  };
}

/** A float as an int64, as Go converts it on x86-64: one that does not fit is the smallest. */
const wholeOf = (value: number): number | bigint => (Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2n ** 63n));

/** A path that cannot be followed finds nothing. */
function firstResult(object: Readonly<UnstructuredObject>, path: string): unknown {
  try {
    return readJsonPath(object, path);
  } catch (error) {
    if (error instanceof JsonPathError) return undefined;
    throw error;
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return goNumber(value);
  return typeof value === 'object' ? goJson(sortMembers(value)) : String(value);
}

function ageOf(value: string, now: number): string {
  if (value === '') return '<unknown>';
  const at = /T.+(Z|[+-]\d\d:\d\d)$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? '<invalid>' : humanDuration(now - at);
}

/** The query parameter `includeObject`. Throws ApiError 400 when it is none of the three. */
export function parseIncludeObject(value: string | null): IncludeObject {
  if (value === null || value === '' || value === 'Metadata') return 'Metadata';
  if (value === 'Object' || value === 'None') return value;
  const why = `includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`;
  throw badRequest(`Unable to convert to Table as requested: ${why}`);
}

export interface TableOptions {
  readonly version: 'v1' | 'v1beta1';
  readonly includeObject: IncludeObject;
  readonly now: number;
  /** False for all but the first event of a watch. */
  readonly definitions: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A Table with one row per object (objects in the version of `info`). */
export function tableOf(
  info: Columns,
  { objects, ...options }: TableOptions & { readonly objects: Iterable<Readonly<UnstructuredObject>> },
): Record<string, unknown> {
  const { definitions, cells } = layoutOf(info);
  const rows: unknown[] = [];
  for (const object of objects) {
    const conditions = info.rows?.conditions?.(object);
    rows.push({
      cells: cells.map((cell) => safeCell(cell, object, options.now)),
      ...(conditions && { conditions }),
      object: rowObject(object, options),
    });
  }
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.version}`,
    metadata: options.metadata,
    // Go's empty slice: a client that compares a later event of a watch with what it knows finds null, not a list.
    columnDefinitions: options.definitions ? definitions : null,
    rows,
  };
}

/** Objects of odd shapes exist (status is written by anyone); a cell that fails must not take the table with it. */
function safeCell(cell: Layout['cells'][number], object: Readonly<UnstructuredObject>, now: number): Cell {
  try {
    return cell(object, now);
  } catch {
    return '<invalid>';
  }
}

function rowObject(object: Readonly<UnstructuredObject>, { includeObject, version }: TableOptions): unknown {
  if (includeObject === 'None') return null;
  return includeObject === 'Object' ? object : partialOf(object, version);
}

/** An object reduced to its metadata. */
export const partialOf = (
  object: Readonly<UnstructuredObject>,
  version: 'v1' | 'v1beta1',
): Record<string, unknown> => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: object.metadata,
});
