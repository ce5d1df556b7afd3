/** Whether the instance type and the preference of a machine are there, before it is made. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINE_INSTANCETYPES,
  VIRTUAL_MACHINE_PREFERENCES,
  type VirtualMachine,
} from '@coracle/kubevirt/kinds/kinds';
import { CommandError } from '../command.ts';
import { didYouMean } from '../suggestions.ts';

interface Where {
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/** Throws CommandError with what may have been meant. Who may not look learns of it from the machine. */
export async function needTypes(
  client: Client,
  { instancetype, preference }: DeepReadonly<VirtualMachine['spec']>,
  where: Where,
): Promise<void> {
  const kinds = [
    [instancetype, 'instance type', VIRTUAL_MACHINE_INSTANCETYPES, VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES],
    [preference, 'preference', VIRTUAL_MACHINE_PREFERENCES, VIRTUAL_MACHINE_CLUSTER_PREFERENCES],
  ] as const;
  for (const [asked, what, own, ofCluster] of kinds)
    if (asked?.name)
      await need(client, { what, name: asked.name, type: asked.kind === own.kind ? own : ofCluster }, where);
}

async function need(
  client: Client,
  { what, name, type }: { readonly what: string; readonly name: string; readonly type: ResourceType<KubeObject> },
  { namespace, signal }: Where,
): Promise<void> {
  const scope = type.namespaced ? namespace : '';
  try {
    await client.get(type, { namespace: scope, name }, { metadataOnly: true, signal });
    return;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return;
    if (!isNotFound(error)) throw error;
  }
  const { items } = await client
    .list(type, { ...(type.namespaced && { namespace }), metadataOnly: true, signal })
    .catch(() => ({ items: [] as KubeObject[] }));
  const meant = didYouMean(
    name,
    items.map(({ metadata }) => metadata.name ?? ''),
  );
  const short = type.resource.replace(/^virtualmachine/, 'vm').replace(/s$/, '');
  throw new CommandError(
    `there is no ${what} ${type.namespaced ? `${namespace}/` : ''}${name}${meant} (kubectl get ${short}${type.namespaced ? ` -n ${namespace}` : ''})`,
  );
}
