/** What `coracle sync plan` prints for people. */
import type { ObjectRef } from '@coracle/gitops/kinds/kinds';
import type { SyncIdentity } from '@coracle/gitops/status/sync-identity';
import type { ForecastAction, ForecastItem } from '@coracle/gitops/sync/forecast';
import { textTable } from '../text-table.ts';
import type { EffectOnMachine } from './machine-effect.ts';

export interface PlannedItem extends Omit<ForecastItem, 'live' | 'wanted'> {
  /** Of virtual machines. */
  readonly vm?: EffectOnMachine;
}

export interface Plan {
  readonly sync: SyncIdentity;
  readonly commit: string | null;
  /** The commit that is in the cluster. */
  readonly synced: string | null;
  /** Directory that was read instead of the source. */
  readonly path?: string;
  readonly items: readonly PlannedItem[];
}

/** Fields of one object that are written out; the rest is counted. */
const MAX_FIELDS = 5;
const WORDS: Readonly<Record<ForecastAction, string>> = {
  create: 'to create',
  change: 'to change',
  adopt: 'to adopt',
  prune: 'to prune',
  'let-go': 'to orphan',
  keep: 'kept though not declared',
  fail: 'refused',
  none: 'unchanged',
};

/** A row for each object that is not as it is to be, and a line of numbers. */
export function planText({ sync, commit, synced, path, items }: Plan): string {
  const what = path === undefined ? `commit ${commit}` : `the files in ${path}`;
  const head = `${sync.kind} ${sync.namespace}/${sync.name}: ${what}${synced === null ? '' : `; synced is ${synced}`}`;
  const rows = items
    .filter(({ action }) => action !== 'none')
    .map((item) => [item.action, nameOf(item.ref), item.vm?.effect ?? '', detail(item)]);
  const counts = (Object.keys(WORDS) as ForecastAction[])
    .map((action) => [items.filter((item) => item.action === action).length, WORDS[action]] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  const table = rows.length === 0 ? [] : [textTable(['ACTION', 'OBJECT', 'VM', 'WHAT'], rows), ''];
  return [head, '', ...table, counts.length === 0 ? 'nothing is declared' : counts.join(', ')].join('\n');
}

/** `namespace/kind.group/name`. */
const nameOf = ({ group, kind, namespace, name }: ObjectRef): string =>
  `${namespace === '' ? '' : `${namespace}/`}${kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${name}`;

function detail({ fields = [], why, vm }: PlannedItem): string {
  const paths = fields.slice(0, MAX_FIELDS).map(({ path }) => path);
  if (fields.length > MAX_FIELDS) paths.push(`and ${fields.length - MAX_FIELDS} more`);
  return [paths.join(', '), why, vm?.why].filter((text) => text !== undefined && text !== '').join('; ');
}
