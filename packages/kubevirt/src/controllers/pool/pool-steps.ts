import { controllerOf, controllerReference, isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { type DeepReadonly, type KubeObject, keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import { isConflict, isNamespaceTerminating, isNotFound, orAbsent, orThere } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import { hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { createInformer } from '@coracle/client/informer/informer';
import { DATA_VOLUMES } from '../../kinds/kinds.ts';
import {
  type PoolSpec,
  type ReadonlyPool,
  type ReadonlyVm,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import { KEPT_FOR } from '../../rules/data-volume/claim-of-data-volume.ts';
import { unservedTexts } from '../../rules/machine/unserved-fields.ts';
import {
  freeIndices,
  keepsState,
  newMember,
  POOL_FINALIZER,
  POOL_REVISION_LABEL,
  poolRevisionName,
  updatedMember,
} from '../../rules/sets/pool-member.ts';
import type { PoolPlan } from '../../rules/sets/pool-plan.ts';
import type { SetProblem } from '../../rules/sets/set-conditions.ts';

/** Marks the revisions of pools, so that those of machines need not be watched. */
const POOL_LABEL = 'coracle.dev/pool';
/** Index of machines: by the UID of their controller. */
const MEMBERS = 'members of pools';

export interface PoolFailure {
  readonly shown: SetProblem;
  readonly error: unknown;
}

/** The steps of a pool: what its plan says is made, changed and deleted; what is to be kept is taken off first. */
export class PoolSteps {
  readonly expectations;
  readonly revisions;
  readonly #client;
  readonly #vms;
  readonly #vmis;
  readonly #events;

  constructor({ client, informers, clock, log }: ControllerEnvironment) {
    this.#client = client;
    this.#vms = informers.of(VIRTUAL_MACHINES);
    this.#vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
    this.#vms.addIndex(MEMBERS, (vm) => [controllerOf(vm)?.uid ?? ''].filter((uid) => uid !== ''));
    this.revisions = createInformer(client, CONTROLLER_REVISIONS, { clock, log, labelSelector: POOL_LABEL });
    this.#events = createEventRecorder(client, { component: 'virtualmachinepool-controller', clock, log });
    this.expectations = createExpectations(clock);
  }

  membersOf({ metadata }: ReadonlyPool): readonly ReadonlyVm[] {
    return this.#vms.byIndex(MEMBERS, metadata.uid ?? '');
  }

  templateOf(key: ObjectKey): DeepReadonly<PoolSpec['virtualMachineTemplate']> | undefined {
    const data = this.revisions.get(key)?.data as DeepReadonly<Partial<PoolSpec>> | undefined;
    return data?.virtualMachineTemplate;
  }

  /** Does what the plan says; undefined when all of it succeeded. */
  async carryOut(pool: ReadonlyPool, plan: PoolPlan): Promise<PoolFailure | undefined> {
    const steps: readonly (readonly [reason: string, step: () => Promise<void>])[] = [
      ['FailedScaleOut', () => this.#create(pool, plan.create)],
      ['FailedScaleIn', () => this.#remove(pool, plan.remove)],
      ['FailedUpdate', () => this.#update(pool, plan)],
    ];
    for (const [reason, step] of steps) {
      try {
        await step();
      } catch (error) {
        if (isNamespaceTerminating(error)) return undefined;
        // A lost race is nobody's business.
        if (isConflict(error)) throw error;
        return { shown: { reason, message: error instanceof Error ? error.message : String(error) }, error };
      }
    }
    return undefined;
  }

  /** Takes off machines that go what is to be kept of them, and lets them go. */
  async letGo({ namespace, name }: ObjectKey, pool: ReadonlyPool | undefined): Promise<void> {
    const held = this.#vms
      .list(namespace)
      .filter((vm) => isDeleting(vm) && hasFinalizer(vm, POOL_FINALIZER) && controllerOf(vm)?.name === name);
    for (const vm of held) {
      // With the pool its machines go, and all that is theirs.
      if (pool && !isDeleting(pool) && keepsState(pool)) await this.#keepDisks(vm);
      const before = vm as VirtualMachine;
      await commit(this.#client, VIRTUAL_MACHINES, { before, after: removeFinalizer(before, POOL_FINALIZER) });
    }
  }

  tellPaused(pool: ReadonlyPool): void {
    const wasPaused = pool.status?.conditions?.some(({ type }) => type === 'ReplicaPaused') ?? false;
    if (pool.spec.paused && !wasPaused) this.#events.event(pool, 'Normal', 'SuccessfulPaused', 'Pool is paused');
    if (!pool.spec.paused && wasPaused) this.#events.event(pool, 'Normal', 'SuccessfulResume', 'Pool is unpaused');
  }

  /** Revisions that no machine and no instance names go. */
  async pruneRevisions(pool: ReadonlyPool, machines: readonly ReadonlyVm[]): Promise<void> {
    const used = new Set<string | undefined>([poolRevisionName(pool)]);
    for (const vm of machines) {
      used.add(vm.metadata.labels?.[POOL_REVISION_LABEL]);
      used.add(this.#vmis.get(keyOf(vm))?.metadata.labels?.[POOL_REVISION_LABEL]);
    }
    for (const revision of this.revisions.list(pool.metadata.namespace)) {
      if (controllerOf(revision)?.uid !== pool.metadata.uid || used.has(revision.metadata.name)) continue;
      await orAbsent(this.#client.delete(CONTROLLER_REVISIONS, keyOf(revision)));
    }
  }

  async #create(pool: ReadonlyPool, count: number): Promise<void> {
    if (count === 0) return;
    await this.#ensureRevision(pool);
    const { namespace = '' } = pool.metadata;
    const text = keyText(keyOf(pool));
    const isTaken = (name: string): boolean => this.#vms.get({ namespace, name }) !== undefined;
    for (const index of freeIndices(pool, count, isTaken)) {
      this.expectations.expectCreations(text, 1);
      try {
        const { metadata } = await this.#client.create(VIRTUAL_MACHINES, newMember(pool, index));
        this.#events.event(pool, 'Normal', 'SuccessfulCreate', `Created VM ${namespace}/${metadata.name}`);
      } catch (error) {
        this.expectations.creationFailed(text);
        if (!isNamespaceTerminating(error))
          this.#events.event(pool, 'Warning', 'FailedCreate', `Error creating VM: ${(error as Error).message}`);
        throw error;
      }
    }
  }

  async #remove(pool: ReadonlyPool, machines: readonly ReadonlyVm[]): Promise<void> {
    for (const vm of machines) {
      const { namespace, name, uid } = vm.metadata;
      try {
        await this.#expectGone(pool, VIRTUAL_MACHINES, vm);
        this.#events.event(
          pool,
          'Normal',
          'SuccessfulDelete',
          `Deleted VM ${namespace}/${name} with uid ${uid} from pool`,
        );
      } catch (error) {
        const message = `Error deleting virtual machine ${namespace}/${name}: ${(error as Error).message}`;
        this.#events.event(pool, 'Warning', 'FailedDelete', message);
        throw error;
      }
    }
  }

  async #update(pool: ReadonlyPool, { update, restart, relabel }: PoolPlan): Promise<void> {
    if (update.length > 0) await this.#ensureRevision(pool);
    for (const vm of update) {
      const { namespace, name } = vm.metadata;
      try {
        await commit(this.#client, VIRTUAL_MACHINES, { before: vm, after: updatedMember(pool, vm) });
        this.#events.event(pool, 'Normal', 'SuccessfulUpdate', `Updated VM ${namespace}/${name}`);
      } catch (error) {
        if (isNotFound(error)) continue;
        if (!isConflict(error))
          this.#events.event(
            pool,
            'Warning',
            'FailedUpdate',
            `Error updating virtual machine ${namespace}/${name}: ${(error as Error).message}`,
          );
        throw error;
      }
    }
    for (const vmi of restart) await this.#expectGone(pool, VIRTUAL_MACHINE_INSTANCES, vmi);
    for (const { vmi, revision } of relabel) {
      const body = { metadata: { uid: vmi.metadata.uid, labels: { [POOL_REVISION_LABEL]: revision } } };
      await orAbsent(
        this.#client.patch(VIRTUAL_MACHINE_INSTANCES, keyOf(vmi as VirtualMachineInstance), { type: 'merge', body }),
      );
    }
  }

  /** Deletes a machine or an instance; no other pass begins before the cache shows it. */
  async #expectGone<T extends KubeObject>(
    pool: ReadonlyPool,
    type: ResourceType<T>,
    object: DeepReadonly<T>,
  ): Promise<void> {
    const text = keyText(keyOf(pool));
    const { uid = '', namespace = '', name = '' } = object.metadata;
    this.expectations.expectDeletions(text, [uid]);
    try {
      await this.#client.delete(type, { namespace, name }, { preconditions: { uid } });
    } catch (error) {
      this.expectations.deletionFailed(text, uid);
      // Gone, or another one of that name.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  /** Keeps the template, and tells once what its guests will not get of what they ask for. */
  async #ensureRevision(pool: ReadonlyPool): Promise<void> {
    const name = poolRevisionName(pool);
    if (this.revisions.get({ namespace: pool.metadata.namespace ?? '', name })) return;
    const made = await orThere(
      this.#client.create(CONTROLLER_REVISIONS, {
        apiVersion: 'apps/v1',
        kind: 'ControllerRevision',
        metadata: {
          name,
          namespace: pool.metadata.namespace ?? '',
          labels: { [POOL_LABEL]: '' },
          ownerReferences: [controllerReference(pool)],
        },
        data: pool.spec as unknown as Record<string, unknown>,
        revision: pool.metadata.generation ?? 0,
      }),
    );
    if (!made) return;
    for (const text of unservedTexts(pool.spec.virtualMachineTemplate.spec?.template?.spec))
      this.#events.event(pool, 'Warning', 'NotSupported', text);
  }

  /** The disks of a machine's templates belong to nobody from here on, until a machine of that name takes them. */
  async #keepDisks(vm: ReadonlyVm): Promise<void> {
    const { namespace = '', name: owner = '', uid } = vm.metadata;
    for (const { metadata } of vm.spec.dataVolumeTemplates ?? []) {
      const key = { namespace, name: metadata?.name ?? '' };
      for (const type of [DATA_VOLUMES, PERSISTENT_VOLUME_CLAIMS] as readonly ResourceType<KubeObject>[]) {
        const before = await orAbsent(this.#client.get(type, key));
        if (!before || !isOwnedBy(before, uid)) continue;
        const ownerReferences = before.metadata.ownerReferences?.filter((one) => one.uid !== uid) ?? [];
        const annotations = { ...before.metadata.annotations, [KEPT_FOR]: owner };
        const after = { ...before, metadata: { ...before.metadata, ownerReferences, annotations } };
        await commit(this.#client, type, { before, after });
      }
    }
  }
}
