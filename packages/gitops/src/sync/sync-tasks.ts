/** The tasks of syncs, by kind and uid: each begins when its sync is seen, and ends with it, or when its sync is not ours to run. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type DeepReadonly, type KubeObject, keyOf } from '@coracle/apimachinery/meta/object';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder, type EventRecorder } from '@coracle/client/events/recorder';
import type { Informer } from '@coracle/client/informer/informer';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { KindCatalog } from '../apply/kind-catalog.ts';
import { type LiveNamespace, liveNamespaceOf } from '../hierarchy/select-namespaces.ts';
import { REPO_SYNCS, ROOT_SYNCS, type Sync } from '../kinds/kinds.ts';
import type { SyncIdentity, SyncKind } from '../status/sync-identity.ts';
import type { GitOpsMetrics } from '../status/sync-metrics.ts';
import type { AttemptStep } from './attempt.ts';
import type { EndStep } from './end-sync.ts';
import { QuietWatch } from './quiet-watch.ts';
import { type SyncTask, startSyncTask } from './sync-task.ts';

export const SYNC_KINDS = ['RootSync', 'RepoSync'] as const;

export type SyncInformers = Readonly<Record<SyncKind, Informer<Sync>>>;

export interface SyncTasksEnvironment extends ControllerEnvironment {
  /** What selectors of clusters go by; the cluster has no name when absent. */
  readonly clusterName?: string;
  readonly onStep?: (step: AttemptStep | EndStep) => void;
  /** Hears that much was done, and nothing for a while: what that took may be given back. */
  readonly onQuiet?: () => void;
}

export interface SyncTasksOptions {
  readonly options: SyncTasksEnvironment;
  /** For mirrors of repositories. */
  readonly directory: string;
  readonly syncs: SyncInformers;
  readonly namespaces: Informer<KubeObject>;
  readonly catalog: KindCatalog;
  readonly metrics: GitOpsMetrics;
  /** True while upstream's own components are there. */
  readonly isAside: () => boolean;
  /** Whether declared fields are guarded now. */
  readonly isGuarded: () => boolean;
  /** Hears that something else may be declared now. */
  readonly onDeclared: () => void;
  readonly signal: AbortSignal;
}

export interface RunningSync extends SyncTask {
  readonly namespace: string;
  readonly stop: () => void;
}

export class SyncTasks {
  readonly #given: SyncTasksOptions;
  readonly #events: EventRecorder;
  readonly #quiet: QuietWatch;
  /** By kind and uid. */
  readonly #tasks = new Map<string, RunningSync>();
  #isOpen = false;

  /** None begins before `open`. */
  constructor(given: SyncTasksOptions) {
    const { client, clock, log, onQuiet = () => {} } = given.options;
    this.#given = given;
    this.#events = createEventRecorder(client, { component: 'coracle-gitops', clock, log, signal: given.signal });
    this.#quiet = new QuietWatch(clock, onQuiet);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  running(): readonly RunningSync[] {
    return [...this.#tasks.values()];
  }

  /** All syncs are known: their tasks begin, and those of others as they are seen. */
  open(): void {
    this.#isOpen = true;
    this.beginAll();
  }

  /** Begins the tasks of all syncs that are there, or stops them while upstream runs the syncs. */
  beginAll(): void {
    if (!this.#isOpen) return;
    if (this.#given.isAside()) {
      for (const task of this.#tasks.values()) task.stop();
      return;
    }
    for (const kind of SYNC_KINDS) for (const object of this.#given.syncs[kind].list()) this.begin(kind, object);
  }

  /** A sync is there, or has changed. */
  begin(kind: SyncKind, object: DeepReadonly<Sync>): void {
    const { uid = '' } = object.metadata;
    const id = `${kind}/${uid}`;
    const known = this.#tasks.get(id);
    if (known) {
      known.changed(object);
      return;
    }
    const own = createLinkedController(this.#given.signal);
    const key = keyOf(object);
    const task = this.#start({ kind, ...key }, uid, own.signal);
    task.changed(object);
    this.#tasks.set(id, {
      ...task,
      namespace: key.namespace,
      stop: () => own.abort(new Error('the sync is not ours to run')),
    });
    void task.ended.finally(async () => {
      own.release();
      this.#tasks.delete(id);
      await this.#afterEnd({ kind, ...key }, uid);
    });
  }

  /** A sync was deleted: what it had may be free. */
  gone(kind: SyncKind, { metadata }: DeepReadonly<Sync>): void {
    this.#tasks.get(`${kind}/${metadata.uid}`)?.changed(undefined);
    for (const task of this.#tasks.values()) task.retryConflicts();
  }

  /** Resolves when all have ended, which the signal asks of them. */
  async ended(): Promise<void> {
    this.#quiet.stop();
    await Promise.all([...this.#tasks.values()].map(({ ended }) => ended));
  }

  #start(sync: SyncIdentity, uid: string, signal: AbortSignal): SyncTask {
    const { options, directory, syncs, namespaces, catalog, metrics, isGuarded, onDeclared } = this.#given;
    const { client, clock, log } = options;
    const { kind, namespace, name } = sync;
    const id = `${kind}/${uid}`;
    return startSyncTask({
      sync,
      object: { type: kind === 'RootSync' ? ROOT_SYNCS : REPO_SYNCS, key: { namespace, name }, uid },
      client,
      catalog,
      exists: (other) => syncs[other.kind].get({ namespace: other.namespace, name: other.name }) !== undefined,
      isGuarded,
      onDeclared,
      // Its own conflicts are another's to end.
      onFreed: () => {
        for (const [other, { retryConflicts }] of this.#tasks) if (other !== id) retryConflicts();
      },
      onAttempt: (objects) => this.#quiet.attempted(objects),
      clusterName: options.clusterName ?? '',
      liveNamespaces: () => liveNamespaces(namespaces),
      isNamespaceGoing: () =>
        namespaces.get({ namespace: '', name: namespace })?.metadata.deletionTimestamp !== undefined,
      directory: join(directory, uid),
      events: this.#events,
      metrics: metrics.of(sync),
      clock,
      log: log.with({ sync: `${kind}/${namespace}/${name}` }),
      signal,
      ...(options.onStep && { onStep: options.onStep }),
    });
  }

  async #afterEnd({ kind, ...key }: SyncIdentity, uid: string): Promise<void> {
    const { directory, syncs, isAside, signal } = this.#given;
    // Its mirror goes with it, and stays when only the task ends.
    if (syncs[kind].get(key)?.metadata.uid !== uid && this.#isOpen && !signal.aborted)
      await rm(join(directory, uid), { recursive: true, force: true });
    // It ended, and the sync is there: it came between.
    const again = syncs[kind].get(key);
    if (again && this.#isOpen && !signal.aborted && !isAside() && again.metadata.uid !== uid) this.begin(kind, again);
  }
}

const liveNamespaces = (namespaces: Informer<KubeObject>): readonly LiveNamespace[] =>
  namespaces
    .list()
    .map(liveNamespaceOf)
    .filter((one) => one !== undefined);
