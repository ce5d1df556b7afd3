/** The source that a plan names, with the secrets of the namespace of its sync. */
import { SECRETS } from '../../api/kinds/builtin/resource-types.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { isNotFound } from '../../client/api-failure.ts';
import type { Client } from '../../client/client.ts';
import { createGitSource, type SecretData } from '../git/git-source.ts';
import { type Source, SourceError } from '../git/source.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { SyncPlan } from './check-spec.ts';

export interface OpenSourceOptions {
  readonly sync: SyncIdentity;
  readonly client: Client;
  /** Private to this sync. */
  readonly directory: string;
  readonly clock: Clock;
}

/** Opens it; nothing is asked yet. Throws SourceError for what cannot be meant. */
export function openSource(plan: SyncPlan, { sync, client, directory, clock }: OpenSourceOptions): Source {
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
  return createGitSource({
    spec: plan.git,
    ...(plan.depth !== undefined && { depth: plan.depth }),
    allowsFile: sync.kind === 'RootSync',
    directory,
    secret,
    clock,
  });
}
