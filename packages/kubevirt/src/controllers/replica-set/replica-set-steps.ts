import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { type DeepReadonly, keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { isConflict, isNamespaceTerminating, isNotFound, orAbsent, orGone } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import {
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceReplicaSet,
} from '../../kinds/kubevirt.ts';
import { unservedTexts } from '../../rules/machine/unserved-fields.ts';
import { claimMembers, selectorOf } from '../../rules/sets/claim-members.ts';
import type { ReplicaSetPlan } from '../../rules/sets/replica-set-plan.ts';
import type { SetProblem } from '../../rules/sets/set-conditions.ts';

type ReadonlySet = DeepReadonly<VirtualMachineInstanceReplicaSet>;

/** Index of instances: by the UID of their controller, and those without one by namespace. */
export const MEMBERS = 'members of sets';
export const orphansOf = (namespace: string | undefined): string => `orphans of ${namespace}`;

/** What went wrong, as the set shows it, and the error for the retry. */
export interface ScaleFailure {
  readonly shown: SetProblem;
  readonly error: unknown;
}

/** The steps of a replica set: it takes what it selects, makes what is missing and deletes what is too much. */
export class ReplicaSetSteps {
  readonly expectations;
  readonly #client;
  readonly #vmis;
  readonly #events;

  constructor({ client, informers, clock, log }: ControllerEnvironment) {
    this.#client = client;
    this.#vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
    this.#events = createEventRecorder(client, { component: 'virtualmachinereplicaset-controller', clock, log });
    this.expectations = createExpectations(clock);
  }

  /** The instances of the set, once it has taken and let go what its selector says. */
  async claim(set: ReadonlySet): Promise<readonly ReadonlyVmi[]> {
    const { own, adopt, release } = claimMembers(set, selectorOf(set), [
      ...this.#vmis.byIndex(MEMBERS, set.metadata.uid ?? ''),
      ...this.#vmis.byIndex(MEMBERS, orphansOf(set.metadata.namespace)),
    ]);
    for (const vmi of release)
      await this.#reown(
        vmi,
        (vmi.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== set.metadata.uid),
      );
    if (adopt.length === 0 || !(await this.#isStillThere(set))) return own;
    for (const vmi of adopt)
      await this.#reown(vmi, [...(vmi.metadata.ownerReferences ?? []), controllerReference(set)]);
    return [...own, ...adopt];
  }

  /** Makes, and tells what the made ones will not get of what they ask for, and deletes; undefined when all of it succeeded. */
  async scale(set: ReadonlySet, { create, remove }: ReplicaSetPlan): Promise<ScaleFailure | undefined> {
    const text = keyText(keyOf(set));
    let failure: ScaleFailure | undefined;
    for (let i = 0; i < create; i++) {
      this.expectations.expectCreations(text, 1);
      try {
        await this.#make(set);
      } catch (error) {
        this.expectations.creationFailed(text);
        if (!isNamespaceTerminating(error)) failure = this.#failed(set, 'FailedCreate', 'creating', error);
        // The next ones would meet the same.
        break;
      }
      if (i === 0)
        for (const text of unservedTexts(set.spec.template.spec))
          this.#events.event(set, 'Warning', 'NotSupported', text);
    }
    this.expectations.expectDeletions(
      text,
      remove.map(({ metadata }) => metadata.uid ?? ''),
    );
    for (const vmi of remove) {
      try {
        await this.#delete(set, vmi);
      } catch (error) {
        this.expectations.deletionFailed(text, vmi.metadata.uid ?? '');
        failure ??= this.#failed(set, 'FailedDelete', 'deleting', error);
      }
    }
    return failure;
  }

  async #make(set: ReadonlySet): Promise<void> {
    const { metadata, spec } = set.spec.template;
    const made = await this.#client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: {
        generateName: metadata?.name || (set.metadata.name ?? ''),
        namespace: set.metadata.namespace ?? '',
        labels: { ...metadata?.labels },
        annotations: { ...metadata?.annotations },
        ownerReferences: [controllerReference(set)],
      },
      spec: cloneJson(spec ?? {}) as VirtualMachineInstance['spec'],
    });
    const message = `Started the virtual machine by creating the new virtual machine instance ${made.metadata.name}`;
    this.#events.event(set, 'Normal', 'SuccessfulCreate', message);
  }

  async #delete(set: ReadonlySet, vmi: ReadonlyVmi): Promise<void> {
    const { uid = '', name } = vmi.metadata;
    try {
      await this.#client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf(vmi), { preconditions: { uid } });
    } catch (error) {
      // Gone, or another one of that name.
      if (!isNotFound(error) && !isConflict(error)) throw error;
      this.expectations.deletionFailed(keyText(keyOf(set)), uid);
      return;
    }
    const message = `Stopped the virtual machine by deleting the virtual machine instance ${name}`;
    this.#events.event(set, 'Normal', 'SuccessfulDelete', message);
  }

  #failed(set: ReadonlySet, reason: 'FailedCreate' | 'FailedDelete', doing: string, error: unknown): ScaleFailure {
    const message = `Error ${doing} virtual machine instance: ${error instanceof Error ? error.message : String(error)}`;
    this.#events.event(set, 'Warning', reason, message);
    return { shown: { reason, message }, error };
  }

  /** What the cache shows may be over: a set that is going, or another one of the name, takes nothing. */
  async #isStillThere(set: ReadonlySet): Promise<boolean> {
    const stored = await orAbsent(this.#client.get(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, keyOf(set)));
    return stored?.metadata.uid === set.metadata.uid && stored?.metadata.deletionTimestamp === undefined;
  }

  async #reown(
    vmi: ReadonlyVmi,
    ownerReferences: DeepReadonly<VirtualMachineInstance['metadata']['ownerReferences']>,
  ): Promise<void> {
    const after = { ...vmi, metadata: { ...vmi.metadata, ownerReferences } } as VirtualMachineInstance;
    // Changed or gone meanwhile: its own event brings the next pass.
    await orGone(commit(this.#client, VIRTUAL_MACHINE_INSTANCES, { before: vmi, after }));
  }
}
