/** What `nomos status` says of one sync, by upstream's rules (cmd/nomos/status), and of its objects. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { shownUrl } from '@coracle/gitops/git/repository-url';
import type { ResourceStatus, StageStatus, Sync, SyncCondition, SyncError } from '@coracle/gitops/kinds/kinds';

export type SyncWord = 'STALLED' | 'RECONCILING' | 'PENDING' | 'SYNCED' | 'ERROR';

export interface SyncState {
  /** `<root>` for a RootSync, else the namespace. */
  readonly scope: string;
  readonly name: string;
  readonly source: string;
  readonly status: SyncWord;
  /** `N/A` where there is none to speak of. */
  readonly commit: string;
  /** RFC 3339; of SYNCED. */
  readonly syncedAt?: string;
  readonly totalErrorCount: number;
  /** Shown of them; fewer than the total where the status left some out. */
  readonly errors: readonly string[];
  /** Of SYNCED. */
  readonly resources?: readonly ResourceState[];
}

export interface ResourceState {
  readonly namespace: string;
  /** `kind.group/name`. */
  readonly name: string;
  readonly status: string;
  readonly sourceHash: string;
}

type ReadonlySync = DeepReadonly<Sync>;

const NO_COMMIT = 'N/A';

/** The state of a sync; `statuses` are what its inventory says of its objects, undefined where that is not asked for. */
export function syncState(sync: ReadonlySync, statuses?: readonly DeepReadonly<ResourceStatus>[]): SyncState {
  const { kind, metadata, status } = sync;
  const base = {
    scope: kind === 'RootSync' ? '<root>' : (metadata.namespace ?? ''),
    name: metadata.name ?? '',
    source: sourceText(sync),
  };
  const failure = conditionOf(sync, 'ReconcilerFinalizerFailure');
  if (failure?.status === 'True')
    return { ...base, status: 'ERROR', commit: NO_COMMIT, ...withErrors(failure.errors ?? [], failure) };
  const stalled = conditionOf(sync, 'Stalled');
  if (stalled?.status === 'True')
    return { ...base, status: 'STALLED', commit: NO_COMMIT, totalErrorCount: 1, errors: [firstLine(stalled.message)] };
  // While it is taken apart nothing is synced, whatever it said before.
  if (isConditionTrue(sync, 'Reconciling') || isConditionTrue(sync, 'ReconcilerFinalizing'))
    return { ...base, status: 'RECONCILING', commit: NO_COMMIT, totalErrorCount: 0, errors: [] };
  const syncing = conditionOf(sync, 'Syncing');
  if (!syncing) return { ...base, status: 'PENDING', commit: NO_COMMIT, totalErrorCount: 0, errors: [] };
  const found = withErrors(errorsOf(sync, syncing), syncing);
  const commit = syncing.commit || NO_COMMIT;
  if (syncing.status === 'True') return { ...base, status: 'PENDING', commit, ...found };
  if (found.totalErrorCount > 0) return { ...base, status: 'ERROR', commit, ...found };
  const { lastUpdate } = status?.sync ?? {};
  return {
    ...base,
    status: 'SYNCED',
    commit: status?.sync?.commit || commit,
    ...(lastUpdate !== undefined && { syncedAt: lastUpdate }),
    ...found,
    ...(statuses && { resources: statuses.map(resourceState).sort(compareResources) }),
  };
}

/** Of the lists that the condition names. */
function errorsOf({ status }: ReadonlySync, { errorSourceRefs = [] }: DeepReadonly<SyncCondition>) {
  const stages: Readonly<Record<string, DeepReadonly<StageStatus> | undefined>> = {
    'status.rendering.errors': status?.rendering,
    'status.source.errors': status?.source,
    'status.sync.errors': status?.sync,
  };
  return errorSourceRefs.flatMap((ref) => stages[ref]?.errors ?? []);
}

const withErrors = (errors: readonly DeepReadonly<SyncError>[], { errorSummary }: DeepReadonly<SyncCondition>) => ({
  totalErrorCount: Math.max(errorSummary?.totalCount ?? 0, errors.length),
  errors: errors.map(({ errorMessage }) => firstLine(errorMessage)),
});

const firstLine = (text: string | undefined): string => (text ?? '').split('\n')[0]!;

/** `repo/dir@revision`, as upstream writes it; credentials in an address are left out. */
export function sourceText({ spec }: ReadonlySync): string {
  const withDir = (text: string, dir: unknown): string => {
    const path = typeof dir === 'string' ? dir.replace(/^[./]+|\/+$/g, '') : '';
    return path === '' ? text : `${text.replace(/\/$/, '')}/${path}`;
  };
  const { sourceType = 'git', git } = spec ?? {};
  const oci = spec?.oci as { image?: string; dir?: string } | undefined;
  const helm = spec?.helm as { repo?: string; chart?: string; version?: string } | undefined;
  if (sourceType === 'oci') return oci ? withDir(oci.image ?? NO_COMMIT, oci.dir) : NO_COMMIT;
  if (sourceType === 'helm')
    return helm ? `${shownUrl(helm.repo ?? '')}/${helm.chart ?? ''}:${helm.version || 'latest'}` : NO_COMMIT;
  if (!git) return NO_COMMIT;
  const revision = git.revision && git.revision !== 'HEAD' ? git.revision : git.branch || 'master';
  return `${withDir(shownUrl(git.repo), git.dir)}@${revision}`;
}

function resourceState({
  group,
  kind,
  namespace,
  name,
  status,
  sourceHash = '',
  conditions = [],
}: DeepReadonly<ResourceStatus>): ResourceState {
  const isContested = conditions.some((one) => one.type === 'OwnershipOverlap' && one.status === 'True');
  return {
    namespace,
    name: `${kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${name}`,
    status: isContested ? 'Conflict' : status,
    sourceHash,
  };
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const compareResources = (a: ResourceState, b: ResourceState): number =>
  compareText(a.namespace, b.namespace) || compareText(a.name, b.name);
/** By scope, then name: RootSyncs come first. */
export const compareStates = (a: SyncState, b: SyncState): number =>
  compareText(a.scope, b.scope) || compareText(a.name, b.name);
