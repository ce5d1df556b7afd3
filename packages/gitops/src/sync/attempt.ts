/**
 * One attempt at a commit, from its files to its inventory; the steps and what a crash between them leaves are in
 * docs/gitops.md. What fails for one object is an error of that object.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import type { Clock } from '@coracle/runtime/clock/clock';
import { applyObjects } from '../apply/apply-objects.ts';
import { deleteObjects } from '../apply/delete-objects.ts';
import type { Inventory } from '../apply/inventory.ts';
import type { KindCatalog } from '../apply/kind-catalog.ts';
import type { Target } from '../apply/target.ts';
import { declareSource, type SourceSet } from '../hierarchy/declare-source.ts';
import type { LiveNamespace } from '../hierarchy/select-namespaces.ts';
import type { ObjectRef, ResourceStatus, SyncError } from '../kinds/kinds.ts';
import { type DeclaredSet, detachedIfSpecial, impliedNamespace } from '../plan/declare.ts';
import type { Declared } from '../plan/declared.ts';
import { withDependents } from '../plan/dependents.ts';
import type { ManagedBy } from '../plan/managed-object.ts';
import { keyOfRef, refId, refText } from '../plan/object-ref.ts';
import { ownershipOf, releasePatch } from '../plan/ownership.ts';
import type { Kept, Unchanged } from '../remediate/remediator.ts';
import type { ParsedSource } from '../render/parse-manifests.ts';
import { SYSTEM_NAMESPACES } from '../status/metadata-keys.ts';
import { apiSyncError, errorResource, SyncFailure, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { SyncPlan } from './check-spec.ts';

export interface AttemptOptions {
  readonly sync: SyncIdentity;
  readonly plan: SyncPlan;
  readonly commit: string;
  readonly parsed: ParsedSource;
  readonly target: Target;
  readonly inventory: Inventory;
  readonly catalog: KindCatalog;
  readonly exists: (sync: SyncIdentity) => boolean;
  /** What of an earlier attempt is as it was, in the source and on the server; undefined for everything else. */
  readonly unchanged: (one: Declared) => Unchanged | undefined;
  /** Whether declared fields are guarded. */
  readonly isGuarded: () => boolean;
  /** What selectors of clusters go by; '' = the cluster has no name. */
  readonly clusterName: string;
  /** Namespaces that are there and not on their way out. */
  readonly liveNamespaces: () => readonly LiveNamespace[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Hears of each step before it is taken. */
  readonly onStep?: (step: AttemptStep) => void;
}

export type AttemptStep = 'inventory' | 'let-go' | 'apply' | 'prune' | 'inventory-again' | 'report';

export interface AttemptOutcome {
  /** Of the sync, beside those of the source. */
  readonly errors: readonly SyncError[];
  readonly kept: Kept;
  readonly statuses: readonly ResourceStatus[];
  /** Objects were deleted or let go: another sync that declares one may have it. */
  readonly hasFreed: boolean;
  /** Objects are on their way out still: the inventory is to be looked at again. */
  readonly isGoing: boolean;
  /** Objects that were looked at one by one, and not passed over. */
  readonly looked: number;
}

/** How long an attempt waits for the last deletions, milliseconds. */
const LAST_DELETIONS_MS = 2000;
/** Fewer than so many are taken away on purpose, one by one. */
const MANY = 2;

/** What it takes to tell what a source declares. */
export type DeclareOptions = Pick<
  AttemptOptions,
  'sync' | 'plan' | 'parsed' | 'target' | 'catalog' | 'clusterName' | 'liveNamespaces' | 'signal'
>;

/**
 * What a source declares, with what it implies.
 * @throws ApiError, SyncFailure when nothing of the source may be done
 */
export async function declaredBy(options: DeclareOptions): Promise<SourceSet> {
  const { catalog, sync, plan, signal, parsed, clusterName, liveNamespaces } = options;
  const setOf = async (maxAgeMs?: number): Promise<SourceSet> => {
    const kinds = (await catalog.kinds(signal, maxAgeMs)).byVersion;
    const layout = { format: plan.format, dir: plan.source.dir };
    return declareSource(parsed, { ...layout, sync, kinds, clusterName, liveNamespaces });
  };
  let set = await setOf();
  // A kind that was not there a while ago may be by now.
  if (set.passing.length > 0) set = await setOf(0);
  const enabled = set.enabled.map(detachedIfSpecial);
  const implied = plan.impliesNamespaces ? await impliedBy(set, options) : [];
  return { ...set, enabled: withDependents([...enabled, ...implied], plan.deleteMode) };
}

async function impliedBy(
  { enabled, disabled, held }: DeclaredSet,
  { target, sync, signal }: DeclareOptions,
): Promise<Declared[]> {
  const isNamespace = ({ group, kind }: ObjectRef): boolean => group === '' && kind === 'Namespace';
  const declared = new Set(
    [...enabled.map(({ ref }) => ref), ...disabled.map(({ ref }) => ref), ...held]
      .filter(isNamespace)
      .map(({ name }) => name),
  );
  const used = new Set(enabled.filter((one) => !one.needsNoNamespace).map(({ ref }) => ref.namespace));
  const type = NAMESPACES as unknown as ResourceType<KubeObject>;
  const implied: Declared[] = [];
  for (const name of used) {
    if (name === '' || declared.has(name) || SYSTEM_NAMESPACES.has(name)) continue;
    const one = impliedNamespace(name, type);
    const live = await target.get(type, keyOfRef(one.ref), signal);
    if (!live || ownershipOf(live, one.ref, sync).by === 'us') implied.push(one);
  }
  return implied;
}

/**
 * Applies and prunes.
 * @throws SyncFailure when nothing of it may be done, ApiError when the inventory cannot be had
 */
export async function attempt(set: DeclaredSet, options: AttemptOptions): Promise<AttemptOutcome> {
  const { sync, plan, commit, target, inventory, clock, signal, onStep = () => {} } = options;
  const previous = (await inventory.read(signal)) ?? [];
  refuseToEmpty(previous, set);
  const declared = new Set(set.enabled.map(({ ref }) => refId(ref)));
  const disabled = new Set(set.disabled.map(({ ref }) => refId(ref)));
  const held = new Set(set.held.map(refId));
  const before = new Map(previous.map((ref) => [refId(ref), ref]));
  const undeclared = previous.filter(
    (ref) => !declared.has(refId(ref)) && !disabled.has(refId(ref)) && !held.has(refId(ref)),
  );

  onStep('inventory');
  const union = new Map([...before, ...set.enabled.map(({ ref }) => [refId(ref), ref] as const)]);
  for (const id of disabled) union.delete(id);
  await inventory.write([...union.values()], signal);

  onStep('let-go');
  const freed = await letGo(set.disabled, options);
  const errors = [...set.passing, ...freed.errors];

  onStep('apply');
  const by: ManagedBy = {
    sync,
    commit,
    context: plan.source.context,
    clusterName: options.clusterName,
    isGuarded: options.isGuarded(),
  };
  const unchanged = new Map<string, Unchanged['live']>();
  const enabled = set.enabled.map((one): Declared => {
    const known = options.unchanged(one);
    if (!known) return one;
    unchanged.set(refId(one.ref), known.live);
    return known.one;
  });
  const doomed = set.isWhole ? new Set(undeclared.map(refId)) : new Set<string>();
  const kinds = () => options.catalog.kinds(signal);
  const applied = await applyObjects({
    declared: enabled,
    doomed,
    by,
    unchanged,
    target,
    kinds,
    exists: options.exists,
    reconcileMs: plan.reconcileMs,
    clock,
    signal,
  });
  errors.push(...applied.errors);

  onStep('prune');
  const pruned = await deleteObjects({
    refs: set.isWhole ? undeclared : [],
    staying: [...set.enabled, ...set.held.map((ref) => ({ ref, dependsOn: [] }))],
    sync,
    commit,
    target,
    kinds,
    propagation: 'Background',
    reconcileMs: plan.reconcileMs,
    finalWaitMs: LAST_DELETIONS_MS,
    clock,
    signal,
  });
  errors.push(...pruned.errors);

  onStep('inventory-again');
  const left = new Map<string, ObjectRef>();
  for (const { ref } of set.enabled) {
    const id = refId(ref);
    const isThere = applied.applied.has(id) || applied.unsure.has(id) || (before.has(id) && !applied.lost.has(id));
    if (isThere) left.set(id, ref);
  }
  for (const ref of previous) if (held.has(refId(ref))) left.set(refId(ref), ref);
  for (const ref of undeclared) if (!pruned.gone.has(refId(ref))) left.set(refId(ref), ref);
  await inventory.write([...left.values()], signal);
  onStep('report');
  const heldStatuses = previous
    .filter((ref) => held.has(refId(ref)))
    .map(
      (ref): ResourceStatus => ({
        ...ref,
        status: 'Unknown',
        strategy: 'Apply',
        actuation: 'Skipped',
        reconcile: 'Skipped',
      }),
    );
  const statuses = [...applied.statuses, ...pruned.statuses, ...heldStatuses].filter((one) => left.has(refId(one)));
  await inventory.report(statuses, signal);
  return {
    errors,
    statuses,
    isGoing: pruned.going.length > 0,
    hasFreed: freed.count > 0 || pruned.gone.size > 0,
    looked: enabled.length - unchanged.size + undeclared.length,
    kept: {
      by,
      enabled: enabled
        .filter(({ ref }) => applied.applied.has(refId(ref)) || applied.lost.has(refId(ref)))
        .map((one) => ({ ...(applied.written.get(refId(one.ref)) ?? one), since: one.since ?? commit })),
      disabled: set.disabled,
      spared: new Set([...left.keys(), ...held, ...declared]),
      sparesAll: !set.isWhole,
      applied: applied.applied,
    },
  };
}

/**
 * What empties a cluster is more often a slip than meant.
 * @throws SyncFailure KNV2006
 */
export function refuseToEmpty(previous: readonly ObjectRef[], { enabled, disabled, held, errors }: DeclaredSet): void {
  const isNamespace = ({ group, kind }: ObjectRef): boolean => group === '' && kind === 'Namespace';
  const all = [...enabled.map(({ ref }) => ref), ...disabled.map(({ ref }) => ref), ...held];
  const namespaces = previous.filter(isNamespace).length;
  if (namespaces >= MANY && !all.some(isNamespace))
    throw new SyncFailure([
      syncError(
        2006,
        `the commit would remove all ${namespaces} namespaces that this sync manages: nothing is changed. Remove all but one first if that is intended`,
      ),
    ]);
  if (previous.length >= MANY && all.length === 0 && errors.length === 0)
    throw new SyncFailure([
      syncError(
        2006,
        `the commit declares nothing and would remove all ${previous.length} objects: nothing is changed. Keep one object, or delete the sync with deletion-propagation-policy Foreground, if that is intended`,
      ),
    ]);
}

/** Takes the metadata off objects that are declared `managed: disabled`. */
async function letGo(
  disabled: readonly Declared[],
  { target, sync, signal }: AttemptOptions,
): Promise<{ errors: readonly SyncError[]; count: number }> {
  const errors: SyncError[] = [];
  let count = 0;
  for (const { ref, type, path } of disabled) {
    try {
      const live = await target.get(type, keyOfRef(ref), signal);
      if (!live || ownershipOf(live, ref, sync).by === 'other') continue;
      const patch = releasePatch(live, sync);
      if (!patch) continue;
      await target.merge(type, keyOfRef(ref), patch, signal);
      count++;
    } catch (error) {
      signal.throwIfAborted();
      errors.push(
        apiSyncError(error, `failed to release ${refText(ref)}`, [errorResource(ref, { version: type.version, path })]),
      );
    }
  }
  return { errors, count };
}
