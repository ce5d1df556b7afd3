/**
 * Empties nodes: makes migrations for the instances that an eviction marked, or that a drain taint covers, and takes
 * marks back when a drained node is uncordoned. How many migrations run at a time is decided by `control/migration`.
 */
import { NODES, PODS } from '../../api/kinds/builtin/resource-types.ts';
import type { Node } from '../../api/kinds/builtin/types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import { keyOf, keyText } from '../../api/meta/object.ts';
import { isApiError, isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import { createController, DONE, ownKeys, requeueAfter, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment, Runnable } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { createExpectations } from '../../client/expectations/expectations.ts';
import { createInformer } from '../../client/informer/informer.ts';
import { isDeletedForSilence, isNodeReady } from '../../domain/eviction/silent-deletion.ts';
import { CREATED_BY_LABEL, LAUNCHER_LABEL, LAUNCHER_VALUE } from '../../domain/launcher/launcher-labels.ts';
import { isLauncherOf } from '../../domain/launcher/launcher-owner.ts';
import { isPodFinal } from '../../domain/launcher/launcher-pods.ts';
import { clusterConfigOf } from '../../domain/machine-defaults/cluster-config.ts';
import { migrationSettings } from '../../domain/migration-policy/migration-settings.ts';
import { createBudgetController } from './budget-controller.ts';
import {
  DRAIN_ANNOTATION,
  EVACUATION_ANNOTATION,
  planEvacuation,
  priorityFor,
  type ReadonlyMigration,
  type ReadonlyVmi,
} from './evacuation-plan.ts';

/** Rights the two controllers need, and no others. */
export const evacuationControllerRules = [
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachineinstancemigrations'],
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'], verbs: ['patch'] },
  // A budget that blocks its owner's deletion takes this right on the owner.
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/finalizers'], verbs: ['update'] },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list', 'watch'] },
  {
    apiGroups: ['policy'],
    resources: ['poddisruptionbudgets'],
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Pause until instances that could not be acted on are looked at again. */
const WAITING_MS = 5000;
/** Warnings about what is stuck are said again, before they fade from the log of events. */
const STUCK_MS = 60_000;

/** Makes both controllers; nothing happens before `start`. */
export function createEvacuationController({ client, informers, clock, log }: ControllerEnvironment): Runnable {
  const nodes = informers.of<Node>(NODES);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const migrations = informers.of(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const kubevirts = informers.of(KUBEVIRTS);
  const pods = createInformer(client, PODS, {
    clock,
    log,
    labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_VALUE}`,
    indexes: { instance: (pod) => [pod.metadata.labels?.[CREATED_BY_LABEL] ?? ''].filter((uid) => uid !== '') },
  });
  vmis.addIndex('node', (vmi) => [vmi.status?.nodeName ?? ''].filter((name) => name !== ''));
  const events = createEventRecorder(client, { component: 'disruptionbudget-controller', clock, log });
  /** By instance: a migration made for it that the cache does not show yet. */
  const expectations = createExpectations(clock);
  const textOf = ({ metadata }: ReadonlyVmi): string =>
    keyText({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' });

  const evacuate = async (nodeName: string, vmi: ReadonlyVmi): Promise<void> => {
    const text = textOf(vmi);
    expectations.expectCreations(text, 1);
    try {
      const made = await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: {
          generateName: 'kubevirt-evacuation-',
          namespace: vmi.metadata.namespace ?? '',
          annotations: { [EVACUATION_ANNOTATION]: nodeName },
        },
        spec: { vmiName: vmi.metadata.name ?? '', priority: priorityFor(vmi) },
      } as VirtualMachineInstanceMigration);
      events.event(vmi, 'Normal', 'SuccessfulCreate', `Created Migration ${made.metadata.name}`);
    } catch (error) {
      expectations.creationFailed(text);
      events.event(vmi, 'Warning', 'FailedCreate', `Error creating a Migration: ${(error as Error).message}`);
      throw error;
    }
  };

  /** False when the instance is gone, which is no reason to leave the others of its node waiting. */
  const write = async (change: Parameters<typeof commit<VirtualMachineInstance>>[2]): Promise<boolean> => {
    try {
      await commit(client, VIRTUAL_MACHINE_INSTANCES, change);
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  };
  /** Takes the mark back, unless it is another one by now; then the note of the drain. */
  const release = async (nodeName: string, vmi: ReadonlyVmi): Promise<void> => {
    const before = vmi as VirtualMachineInstance;
    const { evacuationNodeName: _, ...status } = before.status ?? {};
    const after = { ...before, status: status as NonNullable<VirtualMachineInstance['status']> };
    if (!(await write({ before, after, subresource: 'status' }))) return;
    events.event(
      vmi,
      'Normal',
      'EvacuationCancelled',
      `Node ${nodeName} takes guests again: the evacuation of this instance is called off`,
    );
  };
  const setNote = async (vmi: ReadonlyVmi, nodeName: string | undefined): Promise<void> => {
    const before = vmi as VirtualMachineInstance;
    const { [DRAIN_ANNOTATION]: _, ...rest } = before.metadata.annotations ?? {};
    const annotations = nodeName === undefined ? rest : { ...rest, [DRAIN_ANNOTATION]: nodeName };
    await write({ before, after: { ...before, metadata: { ...before.metadata, annotations } } });
  };
  const cancel = async (migration: ReadonlyMigration): Promise<void> => {
    try {
      await client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, keyOf(migration), {
        preconditions: { uid: migration.metadata.uid ?? '' },
      });
    } catch (error) {
      if (!isNotFound(error) && !isApiError(error, 409)) throw error;
    }
  };

  const controller = createController({
    name: 'evacuation',
    client,
    log,
    clock,
    sources: [
      ownKeys(nodes),
      // The mark that the taint manager leaves may come just as the node is back.
      source(pods, ({ metadata, spec }) =>
        metadata.deletionTimestamp !== undefined && spec.nodeName ? [{ namespace: '', name: spec.nodeName }] : [],
      ),
      source(vmis, (vmi, previous) =>
        [...new Set([vmi.status?.nodeName, previous?.status?.nodeName])].flatMap((name) =>
          name ? [{ namespace: '', name }] : [],
        ),
      ),
      source(migrations, (migration, previous) => {
        const key = { namespace: migration.metadata.namespace ?? '', name: migration.spec.vmiName ?? '' };
        if (!previous) expectations.observeCreation(keyText(key));
        const name = vmis.get(key)?.status?.nodeName;
        return name ? [{ namespace: '', name }] : [];
      }),
    ],
    reconcile: async ({ name }) => {
      const node = nodes.get({ namespace: '', name });
      if (!node) return DONE;
      const instances = vmis.byIndex('node', name);
      const kubevirt = kubevirts.list()[0];
      const plan = planEvacuation({
        node,
        instances,
        unfinished: migrations
          .list()
          .filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed'),
        drainTaintKey: migrationSettings(kubevirt).nodeDrainTaintKey,
        clusterStrategy: clusterConfigOf(kubevirt).evictionStrategy,
        livePods: (vmi) =>
          pods.byIndex('instance', vmi.metadata.uid ?? '').filter((pod) => isLauncherOf(pod, vmi) && !isPodFinal(pod))
            .length,
        isCondemned: (vmi) =>
          isNodeReady(node) &&
          pods
            .byIndex('instance', vmi.metadata.uid ?? '')
            .some(
              (pod) =>
                isLauncherOf(pod, vmi) &&
                pod.spec.nodeName === name &&
                !isPodFinal(pod) &&
                isDeletedForSilence(pod, node),
            ),
      });
      const failures: unknown[] = [];
      const each = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
        // One that fails must not hold up the others of the node.
        for (const item of items) await act(item).catch((error: unknown) => failures.push(error));
      };
      await each(plan.cancel, cancel);
      await each(plan.release, (vmi) => release(name, vmi));
      await each(plan.notice, (vmi) => setNote(vmi, name));
      // A note outlives its mark by one write: after a move, a release, or evacuate/cancel.
      await each(
        instances.filter(
          ({ metadata, status }) =>
            metadata.annotations?.[DRAIN_ANNOTATION] !== undefined && !status?.evacuationNodeName,
        ),
        (vmi) => setNote(vmi, undefined),
      );
      await each(
        plan.migrate.filter((vmi) => expectations.satisfied(textOf(vmi))),
        (vmi) => evacuate(name, vmi),
      );
      for (const vmi of plan.stuck)
        events.event(vmi, 'Normal', 'FailedCreate', 'VirtualMachineInstance is not migrateable');
      for (const vmi of plan.external)
        events.event(
          vmi,
          'Normal',
          'WaitingForExternalEviction',
          `Node ${name} waits for this instance: its eviction strategy is External, so that an outside controller has to move or delete it`,
        );
      if (failures.length > 0) throw failures[0];
      if (plan.waiting > 0) return requeueAfter(WAITING_MS);
      return plan.stuck.length + plan.external.length > 0 ? requeueAfter(STUCK_MS) : DONE;
    },
  });
  const budgets = createBudgetController({ client, informers, clock, log, events });
  return {
    name: 'evacuation',
    start: async (signal) => {
      await Promise.all([pods.start(signal), controller.start(signal), budgets.start(signal)]);
    },
  };
}
