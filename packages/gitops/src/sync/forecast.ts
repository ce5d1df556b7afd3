/**
 * What an attempt at a source would do, object by object, without doing it: every apply and every deletion is asked of the
 * API server as a dry run, so that defaults, admission and rights have their say.
 */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { conflictError, conflictingManager } from '../apply/apply-objects.ts';
import { dependents, dependsOnOf } from '../apply/delete-objects.ts';
import { fillIn } from '../apply/fill-in.ts';
import type { ServedKinds } from '../apply/kind-catalog.ts';
import type { Target } from '../apply/target.ts';
import type { ObjectRef, SyncError } from '../kinds/kinds.ts';
import { type ChangedField, changedFields } from '../plan/changed-fields.ts';
import type { DeclaredSet } from '../plan/declare.ts';
import type { Declared } from '../plan/declared.ts';
import { type ManagedBy, managedObject } from '../plan/managed-object.ts';
import { keyOfRef, refId, refText } from '../plan/object-ref.ts';
import { compareRefs, type GraphNode } from '../plan/order.ts';
import { isDetached, ownershipOf } from '../plan/ownership.ts';
import { MUTATION } from '../status/metadata-keys.ts';
import { apiSyncError, errorResource } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';

export interface Forecast {
  /** In the order in which they would be written: applies, then deletions. */
  readonly items: readonly ForecastItem[];
  /** What the attempt would say in its status. */
  readonly errors: readonly SyncError[];
}

export interface ForecastItem {
  readonly ref: ObjectRef;
  readonly action: ForecastAction;
  /** File that declares it. */
  readonly path?: string;
  /** Of `change` and `adopt`. */
  readonly fields?: readonly ChangedField[];
  /** What stands behind it, or in its way. */
  readonly why?: string;
  readonly live?: KubeObject;
  /** As the server would store it; missing where that could not be asked yet. */
  readonly wanted?: KubeObject;
}

/**
 * `adopt`: it is there, and nobody's. `let-go`: its metadata goes, it stays. `keep`: it is no longer declared and stays, for
 * the reason that is given. `fail`: the server refuses it.
 */
export type ForecastAction = 'create' | 'change' | 'adopt' | 'none' | 'prune' | 'let-go' | 'keep' | 'fail';

export interface ForecastOptions {
  readonly set: DeclaredSet;
  /** What the inventory names; empty where it is not to be pruned. */
  readonly previous: readonly ObjectRef[];
  readonly by: ManagedBy;
  readonly target: Target;
  readonly kinds: ServedKinds;
  readonly exists: (sync: SyncIdentity) => boolean;
  readonly signal: AbortSignal;
}

/** Objects that are asked about at the same time. */
const CONCURRENCY = 8;

/** Asks about every object. Rejects with ApiError when the server does not answer at all. */
export async function forecast(options: ForecastOptions): Promise<Forecast> {
  const { set, previous } = options;
  const errors: SyncError[] = [...set.errors, ...set.passing];
  const enabled = [...set.enabled].sort((a, b) => compareRefs(a.ref, b.ref));
  const applied = await eachOf(enabled, (one) => applyForecast(one, options, errors));
  const disabled = await eachOf(set.disabled, (one) => releaseForecast(one, options));
  const declared = new Set([...set.enabled, ...set.disabled].map(({ ref }) => refId(ref)));
  for (const ref of set.held) declared.add(refId(ref));
  const undeclared = previous.filter((ref) => !declared.has(refId(ref))).sort((a, b) => compareRefs(b, a));
  const pruned = await pruneForecast(undeclared, options, errors);
  return { items: [...applied, ...disabled.flat(), ...pruned], errors };
}

async function eachOf<T, R>(list: readonly T[], act: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(list.length);
  const entries = list.entries();
  const worker = async (): Promise<void> => {
    for (const [at, one] of entries) results[at] = await act(one);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return results;
}

async function applyForecast(one: Declared, options: ForecastOptions, errors: SyncError[]): Promise<ForecastItem> {
  const { by, target, signal, exists } = options;
  const { ref, path } = one;
  const item = { ref, ...(path !== undefined && { path }) };
  const resources = [errorResource(ref, { version: one.type.version, path })];
  let live: KubeObject | undefined;
  try {
    live = await target.get(one.type, keyOfRef(ref), signal);
    const rival = live && conflictingManager(live, one, { by, exists });
    if (rival !== undefined) {
      errors.push(conflictError(one, by.sync, rival));
      return { ...item, action: 'fail', why: `managed by ${rival}`, ...(live && { live }) };
    }
    const before = live === undefined ? madeBefore(one, options.set.enabled) : undefined;
    // A server that does not have its namespace or its kind yet has no answer.
    if (before !== undefined && !(await isThere(before, options)))
      return { ...item, action: 'create', why: `not asked of the server: ${refText(before.ref)} is made first` };
    if (live && one.object.metadata.annotations?.[MUTATION] === 'ignore') return { ...item, action: 'none', live };
    const filled = await fillIn(one, live, { target, kinds: async () => options.kinds, signal });
    const wanted = await target.apply(one.type, managedObject(filled, by, live), signal, { dryRun: true });
    if (!live) return { ...item, action: 'create', wanted };
    const fields = changedFields(live, wanted);
    const isOurs = ownershipOf(live, ref, by.sync).by === 'us';
    return { ...item, action: !isOurs ? 'adopt' : fields.length > 0 ? 'change' : 'none', fields, live, wanted };
  } catch (error) {
    signal.throwIfAborted();
    errors.push(apiSyncError(error, `failed to apply ${refText(ref)}`, resources));
    return { ...item, action: 'fail', why: messageOf(error), ...(live && { live }) };
  }
}

/** The namespace, or the definition of the kind, that the same source declares. */
const madeBefore = ({ ref }: Declared, enabled: readonly Declared[]): Declared | undefined =>
  enabled.find(
    (other) =>
      (other.ref.group === '' && other.ref.kind === 'Namespace' && other.ref.name === ref.namespace) ||
      (other.defines?.group === ref.group && other.defines.kind === ref.kind),
  );

const isThere = async ({ ref, type }: Declared, { target, signal }: ForecastOptions): Promise<boolean> =>
  (await target.get(type, keyOfRef(ref), signal)) !== undefined;

async function releaseForecast(one: Declared, { by, target, signal }: ForecastOptions): Promise<ForecastItem[]> {
  const live = await target.get(one.type, keyOfRef(one.ref), signal);
  if (!live || ownershipOf(live, one.ref, by.sync).by !== 'us') return [];
  return [{ ref: one.ref, action: 'let-go', why: 'declared managed: disabled', live }];
}

async function pruneForecast(
  refs: readonly ObjectRef[],
  { set, by, target, kinds, signal }: ForecastOptions,
  errors: SyncError[],
): Promise<ForecastItem[]> {
  const items = new Map<string, ForecastItem>();
  const victims: (GraphNode & { readonly live: KubeObject })[] = [];
  const note = (item: ForecastItem): void => void items.set(refId(item.ref), item);
  await eachOf(refs, async (ref) => {
    const type = kinds.byRef(ref);
    // With its definition its objects went as well.
    if (type === undefined) return;
    try {
      if (type === 'unknown') throw new Error(`the server does not say whether it serves ${ref.kind} of ${ref.group}`);
      const live = await target.get(type, keyOfRef(ref), signal);
      if (!live || ownershipOf(live, ref, by.sync).by === 'other') return;
      if (!set.isWhole) note({ ref, action: 'keep', why: 'a file could not be read that may declare it', live });
      else if (isDetached(live, ref)) note({ ref, action: 'let-go', why: 'it says so itself, or is special', live });
      else {
        const { uid } = live.metadata;
        await target.client.delete(type, keyOfRef(ref), {
          signal,
          dryRun: true,
          ...(uid && { preconditions: { uid } }),
        });
        victims.push({ ref, dependsOn: dependsOnOf(live), live });
        note({ ref, action: 'prune', live });
      }
    } catch (error) {
      signal.throwIfAborted();
      errors.push(apiSyncError(error, `failed to delete ${refText(ref)}`, [errorResource(ref)]));
      note({ ref, action: 'keep', why: messageOf(error) });
    }
  });
  keepWhatIsNeeded(items, victims, set);
  return refs.flatMap((ref) => items.get(refId(ref)) ?? []);
}

/** What objects that stay depend on, or lie in, stays as well; and so on down. */
function keepWhatIsNeeded(items: Map<string, ForecastItem>, victims: readonly GraphNode[], set: DeclaredSet): void {
  const kept = [...items.values()].filter(({ action }) => action === 'keep');
  const staying: GraphNode[] = [
    ...set.enabled,
    ...[...set.held, ...kept.map(({ ref }) => ref)].map((ref) => ({ ref, dependsOn: [] })),
  ];
  const { needs, kept: needed } = dependents(victims, staying);
  const stays = new Set(needed);
  for (let grew = true; grew; ) {
    grew = false;
    for (const { ref } of victims) {
      const id = refId(ref);
      const by = [...(needs.get(id) ?? [])].find((need) => stays.has(need));
      const item = items.get(id)!;
      if (by === undefined || item.action !== 'prune') continue;
      items.set(id, { ...item, action: 'keep', why: `${by} stays and needs it` });
      stays.add(id);
      grew = true;
    }
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
