/**
 * Decisions about deletions as a webhook, for clusters whose API server is another one: the same rules as in the embedded
 * server. The copy of the machines that informers hold may be behind, so what it says is looked up before it counts: a
 * refusal by the machines that it names, "may go" by a list of the protected machines that could be against it.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import {
  type ReviewRequest,
  readReview,
  reviewAnswer,
  reviewProblem,
} from '@coracle/apimachinery/types/admission-review';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINES,
} from '../../../kinds/kubevirt.ts';
import { STATE_LABEL } from '../../../rules/backend-storage/backend-storage.ts';
import { decideDeletion, isGuardedKind, type Refusal } from '../../../rules/protection/decide-deletion.ts';
import { DELETE_PROTECTION_LABEL } from '../../../rules/protection/delete-protection.ts';
import type { DeletionTarget } from '../../../rules/protection/deletion-target.ts';
import {
  createProtectionIndex,
  type IndexedPrefix,
  type ProtectionIndex,
} from '../../../rules/protection/protection-index.ts';
import { deletionForbidden } from '../../../rules/protection/refusal-text.ts';

/** Where the webhook is asked. */
export const DELETION_WEBHOOK_PATH = '/deletion-validate';

/** What the webhook reads. */
export const deletionWebhookRules = policyRules(
  'get list watch : kubevirt.io : virtualmachines',
  'list watch : snapshot.kubevirt.io : virtualmachinerestores virtualmachinesnapshotcontents',
  'get list : core : persistentvolumeclaims',
);

const ON = `${DELETE_PROTECTION_LABEL} in (true,True)`;
const CONTENTS = 'snapshot.kubevirt.io/virtualmachinesnapshotcontents';
const RESTORES = 'snapshot.kubevirt.io/virtualmachinerestores';
const MACHINES = 'kubevirt.io/virtualmachines';
const CLAIMS = '/persistentvolumeclaims';

export interface DeletionWebhookOptions {
  readonly client: Client;
  readonly informers: InformerSet;
  /** Whether a user is one of KubeVirt's own components. */
  readonly isComponent: (username: string) => boolean;
}

/** The handler. Answers 404 elsewhere and 400 to what is no review; rejects when the API cannot be asked. */
export function createDeletionWebhook({ client, informers, isComponent }: DeletionWebhookOptions): ApiHandler {
  const claims = new Map<string, ReadonlyClaim>();
  const cached = createProtectionIndex((namespace, name) => claims.get(`${namespace}/${name}`));
  follow(informers, VIRTUAL_MACHINES, cached, MACHINES);
  follow(informers, VIRTUAL_MACHINE_RESTORES, cached, RESTORES);
  follow(informers, VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, cached, CONTENTS);

  const decide = async (target: DeletionTarget): Promise<Refusal | undefined> => {
    const around = await claimsAround(client, target);
    const by = async (machines: readonly ReadonlyObject[]): Promise<Refusal | undefined> => {
      const index = createProtectionIndex((namespace, name) =>
        around.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      );
      for (const vm of machines) put(index, MACHINES, vm);
      for (const claim of around) put(index, CLAIMS, claim);
      // Restores and contents are followed: whoever deletes what they need has seen them for longer than a watch takes.
      const lookup = { ...index.lookup, restores: cached.lookup.restores, content: cached.lookup.content };
      return decideDeletion(target, lookup);
    };
    const known = decideDeletion(target, cached.lookup);
    if (known && known.total === known.blockers.length) {
      const named = await Promise.all(known.blockers.map((blocker) => find(client, VIRTUAL_MACHINES, blocker)));
      const refused = await by(named.filter((vm) => vm !== undefined));
      if (refused) return refused;
    }
    return by(await protectedMachines(client, target));
  };

  return async (request) => {
    if (request.path !== DELETION_WEBHOOK_PATH) return reviewProblem(404, `no webhook is served at ${request.path}`);
    const review = readReview(request.body);
    if (!review) return reviewProblem(400, 'the body is not an AdmissionReview of admission.k8s.io/v1');
    const { uid, resource, oldObject, operation, subResource = '' } = review;
    const isAsked = operation === 'DELETE' && subResource === '' && oldObject && isGuardedKind(resource);
    const target = isAsked && targetOf(review, oldObject, isComponent);
    const refusal = target && (await decide(target));
    if (!target || !refusal) return reviewAnswer({ uid, allowed: true });
    return reviewAnswer({ uid, allowed: false, status: deletionForbidden(target, refusal).status });
  };
}

function targetOf(
  { resource: { group, resource }, userInfo }: ReviewRequest,
  object: ReadonlyObject,
  isComponent: (username: string) => boolean,
): DeletionTarget {
  const { namespace = '', name = '' } = object.metadata;
  return { group, resource, namespace, name, object, component: isComponent(userInfo?.username ?? '') };
}

/** The protected machines that may be against a deletion, as they are now. */
async function protectedMachines(client: Client, target: DeletionTarget): Promise<readonly ReadonlyObject[]> {
  const namespace =
    target.resource === 'namespaces'
      ? target.name
      : target.resource === 'persistentvolumes'
        ? (target.object as DeepReadonly<PersistentVolume>).spec?.claimRef?.namespace
        : target.resource === 'kubevirts'
          ? ''
          : target.namespace;
  const options = { labelSelector: ON, ...(namespace && { namespace }) };
  return (await client.list(VIRTUAL_MACHINES, options)).items;
}

/** The claims that a decision about the object looks at: that of a volume or a DataVolume, and those beside a state claim. */
async function claimsAround(client: Client, target: DeletionTarget): Promise<ReadonlyClaim[]> {
  const { resource, namespace, name, object } = target;
  const { claimRef } = (object as DeepReadonly<PersistentVolume>).spec ?? {};
  const one = async (key: { namespace: string; name: string }) => {
    const claim = await find(client, PERSISTENT_VOLUME_CLAIMS, key);
    return claim ? [claim] : [];
  };
  if (resource === 'persistentvolumes')
    return claimRef?.namespace && claimRef.name ? one({ namespace: claimRef.namespace, name: claimRef.name }) : [];
  const found = resource === 'datavolumes' ? await one({ namespace, name }) : [];
  const owner = (resource === 'persistentvolumeclaims' ? object : found[0])?.metadata.labels?.[STATE_LABEL];
  if (owner === undefined) return found;
  return (await client.list(PERSISTENT_VOLUME_CLAIMS, { namespace, labelSelector: `${STATE_LABEL}=${owner}` })).items;
}

async function find<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<T | undefined> {
  return orAbsent(client.get(type, { namespace, name }));
}

let states = 0;
const put = (index: ProtectionIndex, prefix: IndexedPrefix, object: ReadonlyObject): void => {
  const { namespace = '', name = '' } = object.metadata;
  // Versions of another server cannot be compared: later is what came later.
  index.parts[prefix].set({ namespace, name }, { revision: ++states, object: { metadata: object.metadata, object } });
};

function follow<T extends KubeObject>(
  informers: InformerSet,
  type: ResourceType<T>,
  index: ProtectionIndex,
  prefix: IndexedPrefix,
): void {
  informers.of(type).onChange(({ type: what, object }) => {
    const { namespace = '', name = '' } = object.metadata;
    if (what === 'deleted') index.parts[prefix].delete({ namespace, name });
    else put(index, prefix, object as ReadonlyObject);
  });
}
