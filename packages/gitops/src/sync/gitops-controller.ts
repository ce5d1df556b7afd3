/** Every RootSync and RepoSync of the cluster, each with a task of its own; aside while upstream's manager is installed. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { type DeepReadonly, type KubeObject, keyOf } from '@coracle/apimachinery/meta/object';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { aborted } from '@coracle/runtime/signal/abortable';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { createKindCatalog } from '../apply/kind-catalog.ts';
import { GUARD_NAME, isGuardOn } from '../guard/decide-write.ts';
import { type LiveNamespace, liveNamespaceOf } from '../hierarchy/select-namespaces.ts';
import { CONFIG_SYNC_NAMESPACE, REPO_SYNCS, ROOT_SYNCS, type Sync } from '../kinds/kinds.ts';
import type { SyncIdentity, SyncKind } from '../status/sync-identity.ts';
import { createGitOpsMetrics, type GitOpsMetrics } from '../status/sync-metrics.ts';
import type { AttemptStep } from './attempt.ts';
import type { EndStep } from './end-sync.ts';
import { createGuardConfigurator, GUARD_CONFIGURATIONS, type ServeGuard } from './guard-configuration.ts';
import { QuietWatch } from './quiet-watch.ts';
import { type SyncTask, startSyncTask } from './sync-task.ts';

export interface GitOpsOptions extends ControllerEnvironment {
  /** For mirrors of repositories, private to this process; a temporary one when absent. */
  readonly directory?: string;
  /** What selectors of clusters go by; the cluster has no name when absent. */
  readonly clusterName?: string;
  /** What is counted; without it nobody looks. */
  readonly metrics?: GitOpsMetrics;
  readonly onStep?: (step: AttemptStep | EndStep) => void;
  /** Hears that much was done, and nothing for a while: what that took may be given back. */
  readonly onQuiet?: () => void;
  /** Serves the webhook that guards declared fields where the API server reaches it; absent where that is done in process. */
  readonly serveWebhook?: ServeGuard;
}

const DEPLOYMENTS: ResourceType<KubeObject> = {
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};
const UPSTREAM = 'reconciler-manager';

/** Makes the component. */
export function createGitOpsController(options: GitOpsOptions): Runnable {
  const { client, informers, clock, log } = options;
  const syncs = { RootSync: informers.of(ROOT_SYNCS), RepoSync: informers.of(REPO_SYNCS) };
  const namespaces = informers.of(NAMESPACES);
  const managers = informers.of(DEPLOYMENTS, { fieldSelector: `metadata.name=${UPSTREAM}` });
  const guards = informers.of(GUARD_CONFIGURATIONS, { fieldSelector: `metadata.name=${GUARD_NAME}` });
  const isGuarded = (): boolean => isGuardOn(guards.get({ namespace: '', name: GUARD_NAME }));
  const catalog = createKindCatalog(client, clock);
  const metrics = options.metrics ?? createGitOpsMetrics();

  const start = async (signal: AbortSignal): Promise<void> => {
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'coracle-gitops-')));
    const events = createEventRecorder(client, { component: 'coracle-gitops', clock, log, signal });
    /** By kind and uid. */
    const tasks = new Map<string, SyncTask & { readonly stop: () => void; readonly namespace: string }>();
    const exists = ({ kind, namespace, name }: SyncIdentity): boolean =>
      syncs[kind].get({ namespace, name }) !== undefined;
    const liveNamespaces = (): readonly LiveNamespace[] =>
      namespaces
        .list()
        .map(liveNamespaceOf)
        .filter((one) => one !== undefined);
    const isAside = (): boolean => managers.list(CONFIG_SYNC_NAMESPACE).length > 0;
    let isReady = false;
    const quiet = new QuietWatch(clock, options.onQuiet ?? (() => {}));
    const webhook =
      options.serveWebhook &&
      createGuardConfigurator({
        ...options,
        serve: options.serveWebhook,
        isAside,
        versions: () => [...tasks.values()].flatMap((task) => task.declaredVersions()),
      });

    const begin = (kind: SyncKind, object: DeepReadonly<Sync>): void => {
      const { uid = '' } = object.metadata;
      const key = keyOf(object);
      const id = `${kind}/${uid}`;
      const known = tasks.get(id);
      if (known) {
        known.changed(object);
        return;
      }
      const own = createLinkedController(signal);
      const task = startSyncTask({
        sync: { kind, ...key },
        object: { type: kind === 'RootSync' ? ROOT_SYNCS : REPO_SYNCS, key, uid },
        client,
        catalog,
        exists,
        isGuarded,
        onDeclared: () => webhook?.declaredChanged(),
        // Its own conflicts are another's to end.
        onFreed: () => {
          for (const [other, { retryConflicts }] of tasks) if (other !== id) retryConflicts();
        },
        onAttempt: (objects) => quiet.attempted(objects),
        clusterName: options.clusterName ?? '',
        liveNamespaces,
        isNamespaceGoing: () =>
          namespaces.get({ namespace: '', name: key.namespace })?.metadata.deletionTimestamp !== undefined,
        directory: join(directory, uid),
        events,
        metrics: metrics.of({ kind, ...key }),
        clock,
        log: log.with({ sync: `${kind}/${key.namespace}/${key.name}` }),
        signal: own.signal,
        ...(options.onStep && { onStep: options.onStep }),
      });
      task.changed(object);
      tasks.set(id, {
        ...task,
        namespace: key.namespace,
        stop: () => own.abort(new Error('the sync is not ours to run')),
      });
      void task.ended.finally(async () => {
        own.release();
        tasks.delete(id);
        // Its mirror goes with it, and stays when only the task ends.
        if (syncs[kind].get(key)?.metadata.uid !== uid && isReady && !signal.aborted)
          await rm(join(directory, uid), { recursive: true, force: true });
        // It ended, and the sync is there: it came between.
        const again = syncs[kind].get(key);
        if (again && isReady && !signal.aborted && !isAside() && again.metadata.uid !== uid) begin(kind, again);
      });
    };
    const beginAll = (): void => {
      if (!isReady) return;
      if (isAside()) {
        for (const task of tasks.values()) task.stop();
        return;
      }
      for (const kind of ['RootSync', 'RepoSync'] as const)
        for (const object of syncs[kind].list()) begin(kind, object);
    };
    const unsubscribe = [
      ...(['RootSync', 'RepoSync'] as const).map((kind) =>
        syncs[kind].onChange(({ type, object }) => {
          if (!isReady || isAside()) return;
          if (type !== 'deleted') begin(kind, object);
          else {
            tasks.get(`${kind}/${object.metadata.uid}`)?.changed(undefined);
            for (const task of tasks.values()) task.retryConflicts();
          }
        }),
      ),
      namespaces.onChange(({ object, previous }) => {
        for (const task of tasks.values()) task.namespacesChanged();
        if (object.metadata.deletionTimestamp === undefined || previous?.metadata.deletionTimestamp !== undefined)
          return;
        for (const task of tasks.values()) if (task.namespace === object.metadata.name) task.interrupt();
      }),
      guards.onChange(() => {
        for (const task of tasks.values()) task.guardChanged();
      }),
      managers.onChange(() => {
        if (isAside()) log.warn('upstream’s reconciler-manager is installed: its syncs are left to it');
        beginAll();
      }),
    ];
    try {
      await Promise.all(
        [...Object.values(syncs), namespaces, managers, guards].map((informer) => informer.synced(signal)),
      );
      await removeMirrors(
        directory,
        new Set([...syncs.RootSync.list(), ...syncs.RepoSync.list()].map(({ metadata }) => metadata.uid ?? '')),
      );
      isReady = true;
      beginAll();
      await (webhook ? webhook.start(signal) : aborted(signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      for (const end of unsubscribe) end();
      quiet.stop();
      await Promise.all([...tasks.values()].map(({ ended }) => ended));
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
    }
  };
  return { name: 'gitops', start };
}

/** Those of syncs that went while nobody looked. */
async function removeMirrors(directory: string, uids: ReadonlySet<string>): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names) if (!uids.has(name)) await rm(join(directory, name), { recursive: true, force: true });
}
