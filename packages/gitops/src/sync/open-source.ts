/** The source that a spec names, with the secrets and values of the namespace of its sync. */
import { CONFIG_MAPS, SECRETS } from '@coracle/apimachinery/types/resource-types';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createGitSource } from '../git/git-source.ts';
import { keepTree } from '../git/keep-tree.ts';
import { type SecretData, type Source, SourceError } from '../git/source.ts';
import { createHelmSource, type ValuesMap } from '../helm/helm-source.ts';
import { createOciSource } from '../oci/oci-source.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { SourceSpec } from './check-source.ts';

export interface OpenSourceOptions {
  readonly sync: SyncIdentity;
  readonly client: Client;
  /** Private to this sync. */
  readonly directory: string;
  readonly clock: Clock;
}

/** Opens it; nothing is asked yet. Throws SourceError for what cannot be meant. */
export function openSource(spec: SourceSpec, { sync, client, directory, clock }: OpenSourceOptions): Source {
  const secret = async (name: string, signal: AbortSignal): Promise<SecretData> => {
    try {
      const { data = {} } = await client.get(SECRETS, { namespace: sync.namespace, name }, { signal });
      const decoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]);
      return Object.fromEntries(decoded);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new SourceError(`there is no secret ${JSON.stringify(name)} in namespace ${sync.namespace}`);
    }
  };
  const configMap = async (name: string, signal: AbortSignal): Promise<ValuesMap> => {
    try {
      const found = await client.get(CONFIG_MAPS, { namespace: sync.namespace, name }, { signal });
      return { immutable: found.immutable === true, data: found.data ?? {} };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new SourceError(`there is no ConfigMap ${JSON.stringify(name)} in namespace ${sync.namespace}`);
    }
  };
  switch (spec.type) {
    case 'git':
      return createGitSource({
        spec: spec.git,
        ...(spec.depth !== undefined && { depth: spec.depth }),
        allowsFile: sync.kind === 'RootSync',
        directory,
        secret,
        clock,
      });
    case 'oci':
      return keepTree(createOciSource({ spec: spec.oci, secret, clock }));
    case 'helm': {
      const { namespace = '', deployNamespace = '' } = spec.helm;
      const ofRelease = sync.kind === 'RootSync' ? deployNamespace || namespace || 'default' : sync.namespace;
      return keepTree(
        createHelmSource({
          spec: spec.helm,
          namespace: ofRelease,
          ...(deployNamespace !== '' && { defaultNamespace: deployNamespace }),
          directory,
          secret,
          configMap,
        }),
      );
    }
  }
}
