/** The query parameters of operations: those of verbs, and those of what a pod is asked for. */
import type { Operation } from './operations.ts';
import table from './query-parameters.json' with { type: 'json' };

/** A query parameter. */
export interface QueryParameter {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
}

type Parameters = readonly QueryParameter[];
const LIST = table.list as Parameters;
const DELETE = table.delete as Parameters;
const WRITE = table.write as Parameters;
const OF_SUBRESOURCES = table.subresources as Readonly<Record<string, Parameters>>;

/** The query parameters of an operation. */
export function queryParameters({ action, subresource }: Operation): readonly QueryParameter[] {
  const own = subresource === undefined ? undefined : OF_SUBRESOURCES[subresource];
  if (own !== undefined) return own;
  switch (action) {
    case 'list':
    case 'watch':
    case 'watchlist':
      return LIST;
    case 'deletecollection':
      return DELETE_COLLECTION;
    case 'delete':
      return DELETE;
    case 'post':
    case 'put':
      return WRITE;
    case 'patch':
      return PATCH;
    case 'get':
      return READ;
    case 'connect':
      return [];
  }
}

const READ = table.read as Parameters;
const PATCH = [...WRITE, table.force as QueryParameter];
const ONLY_WATCH = new Set(['watch', 'allowWatchBookmarks', 'pretty']);
const DELETE_COLLECTION = [...DELETE, ...LIST.filter(({ name }) => !ONLY_WATCH.has(name))];
