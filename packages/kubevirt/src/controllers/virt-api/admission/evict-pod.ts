/**
 * The webhook on `pods/eviction`: a launcher that is to be moved is not deleted but marked, and the eviction is refused
 * with 429 until it has gone. Upstream's virt-launcher-eviction-interceptor and hotplug-pod-eviction-interceptor.
 */

import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import type { Client, JsonPatchOperation } from '@coracle/client/client';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { evictedPodOf, evictionDecision, evictionStrategyOf } from '../../../rules/eviction/eviction-decision.ts';
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
  const vmi = await instanceOf(client, key);
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
      await mark(subject, key, { vmi, nodeName: decision.nodeName });
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
  const owner = await client.get(PODS, { namespace, name: launcher }).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw refuse(`failed getting owner for hotplug pod: ${messageOf(error)}`);
  });
  const evicted = owner ? evictedPodOf(owner) : undefined;
  if (evicted?.type !== 'launcher') return [];
  try {
    await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: evicted.instance });
  } catch (error) {
    if (isMissing(error)) return [];
    throw refuse(`kubevirt failed getting the vmi: ${messageOf(error)}`);
  }
  throw refuse(
    `cannot evict hotplug pod: ${pod.metadata.name} associated with running vmi: ${evicted.instance} in namespace ${namespace}`,
  );
}

async function instanceOf(client: Client, key: ObjectKey): Promise<VirtualMachineInstance> {
  try {
    return await client.get(VIRTUAL_MACHINE_INSTANCES, key);
  } catch (error) {
    throw refuse(`kubevirt failed getting the vmi: ${messageOf(error)}`);
  }
}

/** Writes the mark; in a dry run everything but that. */
async function mark(
  { client, object, dryRun }: Subject<Eviction>,
  key: ObjectKey,
  { vmi, nodeName }: { readonly vmi: VirtualMachineInstance; readonly nodeName: string },
): Promise<void> {
  const options = { dryRun: dryRun || object.deleteOptions?.dryRun?.[0] === 'All' };
  try {
    if (object.metadata.annotations?.[REQUESTED_BY] === DESCHEDULER) {
      // First, so that whoever sees the mark knows where it comes from.
      const { annotations } = vmi.metadata;
      const body: JsonPatchOperation[] = [
        annotations === undefined
          ? { op: 'add', path: '/metadata/annotations', value: { [EVICTION_SOURCE]: 'descheduler' } }
          : { op: 'add', path: `/metadata/annotations/${EVICTION_SOURCE.replace('/', '~1')}`, value: 'descheduler' },
      ];
      await client.patch(VIRTUAL_MACHINE_INSTANCES, key, { type: 'json', body }, options);
    }
    await client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      key,
      { type: 'json', body: [{ op: 'add', path: '/status/evacuationNodeName', value: nodeName }] },
      { ...options, subresource: 'status' },
    );
  } catch (error) {
    throw refuse(`kubevirt failed marking the vmi for eviction: ${messageOf(error)}`);
  }
}

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
