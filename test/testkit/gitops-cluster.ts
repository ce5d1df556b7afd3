/** A control plane in memory with the GitOps component and what it needs beside it, and ways to look at its syncs. */

import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import {
  CONFIG_SYNC_NAMESPACE,
  type ObjectRef,
  REPO_SYNCS,
  RESOURCE_GROUPS,
  ROOT_SYNCS,
  type Sync,
  type SyncConditionType,
} from '../../packages/gitops/src/kinds/kinds.ts';
import type { GitOpsMetrics } from '../../packages/gitops/src/status/sync-metrics.ts';
import type { AttemptStep } from '../../packages/gitops/src/sync/attempt.ts';
import type { EndStep } from '../../packages/gitops/src/sync/end-sync.ts';
import { createGitOpsController } from '../../packages/gitops/src/sync/gitops-controller.ts';
import { eventually } from './eventually.ts';
import { type FakeCluster, startFakeCluster } from './fake-cluster.ts';

export interface GitOpsCluster {
  readonly cluster: FakeCluster;
  readonly client: Client;
  /** Makes a RootSync that polls quickly. */
  rootSync(
    name: string,
    repo: string,
    more?: { readonly git?: object; readonly spec?: object; readonly annotations?: Record<string, string> },
  ): Promise<Sync>;
  repoSync(
    namespace: string,
    name: string,
    repo: string,
    more?: { readonly git?: object; readonly spec?: object; readonly annotations?: Record<string, string> },
  ): Promise<Sync>;
  sync(at: SyncName): Promise<Sync | undefined>;
  /** Waits until a commit is synced without an error. */
  synced(at: SyncName, commit: string): Promise<Sync>;
  /** Waits until its stages have errors of exactly these codes, in any order. */
  failing(at: SyncName, codes: readonly string[]): Promise<Sync>;
  until(at: SyncName, what: string, test: (sync: Sync) => boolean): Promise<Sync>;
  find<T extends KubeObject>(type: ResourceType<T>, name: string, namespace?: string): Promise<T | undefined>;
  gone<T extends KubeObject>(type: ResourceType<T>, name: string, namespace?: string): Promise<void>;
  inventory(at: SyncName): Promise<ObjectRef[] | undefined>;
  configMap(name: string, namespace?: string): Promise<ConfigMap | undefined>;
  stop(): Promise<void>;
}

export type ConfigMap = KubeObject & { readonly data?: Record<string, string> };
/** A RootSync by its name, a RepoSync by namespace and name. */
export type SyncName = string | readonly [namespace: string, name: string];

export const condition = (sync: Sync | undefined, type: SyncConditionType) =>
  sync?.status?.conditions?.find((one) => one.type === type);
export const codesOf = ({ status = {} }: Sync): string[] =>
  (['rendering', 'source', 'sync'] as const)
    .flatMap((stage) => (status[stage]?.errors ?? []).map(({ code }) => code))
    .sort();

const place = (at: SyncName) =>
  typeof at === 'string'
    ? { type: ROOT_SYNCS, key: { namespace: CONFIG_SYNC_NAMESPACE, name: at } }
    : { type: REPO_SYNCS, key: { namespace: at[0], name: at[1] } };

/** YAML of a ConfigMap. */
export const configMapYaml = (
  name: string,
  data: Readonly<Record<string, string>>,
  metadata: Readonly<Record<string, unknown>> = {},
): string => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data });

/** Starts it. `onStep` hears of the steps of every attempt. */
export async function startGitOpsCluster(
  options: {
    readonly components?: string;
    readonly onStep?: (step: AttemptStep | EndStep) => void;
    readonly directory?: string;
    readonly metrics?: GitOpsMetrics;
    /** Nodes that pretend to run guests; without them there are none. */
    readonly nodes?: readonly string[];
    readonly clusterName?: string;
    /** What the component speaks to the API through. */
    readonly wrapClient?: (client: Client) => Client;
  } = {},
): Promise<GitOpsCluster> {
  const cluster = await startFakeCluster({
    nodes: options.nodes ?? [],
    components: options.components ?? 'gitops,namespace-controller,garbage-collector-controller',
    facts: {
      createGitOps: (environment) =>
        createGitOpsController({
          ...environment,
          ...(options.wrapClient && { client: options.wrapClient(environment.client) }),
          ...(options.directory !== undefined && { directory: options.directory }),
          ...(options.clusterName !== undefined && { clusterName: options.clusterName }),
          ...(options.onStep && { onStep: options.onStep }),
          ...(options.metrics && { metrics: options.metrics }),
        }),
    },
  });
  const { client } = cluster;
  const find = async <T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    namespace = '',
  ): Promise<T | undefined> => {
    try {
      return await client.get(type, { namespace, name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  const sync = (at: SyncName): Promise<Sync | undefined> => {
    const { type, key } = place(at);
    return find(type, key.name, key.namespace);
  };
  const until: GitOpsCluster['until'] = (at, what, test) => {
    let last: Sync | undefined;
    return eventually(`${String(at)} ${what}`, async () => {
      last = await sync(at);
      return last && test(last) ? last : undefined;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`);
    });
  };
  const create = (
    kind: 'RootSync' | 'RepoSync',
    at: SyncName,
    repo: string,
    more: { git?: object; spec?: object; annotations?: Record<string, string> } = {},
  ): Promise<Sync> => {
    const { type, key } = place(at);
    return client.create(type, {
      apiVersion: 'configsync.gke.io/v1beta1',
      kind,
      metadata: { ...key, ...(more.annotations && { annotations: more.annotations }) },
      spec: {
        sourceFormat: 'unstructured',
        git: { repo, branch: 'main', auth: 'none', period: '100ms', ...more.git },
        ...more.spec,
      } as Sync['spec'] & object,
    });
  };
  return {
    cluster,
    client,
    find,
    sync,
    until,
    rootSync: (name, repo, more) => create('RootSync', name, repo, more),
    repoSync: (namespace, name, repo, more) => create('RepoSync', [namespace, name], repo, more),
    synced: (at, commit) =>
      until(
        at,
        `synced ${commit}`,
        ({ status }) => status?.lastSyncedCommit === commit && status.sync?.errorSummary?.totalCount === 0,
      ),
    failing: (at, codes) =>
      until(at, `failing ${codes.join()}`, (one) => JSON.stringify(codesOf(one)) === JSON.stringify([...codes].sort())),
    gone: async (type, name, namespace) => {
      await eventually(`${type.kind} ${name} gone`, async () =>
        (await find(type, name, namespace)) === undefined ? true : undefined,
      );
    },
    inventory: async (at) => {
      const { key } = place(at);
      const found = await find(RESOURCE_GROUPS, key.name, key.namespace);
      return found && (found.spec?.resources ?? []);
    },
    configMap: (name, namespace = 'default') => find(CONFIG_MAPS as ResourceType<ConfigMap>, name, namespace),
    stop: () => cluster.stop(),
  };
}

/** Makes a namespace. */
export async function createNamespace(client: Client, name: string): Promise<void> {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}
