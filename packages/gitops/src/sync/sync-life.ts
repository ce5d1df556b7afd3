/** What one sync does, step by step: set up, fetch, attempt, watch, and in the end finalize. States are in docs/gitops.md. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { type Inventory, openInventory } from '../apply/inventory.ts';
import type { KindCatalog } from '../apply/kind-catalog.ts';
import { createTarget, type Target } from '../apply/target.ts';
import type { LiveNamespace } from '../hierarchy/select-namespaces.ts';
import type { ResourceStatus, Sync, SyncError } from '../kinds/kinds.ts';
import type { Declared } from '../plan/declared.ts';
import { createRemediator, type Kept, type Remediator } from '../remediate/remediator.ts';
import type { ParsedSource } from '../render/parse-manifests.ts';
import { isConflictError, SyncFailure, syncError, withFights } from '../status/sync-error.ts';
import { reconcilerUser, type SyncIdentity } from '../status/sync-identity.ts';
import type { ApplyController, SyncRecorder, Trigger } from '../status/sync-metrics.ts';
import { readSync, type SyncObject } from '../status/write-status.ts';
import { type AttemptStep, attempt, declaredBy } from './attempt.ts';
import { AttemptPace } from './attempt-pace.ts';
import { planOf, type SyncPlan } from './check-spec.ts';
import { type EndStep, endSync } from './end-sync.ts';
import { openSource } from './open-source.ts';
import { withHealth } from './relevant-state.ts';
import { SelectionWatch } from './selection-watch.ts';
import { setUpSync } from './set-up.ts';
import { type CommitOf, SyncReport } from './sync-report.ts';
import { SyncSource } from './sync-source.ts';

export interface SyncLifeOptions {
  readonly sync: SyncIdentity;
  readonly object: SyncObject;
  /** As the component itself. */
  readonly client: Client;
  readonly catalog: KindCatalog;
  readonly exists: (sync: SyncIdentity) => boolean;
  /** Whether declared fields are guarded. */
  readonly isGuarded: () => boolean;
  /** Hears that other objects may be declared now. */
  readonly onDeclared: () => void;
  /** Hears that objects were deleted or let go, which other syncs may declare. */
  readonly onFreed: () => void;
  /** Hears how many objects an attempt has looked at one by one, and not passed over. */
  readonly onAttempt: (objects: number) => void;
  /** What selectors of clusters go by; '' = the cluster has no name. */
  readonly clusterName: string;
  /** Namespaces that are there and not on their way out. */
  readonly liveNamespaces: () => readonly LiveNamespace[];
  /** True while the namespace of the sync is on its way out. */
  readonly isNamespaceGoing: () => boolean;
  /** Private to this sync. */
  readonly directory: string;
  readonly events: EventRecorder;
  readonly metrics: SyncRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly onStep?: (step: AttemptStep | EndStep) => void;
}

/** A spec that is not valid may become so by something else than a write of it: a secret. */
const RECHECK_MS = 15_000;
/** Between two looks at the health of objects. */
const HEALTH_MS = 500;
const API_SERVER_MS = 15_000;
const SHORTEST_MS = 10;

export class SyncLife {
  readonly #options: SyncLifeOptions;
  readonly #report: SyncReport;
  readonly #target: Target;
  readonly #inventory: Inventory;
  readonly #remediator: Remediator;
  readonly #wake: () => void;
  #plan: SyncPlan | undefined;
  #source: SyncSource | undefined;
  readonly #pace: AttemptPace;
  #kept: Kept | undefined;
  #statuses: readonly ResourceStatus[] = [];
  #errors: readonly SyncError[] = [];
  #isHealthDue = false;
  readonly #selection: SelectionWatch;
  #finalizingSince: number | undefined;

  constructor(options: SyncLifeOptions, wake: () => void) {
    const { sync, client, clock, log, metrics, signal } = options;
    this.#options = options;
    this.#wake = wake;
    this.#report = new SyncReport(options);
    this.#pace = new AttemptPace(clock);
    this.#selection = new SelectionWatch(clock, options.liveNamespaces, wake);
    const targetOf = (controller: ApplyController): Target =>
      createTarget(client.impersonating(reconcilerUser(sync)), {
        clock,
        timeoutMs: () => this.#plan?.apiServerMs ?? API_SERVER_MS,
        onWrite: (operation, outcome) => metrics.wrote(controller, operation, outcome),
      });
    this.#target = targetOf('applier');
    this.#inventory = openInventory({ client, sync, showsStatus: () => this.#plan?.showsStatus ?? true });
    this.#remediator = createRemediator({
      sync,
      target: targetOf('remediator'),
      exists: options.exists,
      clock,
      log,
      metrics,
      signal,
      onChange: () => this.#healthChanged(),
      onDeleted: (one) => this.#report.deletedWithDependents(one),
    });
  }

  stop = (): Promise<void> => this.#remediator.stop();

  retryConflicts(): void {
    if (![...this.#errors, ...this.#remediator.errors()].some(isConflictError)) return;
    this.#pace.retryNow();
    this.#wake();
  }

  declaredVersions(): readonly Pick<ResourceType<KubeObject>, 'group' | 'version'>[] {
    return (this.#kept?.enabled ?? []).map(({ type }) => type);
  }

  /** Does what is to be done now; returns after how many milliseconds to look again, undefined when it is over. */
  async step(signal: AbortSignal): Promise<number | undefined> {
    const { client, object, log } = this.#options;
    let read: Sync | undefined;
    try {
      read = await readSync(client, object, signal);
      if (!read) return undefined;
      this.#report.read(read);
      return isDeleting(read) ? await this.#finalize(read, signal) : await this.#work(read, signal);
    } catch (error) {
      signal.throwIfAborted();
      const retryMs = Math.round(this.#pace.failed());
      log.warn('a sync could not be worked on', {
        error: error instanceof Error ? error.message : String(error),
        retryMs,
      });
      if (read && !isDeleting(read)) {
        // The next set-up takes the condition back.
        this.#source = undefined;
        await this.#report.stalled(error, signal).catch(() => {});
      }
      return retryMs;
    }
  }

  async #work(object: Sync, signal: AbortSignal): Promise<number> {
    const { sync, clock } = this.#options;
    const generation = object.metadata.generation ?? 0;
    try {
      this.#plan = planOf(object, sync);
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error;
      await this.#remediator.pause();
      await this.#report.refused(error, generation, signal);
      return RECHECK_MS;
    }
    const plan = this.#plan;
    if (this.#source?.generation !== generation) {
      await setUpSync(this.#options, plan, signal);
      await this.#report.ready(generation, signal);
      const source = openSource(plan.source.spec, this.#options);
      const { source: sourcePlan, format } = plan;
      const shared = { format, generation, report: this.#report };
      this.#source = new SyncSource({ ...this.#options, ...shared, source, plan: sourcePlan });
      this.#pace.settled();
    }
    const source = this.#source;
    const commit = await source.poll(signal);
    if (commit === undefined) {
      // When it is back its commit is attempted again, whichever it is: the status says so.
      this.#pace.forget();
      await this.#publishHealth(signal);
      return Math.max(source.pollAt - clock.monotonic(), SHORTEST_MS);
    }
    const at = { commit, generation, isGuarded: this.#options.isGuarded(), deleteMode: plan.deleteMode };
    const trigger = this.#pace.due(at, this.#selection.hasChanged());
    if (trigger) {
      await this.#attempt(source, { commit, trigger }, signal);
      this.#pace.made(at);
    } else await this.#publishHealth(signal);
    return Math.max(Math.min(source.pollAt, this.#pace.retryAt) - clock.monotonic(), SHORTEST_MS);
  }

  async #attempt(
    source: SyncSource,
    { commit, trigger }: { readonly commit: string; readonly trigger: Trigger },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log, metrics } = this.#options;
    const of = source.of(commit);
    const parsed = await source.read(commit, trigger, signal);
    if (!parsed) return this.#pace.retryLater();
    await this.#remediator.pause();
    const from = clock.monotonic();
    const { sourceErrors, isGoing } = await this.#apply(parsed, of, signal);
    // What was applied before is kept as it is, also while a newer commit is refused as a whole.
    if (this.#kept) this.#remediator.resume(this.#kept);
    const errors = withFights(this.#errors, this.#remediator.errors());
    await this.#report.synced(of, { source: sourceErrors, sync: errors }, signal);
    const count = errors.length + sourceErrors.length;
    const outcome = { ms: clock.monotonic() - from, ok: count === 0 };
    metrics.parsed('update', trigger, outcome);
    metrics.attempted({
      ...outcome,
      commit,
      at: clock.now(),
      declared: this.#kept?.enabled.length ?? 0,
      statuses: this.#statuses,
      errors,
    });
    log.info('a commit was synced', { commit: of.commit, objects: this.#kept?.enabled.length ?? 0, errors: count });
    if (count > 0) this.#pace.retryLater();
    else this.#pace.succeeded(isGoing);
  }

  async #apply(
    parsed: ParsedSource,
    { commit }: CommitOf,
    signal: AbortSignal,
  ): Promise<{ sourceErrors: readonly SyncError[]; isGoing: boolean }> {
    const { sync, catalog, exists, isGuarded, clock, onStep, clusterName, liveNamespaces } = this.#options;
    const { generation } = this.#source!;
    const isFull = this.#pace.isFull(generation) || this.#kept?.by.isGuarded !== isGuarded();
    const shared = {
      sync,
      plan: this.#plan!,
      commit,
      parsed,
      target: this.#target,
      inventory: this.#inventory,
      catalog,
      exists,
      clusterName,
      liveNamespaces,
      unchanged: (one: Declared) => (isFull ? undefined : this.#remediator.unchanged(one)),
      isGuarded,
      clock,
      signal,
      ...(onStep && { onStep }),
    };
    let sourceErrors: readonly SyncError[] = parsed.errors;
    // An attempt that fails is retried later and later, whatever namespaces come meanwhile.
    this.#selection.follow([], []);
    let isDeclared = false;
    try {
      const before = liveNamespaces();
      const set = await declaredBy(shared);
      isDeclared = true;
      sourceErrors = set.errors;
      this.#selection.follow(set.dynamic, before);
      const outcome = await attempt(set, shared);
      if (isFull) this.#pace.wroteAll(generation);
      this.#errors = outcome.errors;
      this.#statuses = outcome.statuses;
      this.#kept = outcome.kept;
      this.#options.onDeclared();
      this.#options.onAttempt(outcome.looked);
      if (outcome.hasFreed) this.#options.onFreed();
      return { sourceErrors, isGoing: outcome.isGoing };
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof SyncFailure && !isDeclared) {
        this.#errors = [];
        return { sourceErrors: [...sourceErrors, ...error.errors], isGoing: false };
      }
      if (!(error instanceof SyncFailure) && !(error instanceof ApiError))
        this.#options.metrics.failedInside('attempt');
      this.#errors = error instanceof SyncFailure ? error.errors : [syncError(2002, message)];
      return { sourceErrors, isGoing: false };
    }
  }

  namespacesChanged(): void {
    this.#selection.namespacesChanged();
  }

  #healthChanged(): void {
    if (this.#isHealthDue) return;
    this.#isHealthDue = true;
    this.#options.clock.schedule(HEALTH_MS, () => this.#wake());
  }

  /** What the watches say of objects and conflicts, where it differs from what is written. */
  async #publishHealth(signal: AbortSignal): Promise<void> {
    if (!this.#isHealthDue || !this.#kept) return;
    this.#isHealthDue = false;
    this.#statuses = withHealth(this.#statuses, this.#kept.enabled, (one) => this.#remediator.live(one));
    await this.#inventory.report(this.#statuses, signal);
    const found = this.#remediator.errors();
    // Whether the other manager has let go shows no watch of ours: it is asked for.
    const isContested = found.some(isConflictError);
    if (isContested) this.#pace.retrySoon();
    const { by } = this.#kept;
    if (this.#pace.commit !== by.commit) return;
    await this.#report.watched(
      { origin: this.#plan!.source.originOf(by.commit), commit: by.commit },
      withFights(this.#errors, found),
      signal,
    );
  }

  async #finalize(object: Sync, signal: AbortSignal): Promise<number | undefined> {
    await this.#remediator.pause();
    this.#finalizingSince ??= this.#options.clock.monotonic();
    const { object: syncObject, ...options } = this.#options;
    return endSync({
      ...options,
      object,
      syncObject,
      target: this.#target,
      inventory: this.#inventory,
      since: this.#finalizingSince,
      failures: () => this.#pace.countFailure(),
      event: (type, reason, message) => this.#report.event(type, reason, message),
      signal,
    });
  }
}
