/** What is said of each kind beside its schema (`tables/kinds.json`): names, versions, columns, in the order they are served. */

import type { PrinterColumn } from '@coracle/apimachinery/types/resource';
import tables from './tables/kinds.json' with { type: 'json' };

export interface KindTable {
  readonly kind: string;
  readonly group: string;
  /** The kind in lower case with an s when absent. */
  readonly plural?: string;
  /** The kind in lower case when absent. */
  readonly singular?: string;
  /** Namespaced when absent. */
  readonly scope?: string;
  readonly categories?: readonly string[];
  readonly shortNames?: readonly string[];
  readonly description: string;
  /** Name of the type of the spec, and of those of versions that have another. */
  readonly spec: string;
  readonly specs?: Readonly<Record<string, string>>;
  readonly specIsOptional?: boolean;
  readonly status?: string;
  /** Its status is written through the object itself. */
  readonly statusInObject?: boolean;
  /** Its number of replicas is read and changed at `/scale`. */
  readonly scalable?: boolean;
  /** What its TypeScript type is called; the kind when absent. */
  readonly type?: string;
  /** `Name[:type][*] path [description]`; `*` = only when wide. */
  readonly columns?: readonly string[];
  /** A name; behind that of a deprecated one the warning. */
  readonly versions: readonly string[];
  /** Version that objects are stored in; the first when absent. */
  readonly storage?: string;
}

/** Kinds that are compiled in: their definitions only show them. */
export const SERVED_KINDS: readonly KindTable[] = tables.served;
/** Kinds that are served by their definitions, which others may replace. */
export const DEFINED_KINDS: readonly KindTable[] = tables.defined;

/** How one served version differs from the others of its kind. */
export interface Version {
  readonly name: string;
  readonly deprecationWarning?: string;
}

export function versionsOf({ versions }: KindTable): Version[] {
  return versions.map((text) => {
    const [, name = '', deprecationWarning] = /^(\S+)(?: (.*))?$/.exec(text) ?? [];
    return { name, ...(deprecationWarning && { deprecationWarning }) };
  });
}

export const columnsOf = ({ columns = [] }: KindTable): PrinterColumn[] => columns.map(readColumn);

export function readColumn(text: string): PrinterColumn {
  const [, name = '', type, wide, path = '', description] =
    /^([^ :*]+)(?::(\w+))?(\*)? (\S+)(?: (.*))?$/.exec(text) ?? [];
  return {
    name,
    type: (type ?? 'string') as PrinterColumn['type'],
    path,
    priority: wide ? 1 : 0,
    ...(description && { description }),
  };
}
