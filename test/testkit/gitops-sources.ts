/** Repositories of scenarios with several sources, the rights that a RepoSync needs, and objects that become ready on request. */

import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { ROLE_BINDINGS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { CONFIG_SYNC_NAMESPACE } from '../../packages/gitops/src/kinds/kinds.ts';
import { createRepository, type GitRepository, serveRepository } from './git-repository.ts';

export interface Source {
  readonly repository: GitRepository;
  /** Of a file; by HTTP where that was asked for: RepoSyncs read no files of the host. */
  readonly url: string;
  /** The first one. */
  readonly commit: string;
}

export interface Sources {
  /** A repository with one commit. */
  of(files: Readonly<Record<string, string | null>>): Promise<Source>;
  /** The same, served by HTTP. */
  served(files: Readonly<Record<string, string | null>>): Promise<Source>;
  removeAll(): Promise<void>;
}

/** Makes none yet. */
export function createSources(): Sources {
  const cleanUp: (() => unknown)[] = [];
  const of: Sources['of'] = async (files) => {
    const repository = await createRepository();
    cleanUp.push(repository.remove);
    return { repository, url: repository.url, commit: await repository.commit(files) };
  };
  return {
    of,
    async served(files) {
      const source = await of(files);
      const server = await serveRepository(source.repository);
      cleanUp.push(() => server.stop());
      return { ...source, url: server.url };
    },
    async removeAll() {
      for (const act of cleanUp) await act();
    },
  };
}

/** What lets the account of a RepoSync write into its namespace. */
export const editBinding = (namespace: string, account: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: account, namespace },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole' as const, name: 'edit' },
  subjects: [{ kind: 'ServiceAccount' as const, name: account, namespace: CONFIG_SYNC_NAMESPACE }],
});
export const mayEdit = (client: Client, namespace: string, account: string) =>
  client.create(ROLE_BINDINGS, editBinding(namespace, account));

export const DEPLOYMENTS: ResourceType<KubeObject> = {
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};
/** A Deployment: no controller runs here, so that it is in progress until `setReady`. */
export const deploymentYaml = (name: string, metadata: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, ...metadata },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
/** Says what its controller would. `reason`: of condition Progressing. */
export const setReady = (client: Client, name: string, { available = true, reason = 'NewReplicaSetAvailable' } = {}) =>
  client.patch(
    DEPLOYMENTS,
    { namespace: 'default', name },
    {
      type: 'merge',
      body: {
        status: {
          replicas: 1,
          updatedReplicas: 1,
          readyReplicas: available ? 1 : 0,
          availableReplicas: available ? 1 : 0,
          conditions: [
            { type: 'Available', status: available ? 'True' : 'False' },
            { type: 'Progressing', status: 'True', reason },
          ],
        },
      },
    },
    { subresource: 'status' },
  );
