/** What a sync asks for, checked: KNV1061 for what cannot be done, before anything is. */

import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { SourceFormat } from '../hierarchy/declare-source.ts';
import { CONFIG_SYNC_NAMESPACE, type Sync } from '../kinds/kinds.ts';
import { type DeleteMode, isDeleteMode, MODES_TEXT } from '../plan/dependents.ts';
import { DELETE_WITH_DEPENDENTS, PROPAGATION_POLICY } from '../status/metadata-keys.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import { reconcilerName, type SyncIdentity } from '../status/sync-identity.ts';
import { planSource, type SourcePlan } from './check-source.ts';

export interface SyncPlan {
  readonly format: SourceFormat;
  readonly source: SourcePlan;
  readonly reconcileMs: number;
  readonly apiServerMs: number;
  readonly impliesNamespaces: boolean;
  readonly showsStatus: boolean;
  /** What becomes of deletions by hand of what its objects depend on. */
  readonly deleteMode: DeleteMode;
  readonly roleRefs: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

const RECONCILE_MS = 5 * 60_000;
const API_SERVER_MS = 15_000;
const POLICIES = ['Foreground', 'Orphan'];

/**
 * Reads the spec.
 * @throws SyncFailure KNV1061, with all that is wrong in one text
 */
export function planOf(object: DeepReadonly<Sync>, sync: SyncIdentity): SyncPlan {
  const wrong: string[] = [];
  const { sourceFormat = '', override } = object.spec ?? {};
  const ms = (text: string | undefined, otherwise: number, name: string, least: number): number => {
    if (text === undefined || text === '') return otherwise;
    const value = millisecondsOf(text);
    if (!(value >= 0) || (value < least && value !== 0))
      wrong.push(`${name} ${JSON.stringify(text)} is not a valid duration`);
    return value > 0 ? value : otherwise;
  };
  checkPlace(sync, wrong);
  const policy = object.metadata.annotations?.[PROPAGATION_POLICY];
  if (policy !== undefined && !POLICIES.includes(policy))
    wrong.push(`annotation ${PROPAGATION_POLICY} is ${JSON.stringify(policy)}; it is Foreground or Orphan`);
  const deleteMode = object.metadata.annotations?.[DELETE_WITH_DEPENDENTS] ?? 'allow';
  if (!isDeleteMode(deleteMode))
    wrong.push(`annotation ${DELETE_WITH_DEPENDENTS} is ${JSON.stringify(deleteMode)}; it is ${MODES_TEXT}`);
  const format = formatOf(sync, sourceFormat, wrong);
  const source = planSource(object.spec ?? {}, sync, { wrong, ms });
  for (const { kind, namespace } of override?.roleRefs ?? [])
    if (kind === 'Role' && !namespace) wrong.push('spec.override.roleRefs: a Role needs a namespace');
  const plan = {
    reconcileMs: ms(override?.reconcileTimeout, RECONCILE_MS, 'spec.override.reconcileTimeout', 1),
    apiServerMs: ms(override?.apiServerTimeout, API_SERVER_MS, 'spec.override.apiServerTimeout', 1),
  };
  if (wrong.length > 0 || !source)
    throw new SyncFailure([syncError(1061, `invalid ${sync.kind}: ${wrong.join('; ')}`)]);
  return {
    ...plan,
    format,
    source,
    // In format hierarchy every namespace is declared.
    impliesNamespaces:
      sync.kind === 'RootSync' &&
      format === 'unstructured' &&
      (override?.namespaceStrategy || 'implicit') === 'implicit',
    deleteMode: deleteMode as DeleteMode,
    showsStatus: override?.statusMode !== 'disabled',
    roleRefs: (override?.roleRefs ?? []) as SyncPlan['roleRefs'],
  };
}

/** NaN for what is none. */
const millisecondsOf = (text: string): number => parseGoDuration(text) ?? Number.NaN;

function checkPlace(sync: SyncIdentity, wrong: string[]): void {
  const isHome = sync.namespace === CONFIG_SYNC_NAMESPACE;
  if (sync.kind === 'RootSync' && !isHome) wrong.push(`a RootSync lives in namespace ${CONFIG_SYNC_NAMESPACE}`);
  if (sync.kind === 'RepoSync' && isHome) wrong.push(`a RepoSync does not live in namespace ${CONFIG_SYNC_NAMESPACE}`);
  if (reconcilerName(sync).length > 63)
    wrong.push(`its name is too long: ${reconcilerName(sync)} has more than 63 characters`);
}

/** Without one it is hierarchy for a RootSync, which is upstream's choice, and unstructured for a RepoSync. */
function formatOf({ kind }: SyncIdentity, format: string, wrong: string[]): SourceFormat {
  if (format === 'unstructured' || (format === '' && kind === 'RepoSync')) return 'unstructured';
  if (kind === 'RootSync' && (format === '' || format === 'hierarchy')) return 'hierarchy';
  wrong.push(`sourceFormat ${JSON.stringify(format)} is not unstructured${kind === 'RootSync' ? ' or hierarchy' : ''}`);
  return 'unstructured';
}

/** `reconcileTimeout` of a sync whose spec may be anything by now. */
export function reconcileMsOf(object: DeepReadonly<Sync>): number {
  const value = millisecondsOf(object.spec?.override?.reconcileTimeout ?? '');
  return value > 0 ? value : RECONCILE_MS;
}
