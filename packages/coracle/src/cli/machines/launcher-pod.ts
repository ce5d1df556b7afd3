/** The Pod that a machine runs in. */

import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { FoundMachine } from './find-machine.ts';

const CREATED_BY = 'kubevirt.io/created-by';

/** That of its instance on the node where it runs; undefined when there is none. */
export async function launcherPod(
  client: Client,
  { key, vmi }: FoundMachine,
  signal: AbortSignal,
): Promise<ReadonlyPod | undefined> {
  if (vmi?.metadata.uid === undefined) return undefined;
  const { items } = await client.list<Pod>(PODS, {
    namespace: key.namespace,
    labelSelector: `${CREATED_BY}=${vmi.metadata.uid}`,
    signal,
  });
  const { nodeName } = vmi.status ?? {};
  return items.find(({ spec }) => nodeName !== undefined && spec.nodeName === nodeName) ?? items[0];
}
