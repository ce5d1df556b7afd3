/** What a sync asks for, checked: KNV1061 for what cannot be done, before anything is. */
import { parseDuration } from '../../api/cel/time.ts';
import { CONFIG_SYNC_NAMESPACE, type GitSpec, type GitStatus, type Sync } from '../../api/kinds/config-sync/kinds.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { wantedRef } from '../git/git-source.ts';
import { parseRepositoryUrl, shownUrl, treePath } from '../git/repository-url.ts';
import { PROPAGATION_POLICY } from '../status/metadata-keys.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import { reconcilerName, type SyncIdentity } from '../status/sync-identity.ts';

export interface SyncPlan {
  readonly git: GitSpec;
  readonly gitStatus: GitStatus;
  /** In the tree; '' = its root. */
  readonly dir: string;
  readonly depth?: number;
  readonly periodMs: number;
  readonly reconcileMs: number;
  readonly apiServerMs: number;
  readonly impliesNamespaces: boolean;
  readonly showsStatus: boolean;
  readonly roleRefs: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

const PERIOD_MS = 15_000;
const RECONCILE_MS = 5 * 60_000;
const API_SERVER_MS = 15_000;
const POLICIES = ['Foreground', 'Orphan'];
/** What works with these is a secret. */
const WITH_SECRET = new Set(['ssh', 'token', 'cookiefile', 'githubapp']);
const SUPPORTED_AUTH = new Set(['none', 'ssh', 'token']);

/**
 * Reads the spec.
 * @throws SyncFailure KNV1061, with all that is wrong in one text
 */
export function planOf(object: DeepReadonly<Sync>, sync: SyncIdentity): SyncPlan {
  const wrong: string[] = [];
  const { sourceType = 'git', sourceFormat = '', override } = object.spec ?? {};
  const git = object.spec?.git as GitSpec | undefined;
  const ms = (text: string | undefined, otherwise: number, name: string, least: number): number => {
    if (text === undefined || text === '') return otherwise;
    const value = millisecondsOf(text);
    if (!(value >= 0) || (value < least && value !== 0))
      wrong.push(`${name} ${JSON.stringify(text)} is no duration that can be meant`);
    return value > 0 ? value : otherwise;
  };
  checkPlace(sync, wrong);
  const policy = object.metadata.annotations?.[PROPAGATION_POLICY];
  if (policy !== undefined && !POLICIES.includes(policy))
    wrong.push(`annotation ${PROPAGATION_POLICY} is ${JSON.stringify(policy)}; it is Foreground or Orphan`);
  checkFormat(sync, sourceFormat, wrong);
  if (sourceType !== 'git') wrong.push(`sourceType ${sourceType} is not supported yet; use git`);
  else if (!git) wrong.push('spec.git is missing');
  for (const other of ['oci', 'helm'] as const)
    if (sourceType === 'git' && object.spec?.[other]) wrong.push(`spec.${other} does not go with sourceType git`);
  if (git) checkGit(git, sync, wrong);
  for (const { kind, namespace } of override?.roleRefs ?? [])
    if (kind === 'Role' && !namespace) wrong.push('spec.override.roleRefs: a Role needs a namespace');
  const plan = {
    periodMs: ms(git?.period, PERIOD_MS, 'spec.git.period', 10),
    reconcileMs: ms(override?.reconcileTimeout, RECONCILE_MS, 'spec.override.reconcileTimeout', 1),
    apiServerMs: ms(override?.apiServerTimeout, API_SERVER_MS, 'spec.override.apiServerTimeout', 1),
  };
  if (wrong.length > 0 || !git) throw new SyncFailure([syncError(1061, `invalid ${sync.kind}: ${wrong.join('; ')}`)]);
  return {
    ...plan,
    git,
    gitStatus: {
      repo: shownUrl(git.repo),
      revision: git.revision || 'HEAD',
      branch: git.branch || 'master',
      dir: git.dir || '/',
    },
    dir: treePath(git.dir ?? ''),
    ...(override?.gitSyncDepth !== undefined && { depth: override.gitSyncDepth }),
    impliesNamespaces: sync.kind === 'RootSync' && (override?.namespaceStrategy || 'implicit') === 'implicit',
    showsStatus: override?.statusMode !== 'disabled',
    roleRefs: (override?.roleRefs ?? []) as SyncPlan['roleRefs'],
  };
}

/** NaN for what is none. */
function millisecondsOf(text: string): number {
  try {
    return Number(parseDuration(text)?.nanos ?? Number.NaN) / 1e6;
  } catch {
    return Number.NaN;
  }
}

function checkPlace(sync: SyncIdentity, wrong: string[]): void {
  const isHome = sync.namespace === CONFIG_SYNC_NAMESPACE;
  if (sync.kind === 'RootSync' && !isHome) wrong.push(`a RootSync lives in namespace ${CONFIG_SYNC_NAMESPACE}`);
  if (sync.kind === 'RepoSync' && isHome) wrong.push(`a RepoSync does not live in namespace ${CONFIG_SYNC_NAMESPACE}`);
  if (reconcilerName(sync).length > 63)
    wrong.push(`its name is too long: ${reconcilerName(sync)} has more than 63 characters`);
}

function checkFormat({ kind }: SyncIdentity, format: string, wrong: string[]): void {
  if (format === 'unstructured' || (format === '' && kind === 'RepoSync')) return;
  if (kind === 'RootSync' && (format === '' || format === 'hierarchy'))
    wrong.push('sourceFormat hierarchy (also when there is none) is not supported yet; say sourceFormat: unstructured');
  else wrong.push(`sourceFormat ${JSON.stringify(format)} is not unstructured`);
}

function checkGit(git: GitSpec, { kind }: SyncIdentity, wrong: string[]): void {
  for (const check of [
    () => parseRepositoryUrl(git.repo, { allowsFile: kind === 'RootSync' }),
    () => wantedRef(git),
    () => treePath(git.dir ?? ''),
  ]) {
    try {
      check();
    } catch (error) {
      wrong.push((error as Error).message);
    }
  }
  const secret = git.secretRef?.name ?? '';
  if (!SUPPORTED_AUTH.has(git.auth)) wrong.push(`git auth ${git.auth} is not supported; it is none, token or ssh`);
  else if (WITH_SECRET.has(git.auth) && secret === '') wrong.push(`git auth ${git.auth} needs spec.git.secretRef`);
  else if (!WITH_SECRET.has(git.auth) && secret !== '') wrong.push(`git auth ${git.auth} takes no spec.git.secretRef`);
  if (git.proxy && git.auth === 'ssh') wrong.push('spec.git.proxy does not go with auth ssh');
}

/** `reconcileTimeout` of a sync whose spec may be anything by now. */
export function reconcileMsOf(object: DeepReadonly<Sync>): number {
  const value = millisecondsOf(object.spec?.override?.reconcileTimeout ?? '');
  return value > 0 ? value : RECONCILE_MS;
}
