/**
 * What a migration does to other objects: its target Pod, and the migration state of its instance. Each is one call that
 * may be repeated. Who decides what became of a guest is never this controller: a write of the instance's status holds
 * only if nobody wrote in between, and a target Pod goes only when the instance has not gone to it.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { NAMESPACES, NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Namespace, Node, Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { isApiError, isConflict, orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { KUBEVIRTS, MIGRATION_POLICIES, VIRTUAL_MACHINE_INSTANCES } from '../../kinds/kinds.ts';
import type { ReadonlyMigration, ReadonlyVmi, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { STATE_VOLUME } from '../../rules/backend-storage/backend-storage.ts';
import { MIGRATION_TARGET_NODE_LABEL, vmiIdLabel } from '../../rules/launcher/launcher-labels.ts';
import type { LauncherPodOptions } from '../../rules/launcher/launcher-pod.ts';
import { overheadText } from '../../rules/launcher/launcher-resources.ts';
import { hostModelLabels, targetPod } from '../../rules/launcher/target-pod.ts';
import { applyPolicy, matchPolicy } from '../../rules/migration-policy/match-policy.ts';
import { type MigrationSettings, migrationSettings } from '../../rules/migration-policy/migration-settings.ts';
import { stateOf } from './migration-view.ts';

type MigrationState = NonNullable<NonNullable<VirtualMachineInstance['status']>['migrationState']>;

interface TargetInput {
  readonly migration: ReadonlyMigration;
  readonly vmi: ReadonlyVmi;
  readonly source: ReadonlyPod;
  readonly stateClaim: string | undefined;
}

interface HandOffInput extends Pick<TargetInput, 'migration' | 'vmi'> {
  readonly source: ReadonlyPod | undefined;
  readonly target: ReadonlyPod;
}

interface MigrationActionsOptions extends ControllerEnvironment {
  readonly events: EventRecorder;
  readonly launcher: () => Omit<LauncherPodOptions, 'idLabel'>;
}

/** Informers asked for here are started by the set's owner. */
export class MigrationActions extends ControllerSteps<MigrationActionsOptions> {
  readonly #events = this.options.events;
  readonly #kubevirts = this.options.informers.of(KUBEVIRTS);
  readonly #policies = this.options.informers.of(MIGRATION_POLICIES);
  readonly #namespaces = this.options.informers.of<Namespace>(NAMESPACES);
  readonly #nodes = this.options.informers.of<Node>(NODES);

  settings(): MigrationSettings {
    return migrationSettings(this.#kubevirts.list()[0]);
  }

  /** Saves the instance's migration state; 409 when anybody wrote in between. */
  #saveState(vmi: ReadonlyVmi, migrationState: MigrationState): Promise<VirtualMachineInstance | undefined> {
    const before = vmi as VirtualMachineInstance;
    const after = { ...before, status: { ...before.status, migrationState } };
    return commit(this.client, VIRTUAL_MACHINE_INSTANCES, { before, after, subresource: 'status' });
  }

  #optionsFor(vmi: ReadonlyVmi): Pick<MigrationState, 'migrationConfiguration' | 'migrationPolicyName'> {
    const { options } = this.settings();
    const namespace = this.#namespaces.get({ namespace: '', name: vmi.metadata.namespace ?? '' });
    const policy = matchPolicy(this.#policies.list(), {
      instanceLabels: vmi.metadata.labels ?? {},
      namespaceLabels: namespace?.metadata.labels ?? {},
    });
    const applied = policy ? applyPolicy(options, policy) : undefined;
    return applied?.changed
      ? { migrationConfiguration: applied.options, migrationPolicyName: policy?.metadata.name ?? '' }
      : { migrationConfiguration: options };
  }

  /** Creates the target Pod. Throws ApiError when it is refused. */
  async createTarget({ migration, vmi, source, stateClaim }: TargetInput): Promise<Pod> {
    const node = this.#nodes.get({ namespace: '', name: vmi.status?.nodeName ?? '' });
    const pod = targetPod({
      vmi,
      migration,
      source,
      options: { ...this.options.launcher(), idLabel: await vmiIdLabel(vmi.metadata.name ?? ''), stateClaim },
      sourceNodeLabels: node?.metadata.labels ?? {},
    });
    try {
      const created = await this.client.create(PODS, pod);
      const message = `Created migration target pod ${created.metadata.name}`;
      this.#events.event(migration, 'Normal', 'SuccessfulCreate', message);
      return created;
    } catch (error) {
      this.#events.event(vmi, 'Warning', 'FailedCreate', creationFailure(vmi, error as Error));
      throw error;
    }
  }

  /** Deletes the target Pod of a migration that came to nothing. */
  async deleteTarget(migration: ReadonlyMigration, target: ReadonlyPod, why: string): Promise<void> {
    if (isDeleting(target)) return;
    try {
      await this.client.delete(PODS, keyOf(target), { preconditions: { uid: target.metadata.uid ?? '' } });
      this.#events.event(migration, 'Normal', 'SuccessfulDelete', why);
    } catch (error) {
      if (isApiError(error, 404, 409)) return;
      const message = `Error deleting migration target pod: ${(error as Error).message}`;
      this.#events.event(migration, 'Warning', 'FailedDelete', message);
      throw error;
    }
  }

  /** Tells the agents: the migration state, then the label by which the target's agent finds the instance. */
  async handOff({ migration, vmi, source, target }: HandOffInput): Promise<void> {
    const uid = migration.metadata.uid ?? '';
    const targetNode = target.spec.nodeName ?? '';
    let current: ReadonlyVmi = vmi;
    if (!stateOf(vmi, migration)) {
      const sourceNode = vmi.status?.nodeName ?? '';
      const sourcePod = source?.metadata.name ?? '';
      const targetPod = target.metadata.name ?? '';
      const common = {
        migrationUID: uid,
        virtualMachineInstanceUID: vmi.metadata.uid ?? '',
        domainName: vmi.metadata.name ?? '',
        domainNamespace: vmi.metadata.namespace ?? '',
      };
      try {
        const saved = await this.#saveState(vmi, {
          migrationUid: uid,
          sourceNode,
          sourcePod,
          targetNode,
          targetPod,
          targetMemoryOverhead: overheadText(vmi.spec, this.options.launcher()),
          ...stateClaimNames(source, target),
          ...this.#optionsFor(vmi),
          sourceState: { ...common, node: sourceNode, pod: sourcePod },
          targetState: { ...common, node: targetNode, pod: targetPod },
        });
        current = saved ?? vmi;
      } catch (error) {
        // A lost race is tried again with the newer instance.
        const message = `Failed to set MigrationStat in VMI status. :${(error as Error).message}`;
        if (!isConflict(error)) this.#events.event(migration, 'Warning', 'FailedHandOver', message);
        throw error;
      }
    }
    if (current.metadata.labels?.[MIGRATION_TARGET_NODE_LABEL] === targetNode) return;
    const before = current as VirtualMachineInstance;
    const labels = { ...before.metadata.labels, [MIGRATION_TARGET_NODE_LABEL]: targetNode };
    await commit(this.client, VIRTUAL_MACHINE_INSTANCES, {
      before,
      after: { ...before, metadata: { ...before.metadata, labels } },
    });
    const message = 'Migration target pod is ready for preparation by virt-handler.';
    this.#events.event(migration, 'Normal', 'SuccessfulHandOver', message);
  }

  /** Asks the source's agent to stop a migration under way. */
  async requestAbort(migration: ReadonlyMigration, vmi: ReadonlyVmi): Promise<void> {
    const state = stateOf(vmi, migration);
    if (!state || state.abortRequested === true || state.completed === true) return;
    try {
      await this.#saveState(vmi, { ...(cloneJson(state) as MigrationState), abortRequested: true });
    } catch (error) {
      const message = `failed to set MigrationState in VMI status. :${(error as Error).message}`;
      if (!isConflict(error)) this.#events.event(migration, 'Warning', 'FailedAbortMigration', message);
      throw error;
    }
    const message = 'Migration is ready to be canceled by virt-handler.';
    this.#events.event(migration, 'Normal', 'SuccessfulAbortMigration', message);
  }

  /** Writes down that a migration ended before the source had begun it. */
  async endUnstarted(
    migration: ReadonlyMigration,
    vmi: ReadonlyVmi,
    { reason, aborted }: { readonly reason: string; readonly aborted: boolean },
  ): Promise<void> {
    const state = stateOf(vmi, migration);
    if (!state || state.startTimestamp != null || state.completed === true || state.failed === true) return;
    const now = formatTime(this.clock.now());
    await this.#saveState(vmi, {
      ...(cloneJson(state) as MigrationState),
      startTimestamp: now,
      endTimestamp: now,
      failed: true,
      completed: true,
      failureReason: reason,
      ...(aborted && { abortRequested: true, abortStatus: 'Succeeded' }),
    });
    const message = `VirtualMachineInstance migration uid ${migration.metadata.uid} failed. reason: ${reason}`;
    this.#events.event(vmi, 'Warning', 'FailedMigration', message);
  }

  /** What the target Pod of a guest with the host's CPU model asks of a node, when no other node has it. */
  missingHostModel(vmi: ReadonlyVmi, target: ReadonlyPod): string | undefined {
    if (vmi.spec.domain?.cpu?.model !== 'host-model') return undefined;
    const wanted = hostModelLabels(target);
    const others = this.#nodes.list().filter(({ metadata }) => metadata.name !== vmi.status?.nodeName);
    const fits = others.some(({ metadata }) => wanted.every(([key, value]) => metadata.labels?.[key] === value));
    return fits ? undefined : `map[${wanted.map(([key, value]) => `${key}:${value}`).join(' ')}]`;
  }

  /** The instance as it is now, undefined when it is gone. */
  readVmi(namespace: string, name: string): Promise<VirtualMachineInstance | undefined> {
    return orAbsent(this.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name }));
  }
}

/** The claims with the firmware state at both ends, as the Pods have them; none where the guest has no such state. */
function stateClaimNames(
  source: ReadonlyPod | undefined,
  target: ReadonlyPod,
): Pick<MigrationState, 'sourcePersistentStatePVCName' | 'targetPersistentStatePVCName'> {
  const claimOf = (pod: ReadonlyPod | undefined): string | undefined =>
    pod?.spec.volumes?.find(({ name }) => name === STATE_VOLUME)?.persistentVolumeClaim?.claimName;
  const [from, to] = [claimOf(source), claimOf(target)];
  return from && to ? { sourcePersistentStatePVCName: from, targetPersistentStatePVCName: to } : {};
}

/** A namespace that enforces Pod security has a message of its own: there the user can do something about it. */
const creationFailure = ({ metadata }: ReadonlyVmi, error: Error): string =>
  isApiError(error, 403) && error.message.includes('violates PodSecurity')
    ? `failed to render launch manifest: failed to create target pod for vmi ${metadata.namespace}/${metadata.name}, it needs a privileged namespace to run: ${error.message}`
    : `Error creating pod: ${error.message}`;
