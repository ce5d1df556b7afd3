/** The query parameters of operations: those of verbs, and those of what a pod is asked for. */
import type { Action, Operation } from './operations.ts';
import table from './query-parameters.json' with { type: 'json' };

/** A query parameter. */
interface QueryParameter {
  readonly name: string;
  readonly type: string;
  readonly description: string;
}

type Parameters = readonly QueryParameter[];
const { read, list, write, delete: deletion, force } = table;
const OF_SUBRESOURCES: Readonly<Record<string, Parameters>> = table.subresources;
const ONLY_WATCH = new Set(['watch', 'allowWatchBookmarks', 'pretty']);

const OF_ACTIONS: Readonly<Record<Action, Parameters>> = {
  get: read,
  list,
  watch: list,
  watchlist: list,
  post: write,
  put: write,
  patch: [...write, force],
  delete: deletion,
  deletecollection: [...deletion, ...list.filter(({ name }) => !ONLY_WATCH.has(name))],
  connect: [],
};

/** The query parameters of an operation. */
export const queryParameters = ({ action, subresource }: Operation): Parameters =>
  (subresource === undefined ? undefined : OF_SUBRESOURCES[subresource]) ?? OF_ACTIONS[action];
