/** Every RootSync and RepoSync of the cluster is seen to, by tasks of their own; aside while upstream's manager is installed. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import type { Runnable } from '@coracle/client/controller/environment';
import type { Informer } from '@coracle/client/informer/informer';
import type { Logger } from '@coracle/runtime/log/log';
import { aborted } from '@coracle/runtime/signal/abortable';
import { createKindCatalog } from '../apply/kind-catalog.ts';
import { GUARD_NAME, isGuardOn } from '../guard/decide-write.ts';
import { CONFIG_SYNC_NAMESPACE, REPO_SYNCS, ROOT_SYNCS } from '../kinds/kinds.ts';
import { createGitOpsMetrics, type GitOpsMetrics } from '../status/sync-metrics.ts';
import {
  createGuardConfigurator,
  GUARD_CONFIGURATIONS,
  type ServeGuard,
  type WebhookConfiguration,
} from './guard-configuration.ts';
import { SYNC_KINDS, type SyncInformers, SyncTasks, type SyncTasksEnvironment } from './sync-tasks.ts';

export interface GitOpsOptions extends SyncTasksEnvironment {
  /** For mirrors of repositories, private to this process; a temporary one when absent. */
  readonly directory?: string;
  /** What is counted; without it nobody looks. */
  readonly metrics?: GitOpsMetrics;
  /** Serves the webhook that guards declared fields where the API server reaches it; absent where that is done in process. */
  readonly serveWebhook?: ServeGuard;
}

const DEPLOYMENTS = namespacedType<KubeObject>('apps/v1', 'deployments', 'Deployment');
const UPSTREAM = 'reconciler-manager';

/** Makes the component. */
export function createGitOpsController(options: GitOpsOptions): Runnable {
  const { client, informers, log } = options;
  const seen: Seen = {
    syncs: { RootSync: informers.of(ROOT_SYNCS), RepoSync: informers.of(REPO_SYNCS) },
    namespaces: informers.of(NAMESPACES),
    managers: informers.of(DEPLOYMENTS, { fieldSelector: `metadata.name=${UPSTREAM}` }),
    guards: informers.of(GUARD_CONFIGURATIONS, { fieldSelector: `metadata.name=${GUARD_NAME}` }),
  };
  const { syncs, namespaces, managers, guards } = seen;
  const isAside = (): boolean => managers.list(CONFIG_SYNC_NAMESPACE).length > 0;
  const catalog = createKindCatalog(client, options.clock);
  const metrics = options.metrics ?? createGitOpsMetrics();

  const start = async (signal: AbortSignal): Promise<void> => {
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'coracle-gitops-')));
    const tasks = new SyncTasks({
      options,
      directory,
      syncs,
      namespaces,
      catalog,
      metrics,
      isAside,
      isGuarded: () => isGuardOn(guards.get({ namespace: '', name: GUARD_NAME })),
      onDeclared: () => webhook?.declaredChanged(),
      signal,
    });
    const webhook =
      options.serveWebhook &&
      createGuardConfigurator({
        ...options,
        serve: options.serveWebhook,
        isAside,
        versions: () => tasks.running().flatMap((task) => task.declaredVersions()),
      });
    const unsubscribe = notifyTasks(tasks, seen, { isAside, log });
    try {
      await Promise.all(
        [...Object.values(syncs), namespaces, managers, guards].map((informer) => informer.synced(signal)),
      );
      await removeMirrors(
        directory,
        new Set([...syncs.RootSync.list(), ...syncs.RepoSync.list()].map(({ metadata }) => metadata.uid ?? '')),
      );
      tasks.open();
      await (webhook ? webhook.start(signal) : aborted(signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      for (const end of unsubscribe) end();
      await tasks.ended();
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
    }
  };
  return { name: 'gitops', start };
}

/** What the component watches. */
interface Seen {
  readonly syncs: SyncInformers;
  readonly namespaces: Informer<KubeObject>;
  /** Upstream's own manager, while it is installed. */
  readonly managers: Informer<KubeObject>;
  readonly guards: Informer<WebhookConfiguration>;
}

/** Passes on to the tasks what they go by; returns what ends that. */
function notifyTasks(
  tasks: SyncTasks,
  { syncs, namespaces, managers, guards }: Seen,
  { isAside, log }: { readonly isAside: () => boolean; readonly log: Logger },
): (() => void)[] {
  return [
    ...SYNC_KINDS.map((kind) =>
      syncs[kind].onChange(({ type, object }) => {
        if (!tasks.isOpen || isAside()) return;
        if (type === 'deleted') tasks.gone(kind, object);
        else tasks.begin(kind, object);
      }),
    ),
    namespaces.onChange(({ object, previous }) => {
      for (const task of tasks.running()) task.namespacesChanged();
      if (!isDeleting(object) || previous?.metadata.deletionTimestamp !== undefined) return;
      for (const task of tasks.running()) if (task.namespace === object.metadata.name) task.interrupt();
    }),
    guards.onChange(() => {
      for (const task of tasks.running()) task.guardChanged();
    }),
    managers.onChange(() => {
      if (isAside()) log.warn('upstream’s reconciler-manager is installed: its syncs are left to it');
      tasks.beginAll();
    }),
  ];
}

/** Those of syncs that went while nobody looked. */
async function removeMirrors(directory: string, uids: ReadonlySet<string>): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names) if (!uids.has(name)) await rm(join(directory, name), { recursive: true, force: true });
}
