/** What a sync says of itself: its status, stage by stage, and events for people. */

import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Sync, SyncError, SyncStatus } from '../kinds/kinds.ts';
import type { Declared } from '../plan/declared.ts';
import { dependentsOf, readDependents } from '../plan/dependents.ts';
import { refText } from '../plan/object-ref.ts';
import { type SyncFailure, syncError } from '../status/sync-error.ts';
import { attemptAt, SYNC_HISTORY, withAttempt } from '../status/sync-history.ts';
import { reconcilerName, type SyncIdentity } from '../status/sync-identity.ts';
import type { SyncRecorder } from '../status/sync-metrics.ts';
import { isSynced, type StageOrigin, setCondition, setStage, setSyncing } from '../status/sync-status.ts';
import { changeSync, type SyncObject } from '../status/write-status.ts';

export interface SyncReportOptions {
  readonly sync: SyncIdentity;
  readonly object: SyncObject;
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly metrics: Pick<SyncRecorder, 'stages'>;
}

/** A commit and where it comes from. */
export interface CommitOf {
  readonly origin: StageOrigin;
  readonly commit: string;
}

export class SyncReport {
  readonly #options: SyncReportOptions;
  /** The sync as it was read or written last. */
  #newest: Sync | undefined;
  #last = '';

  constructor(options: SyncReportOptions) {
    this.#options = options;
  }

  /** The sync as it is stored: the next write begins there. */
  read(sync: Sync): void {
    this.#newest = sync;
  }

  /** Account and bindings are there. */
  async ready(generation: number, signal: AbortSignal): Promise<void> {
    const { clock, sync } = this.#options;
    await this.#change(signal, (status) => {
      status.observedGeneration = generation;
      status.reconciler = reconcilerName(sync);
      for (const type of ['Reconciling', 'Stalled'] as const)
        setCondition(status, { type, status: 'False', reason: '', message: '' }, clock.now());
    });
  }

  /** The spec cannot be meant. */
  async refused({ errors, message }: SyncFailure, generation: number, signal: AbortSignal): Promise<void> {
    await this.#change(signal, (status) => {
      status.observedGeneration = generation;
      this.#setStalled(status, { reason: 'Validation', message, errors });
    });
    this.#notice('', errors);
  }

  /** It could not be set up, or the API does not answer. */
  async stalled(error: unknown, signal: AbortSignal): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    await this.#change(signal, (status) =>
      this.#setStalled(status, { reason: 'Error', message, errors: [syncError(2002, message)] }),
    );
    this.#notice('', [syncError(2002, message)]);
  }

  /** The source cannot be had. */
  async sourceFailed(
    of: { readonly origin: StageOrigin; readonly commit?: string },
    message: string,
    signal: AbortSignal,
  ): Promise<void> {
    const errors = [syncError(2004, message)];
    const now = this.#options.clock.now();
    await this.#change(signal, (status) => {
      setStage(status, 'source', { ...of, errors }, now);
      const commit = of.commit ?? status.source?.commit ?? '';
      setSyncing(status, { isWorking: false, reason: 'Source', message: 'Source', commit }, now);
    });
    await this.#remember(of.commit ?? '', errors, signal);
  }

  async renderingFailed(of: CommitOf, errors: readonly SyncError[], signal: AbortSignal): Promise<void> {
    const now = this.#options.clock.now();
    await this.#change(signal, (status) => {
      setStage(status, 'source', of, now);
      setStage(status, 'rendering', { ...of, errors, message: 'Rendering failed' }, now);
      setSyncing(
        status,
        { isWorking: false, reason: 'Rendering', message: 'Rendering failed', commit: of.commit },
        now,
      );
    });
    await this.#remember(of.commit, errors, signal);
  }

  /** Objects are there and about to be applied. */
  async syncing(of: CommitOf, rendering: string, errors: readonly SyncError[], signal: AbortSignal): Promise<void> {
    const now = this.#options.clock.now();
    await this.#change(signal, (status) => {
      setStage(status, 'rendering', { ...of, message: rendering }, now);
      setStage(status, 'source', { ...of, errors }, now);
      setSyncing(status, { isWorking: true, reason: 'Sync', message: 'Syncing', commit: of.commit }, now);
    });
  }

  /** An attempt has ended. */
  async synced(
    of: CommitOf,
    { source, sync }: { readonly source: readonly SyncError[]; readonly sync: readonly SyncError[] },
    signal: AbortSignal,
  ): Promise<void> {
    const now = this.#options.clock.now();
    await this.#change(signal, (status) => {
      setStage(status, 'source', { ...of, errors: source }, now);
      this.#setSync(status, of, sync);
      if (isSynced(status, of.commit)) status.lastSyncedCommit = of.commit;
    });
    await this.#remember(of.commit, [...source, ...sync], signal);
  }

  /** Errors that the watches found since; nothing is said of a commit that is not the one in the status. */
  async watched(of: CommitOf, errors: readonly SyncError[], signal: AbortSignal): Promise<void> {
    await this.#change(signal, (status) => {
      if (status.sync?.commit === of.commit) this.#setSync(status, of, errors);
    });
  }

  event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { events, sync, object } = this.#options;
    const metadata = { namespace: sync.namespace, name: sync.name, uid: object.uid };
    events.event({ apiVersion: 'configsync.gke.io/v1beta1', kind: sync.kind, metadata }, type, reason, message);
  }

  /** An event for an object that was deleted by hand while others depend on it, where the sync asks for that. */
  deletedWithDependents({ ref, dependents }: Pick<Declared, 'ref' | 'dependents'>): void {
    const read = readDependents(dependents);
    if (!read) return;
    const message = `${refText(ref)} was deleted while declared objects depend on it, and is created again: ${dependentsOf(read)}`;
    this.event('Warning', 'DeletedWithDependents', message);
  }

  /** An event for each commit that went well, and for each new set of errors. */
  #notice(commit: string, errors: readonly SyncError[]): void {
    const [first] = errors;
    const text = first
      ? `${commit === '' ? '' : `commit ${commit}: `}${errors.length} errors, the first: ${first.errorMessage.split('\n')[0]}`
      : `synced commit ${commit}`;
    if (text === this.#last) return;
    this.#last = text;
    this.event(first ? 'Warning' : 'Normal', first ? 'SyncFailed' : 'Synced', text);
  }

  #setSync(status: SyncStatus, of: CommitOf, errors: readonly SyncError[]): void {
    const now = this.#options.clock.now();
    setStage(status, 'sync', { ...of, errors }, now);
    setSyncing(status, { isWorking: false, reason: 'Sync', message: 'Sync Completed', commit: of.commit }, now);
  }

  #setStalled(
    status: SyncStatus,
    {
      reason,
      message,
      errors,
    }: { readonly reason: string; readonly message: string; readonly errors: readonly SyncError[] },
  ): void {
    const errorSummary = { totalCount: errors.length, truncated: false, errorCountAfterTruncation: errors.length };
    setCondition(
      status,
      { type: 'Stalled', status: 'True', reason, message, errors: [...errors], errorSummary },
      this.#options.clock.now(),
    );
  }

  async #change(signal: AbortSignal, change: (status: SyncStatus) => void): Promise<void> {
    const { metrics } = this.#options;
    await this.#write((copy) => change(copy.status), { signal });
    if (this.#newest?.status) metrics.stages(this.#newest.status);
  }

  /** Puts the outcome of an attempt into the history and an event, where it differs from the one before. */
  async #remember(commit: string, errors: readonly SyncError[], signal: AbortSignal): Promise<void> {
    this.#notice(commit, errors);
    const attempt = attemptAt(commit, errors, this.#options.clock.now());
    await this.#write(
      (copy) => {
        const value = withAttempt(copy, attempt);
        if (value !== undefined) copy.metadata.annotations = { ...copy.metadata.annotations, [SYNC_HISTORY]: value };
      },
      { signal, subresource: '' },
    );
  }

  async #write(
    change: (copy: Sync & { status: SyncStatus }) => void,
    how: { readonly signal: AbortSignal; readonly subresource?: '' },
  ): Promise<void> {
    const { client, object } = this.#options;
    const known = this.#newest;
    // What a write that fails leaves is not known.
    this.#newest = undefined;
    this.#newest = await changeSync(client, object, change, { ...how, known });
  }
}
