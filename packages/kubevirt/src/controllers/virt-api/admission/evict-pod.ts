/**
 * The webhook on `pods/eviction`: a launcher that is to be moved is not deleted but marked, and the eviction is refused
 * with 429 until it has gone. Upstream's virt-launcher-eviction-interceptor and hotplug-pod-eviction-interceptor.
 */

import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { evictedPodOf, evictionDecision, evictionStrategyOf } from '../../../rules/eviction/eviction-decision.ts';
import { messageOf } from '../subresources/responses.ts';
import { WebhookRefusal } from './causes.ts';
import type { Subject } from './webhook.ts';

/** The part of policy/v1 Eviction that is read here. v1beta1 has the same. */
export interface Eviction extends KubeObject {
  readonly deleteOptions?: { readonly dryRun?: readonly string[] };
}

/** Set on the Eviction by the descheduler, and on the instance it wants moved. */
const REQUESTED_BY = 'requested-by';
const DESCHEDULER = 'sigs.k8s.io/descheduler';
const EVICTION_SOURCE = 'kubevirt.io/eviction-source';

const refuse = (message: string): WebhookRefusal => new WebhookRefusal(429, message);

/** For what could not be read or written. */
const refuseBecause =
  (what: string) =>
  (error: unknown): never => {
    throw refuse(`${what}: ${messageOf(error)}`);
  };

/** Resolves when the Pod may be deleted. Throws WebhookRefusal 429 when it may not, or not yet. */
export async function validateEviction(subject: Subject<Eviction>): Promise<readonly []> {
  const { client, namespace, object, context } = subject;
  const podName = object.metadata.name ?? '';
  // A Pod that cannot be read is no reason to keep anyone from draining: the eviction itself will say what is wrong.
  const pod = await client.get(PODS, { namespace, name: podName }).catch(() => undefined);
  if (!pod) return [];
  const evicted = evictedPodOf(pod);
  switch (evicted.type) {
    case 'other':
      return [];
    case 'hotplug':
      return decideHotplugPod(client, { pod, namespace, launcher: evicted.launcher });
    case 'launcher':
      break;
    default:
      return evicted satisfies never;
  }
  const key = { namespace, name: evicted.instance };
  const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key).catch(refuseBecause('kubevirt failed getting the vmi'));
  const decision = evictionDecision({
    vmi,
    strategy: evictionStrategyOf(vmi, context.config),
    nodeName: pod.spec.nodeName ?? '',
  });
  switch (decision.type) {
    case 'allow':
      return [];
    case 'refuse':
      throw refuse(decision.message);
    case 'mark':
      await mark(subject, key, { vmi, nodeName: decision.nodeName }).catch(
        refuseBecause('kubevirt failed marking the vmi for eviction'),
      );
      throw refuse(decision.message);
    default:
      return decision satisfies never;
  }
}

/** The volume of a guest that runs must not be taken away under it. */
async function decideHotplugPod(
  client: Client,
  { pod, namespace, launcher }: { pod: Pod; namespace: string; launcher: string },
): Promise<readonly []> {
  const owner = await orAbsent(client.get(PODS, { namespace, name: launcher })).catch(
    refuseBecause('failed getting owner for hotplug pod'),
  );
  const evicted = owner ? evictedPodOf(owner) : undefined;
  if (evicted?.type !== 'launcher') return [];
  const found = orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: evicted.instance }));
  if (!(await found.catch(refuseBecause('kubevirt failed getting the vmi')))) return [];
  throw refuse(
    `cannot evict hotplug pod: ${pod.metadata.name} associated with running vmi: ${evicted.instance} in namespace ${namespace}`,
  );
}

/** Writes the mark; in a dry run everything but that. */
async function mark(
  { client, object, dryRun }: Subject<Eviction>,
  key: ObjectKey,
  { vmi, nodeName }: { readonly vmi: VirtualMachineInstance; readonly nodeName: string },
): Promise<void> {
  const options = { dryRun: dryRun || object.deleteOptions?.dryRun?.[0] === 'All' };
  const add = async (path: string, value: unknown, subresource?: 'status'): Promise<void> => {
    const patch = { type: 'json', body: [{ op: 'add', path, value }] } as const;
    await client.patch(VIRTUAL_MACHINE_INSTANCES, key, patch, { ...options, ...(subresource && { subresource }) });
  };
  // First, so that whoever sees the mark knows where it comes from.
  if (object.metadata.annotations?.[REQUESTED_BY] === DESCHEDULER) {
    if (vmi.metadata.annotations === undefined)
      await add('/metadata/annotations', { [EVICTION_SOURCE]: 'descheduler' });
    else await add(`/metadata/annotations/${EVICTION_SOURCE.replace('/', '~1')}`, 'descheduler');
  }
  await add('/status/evacuationNodeName', nodeName, 'status');
}
