/**
 * What protected machines stand on is not deleted: `kubevirt/rules/protection` decides, over an index that the writes of the
 * store keep, once in admission and again within the step that writes the deletion. So a deletion and a write that
 * protects a machine, or has it refer to something, are decided one after the other, whichever comes first.
 */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { refuseTerminatingNamespace } from '@coracle/apiserver/admission/namespace-lifecycle';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { UserInfo } from '@coracle/apiserver/auth/identity';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { ObjectMoved } from '@coracle/apiserver/registry/write-call';
import { decideDeletion, isGuardedKind, type Refusal } from '@coracle/kubevirt/rules/protection/decide-deletion';
import { guardsItsParts } from '@coracle/kubevirt/rules/protection/delete-protection';
import type { DeletionTarget } from '@coracle/kubevirt/rules/protection/deletion-target';
import {
  createProtectionIndex,
  INDEXED_PREFIXES,
  type IndexedKind,
} from '@coracle/kubevirt/rules/protection/protection-index';
import { deletionForbidden, refusalText } from '@coracle/kubevirt/rules/protection/refusal-text';
import type { StateIndex } from '@coracle/kubevirt/rules/protection/state-index';
import type { RefusalEvidence } from './refusal-evidence.ts';

const MACHINES = 'kubevirt.io/virtualmachines';
const CLAIMS = '/persistentvolumeclaims';
const NAME = 'DeletionProtection';
/** How often a decision waits for writes that it rests on. */
const MAX_WAITS = 5;

export interface DeletionProtection {
  readonly plugin: AdmissionPlugin;
  stop(): void;
}

type Store = Pick<ObjectStore, 'get' | 'peek' | 'list' | 'observe' | 'settled'>;

/** Begins to keep the index. */
export function createDeletionProtection({
  store,
  isComponent,
  evidence,
}: {
  readonly store: Store;
  readonly evidence: Pick<RefusalEvidence, 'refused'>;
  /** Whether a request comes from one of KubeVirt's own components: a restore of theirs may replace what it names. */
  readonly isComponent: (user: UserInfo) => boolean;
}): DeletionProtection {
  const index = createProtectionIndex((namespace, name) => {
    const key = { prefix: CLAIMS, namespace, name };
    // One whose deletion is on its way is still there: should that fail it stays.
    return (store.peek(key) ?? store.get(key))?.object as never;
  });
  const observers = INDEXED_PREFIXES.map((prefix) => feed(store, prefix, index.parts[prefix]));

  const decide = (target: DeletionTarget): Refusal | undefined => decideDeletion(target, index.lookup);
  const refuse = (attributes: AdmissionAttributes, target: DeletionTarget, refusal: Refusal): never => {
    const { reason, blockers } = refusal;
    evidence.refused(attributes, { policy: NAME, reason, message: refusalText(refusal), blockers });
    throw deletionForbidden(target, refusal);
  };
  /** A refusal by writes that are on their way is given when they are durable. */
  const wait = async (attributes: AdmissionAttributes, target: DeletionTarget, first: Refusal): Promise<void> => {
    let refusal: Refusal | undefined = first;
    for (let waits = 0; refusal?.pending && waits < MAX_WAITS; waits++) {
      await Promise.all(
        refusal.blockers.map(({ namespace, name }) => store.settled({ prefix: MACHINES, namespace, name })),
      );
      refusal = decide(target);
    }
    if (refusal) refuse(attributes, target, refusal);
  };

  const validateDeletion = (attributes: AdmissionAttributes): Promise<void> | void => {
    const target = targetOf(attributes, isComponent);
    if (!target) return;
    // Tried again from the start, it is refused with what there is to say.
    attributes.checks?.push(() => {
      if (decide(target)) throw new ObjectMoved();
    });
    const refusal = decide(target);
    if (refusal?.pending) return wait(attributes, target, refusal);
    if (refusal) refuse(attributes, target, refusal);
  };

  /** A machine that would be protected in a namespace that goes would keep it from going, and not be kept whole. */
  const validateMachine = ({ info, namespace, object, oldObject, checks }: AdmissionAttributes): void => {
    if (!object || !guardsItsParts(object) || (oldObject && guardsItsParts(oldObject))) return;
    const check = (): void => refuseTerminatingNamespace(store, { info, namespace, name: object.metadata.name ?? '' });
    check();
    checks?.push(check);
  };

  return {
    plugin: {
      name: NAME,
      matches: (operation, { group, resource }, subresource) =>
        operation === 'DELETE'
          ? subresource === '' && isGuardedKind({ group, resource })
          : resource === 'virtualmachines' && group === 'kubevirt.io' && operation !== 'CONNECT',
      validate: (attributes) =>
        attributes.operation === 'DELETE' ? validateDeletion(attributes) : validateMachine(attributes),
    },
    stop() {
      for (const observer of observers) observer.stop();
    },
  };
}

/** Whether a collection of these objects is deleted whole or not at all: KubeVirt's kinds, and those that machines stand on. */
export const deletesWhole = ({ group, resource }: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  group === 'kubevirt.io' || group.endsWith('.kubevirt.io') || isGuardedKind({ group, resource });

function feed(store: Store, prefix: string, part: StateIndex<IndexedKind>): { stop(): void } {
  const observer = store.observe(prefix, {
    decided({ type, revision, current }) {
      if (type !== 'DELETED') part.decided(current, { revision, object: current });
    },
    settled: ({ revision, current }, durable) => part.settled(current, revision, durable),
  });
  for (const item of store.list(prefix).items) part.set(item, { revision: item.revision, object: item });
  return observer;
}

function targetOf(
  { info: { group, resource }, namespace, oldObject, user }: AdmissionAttributes,
  isComponent: (user: UserInfo) => boolean,
): DeletionTarget | undefined {
  if (!oldObject) return undefined;
  const object = oldObject as ReadonlyObject;
  // Of the object: the request of a collection names none.
  const { name = '' } = object.metadata;
  return {
    group,
    resource,
    namespace: resource === 'namespaces' ? '' : namespace,
    name,
    object,
    component: isComponent(user),
  };
}
