/**
 * The VirtualMachineInstance controller: makes sure there is a virt-launcher Pod, follows it until the agent claims the
 * instance, and clears up when the instance has ended. One pass is a chain of steps over a clone; the difference is
 * committed at its end.
 */

import { NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES } from '../../api/kinds/builtin/resource-types.ts';
import type { Node, Pod } from '../../api/kinds/builtin/types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { type DeepReadonly, keyOf, keyText, type ObjectKey } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import { createController, DONE, ownKeys, requeueAfter, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment, Runnable } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { createExpectations } from '../../client/expectations/expectations.ts';
import { createInformer } from '../../client/informer/informer.ts';
import { DUPLICATE_FIRMWARE_UUID, type Machine, sharedMessage } from '../../domain/identity/shared-uuids.ts';
import { createUuidIndex } from '../../domain/identity/uuid-index.ts';
import {
  CREATED_BY_LABEL,
  EVICTION_SOURCE_ANNOTATION,
  FOREGROUND_FINALIZER,
  LAUNCHER_LABEL,
  LAUNCHER_VALUE,
  MIGRATION_TARGET_NODE_LABEL,
  NODE_NAME_LABEL,
  vmiIdLabel,
} from '../../domain/launcher/launcher-labels.ts';
import { instanceReference, isLauncherOf } from '../../domain/launcher/launcher-owner.ts';
import { type LauncherPodOptions, launcherPod } from '../../domain/launcher/launcher-pod.ts';
import { byAge, currentPod, isPodFinal } from '../../domain/launcher/launcher-pods.ts';
import { isFinal } from '../../domain/run-strategy/run-strategy.ts';
import { applyClaimInfo, claimNames, missingClaim } from './claim-info.ts';
import { type ResizeFacts, resizePod } from './resize-pod.ts';
import { createResumeNodes, resumeNodeRules } from './resume-node.ts';
import { createStateClaims, stateClaimRules } from './state-claim.ts';
import {
  applyVmiStatus,
  claimIsMissing,
  type SyncProblem,
  saysClaimIsMissing,
  unpausedCondition,
} from './vmi-status.ts';

type ReadonlyVmi = DeepReadonly<VirtualMachineInstance>;
type ReadonlyPod = DeepReadonly<Pod>;

export interface VmiControllerOptions extends ControllerEnvironment {
  /** Cluster settings that shape the Pod, read at each start. */
  readonly settings: () => Omit<LauncherPodOptions, 'idLabel'>;
}

/** Rights the controller needs, and no others. */
export const vmiControllerRules = [
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachineinstances'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'], verbs: ['patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/finalizers'], verbs: ['update'] },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts', 'virtualmachines'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods/status', 'pods/resize'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'watch'] },
  ...stateClaimRules,
  ...resumeNodeRules,
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** The name of the finalizer in instances of early versions of KubeVirt. */
const OLD_FINALIZER = 'foregroundDeleteVirtualMachine';
/** Until it is looked again who should carry a change: nodes come and go. */
const PENDING_CHANGE_MS = 10_000;
const EVICTION_IN_PROGRESS_ANNOTATION = 'descheduler.alpha.kubernetes.io/eviction-in-progress';

interface Pass {
  readonly key: ObjectKey;
  readonly vmi: VirtualMachineInstance;
  /** Launcher Pods of this instance, oldest first. */
  pods: readonly ReadonlyPod[];
  /** The one the guest runs in; a migration brings up another one beside it. */
  current: ReadonlyPod | undefined;
  podExpected: boolean;
  problem: SyncProblem | undefined;
  missingClaim: string | undefined;
}

/** Makes the controller; nothing happens before `start`. */
export function createVmiController(options: VmiControllerOptions): Runnable {
  const { client, clock, log, informers } = options;
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const classes = informers.of(STORAGE_CLASSES);
  const nodes = informers.of<Node>(NODES);
  const kubevirts = informers.of(KUBEVIRTS);
  const vms = informers.of(VIRTUAL_MACHINES);
  const uuids = createUuidIndex(vms, vmis);
  const facts = (): ResizeFacts => ({
    kubevirt: kubevirts.list()[0],
    nodes: nodes.list(),
    cpuAllocationRatio: options.settings().cpuAllocationRatio,
  });
  const pods = createInformer(client, PODS, {
    clock,
    log,
    labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_VALUE}`,
    indexes: {
      instance: (pod) => [pod.metadata.labels?.[CREATED_BY_LABEL] ?? ''].filter((uid) => uid !== ''),
      name: (pod) => ownerKeys(pod).map(keyText),
    },
  });
  const events = createEventRecorder(client, { component: 'virtualmachine-controller', clock, log });
  const expectations = createExpectations(clock);
  const stateClaims = createStateClaims(options, events);
  const resumeNodes = createResumeNodes(options, events);

  const ensurePod = async (pass: Pass): Promise<void> => {
    const { vmi, key } = pass;
    if (vmi.metadata.deletionTimestamp !== undefined || isFinal(vmi.status?.phase)) return;
    const phase = vmi.status?.phase ?? '';
    // Only an instance that never had a Pod gets one: a Pod that vanished means the guest is gone.
    if (pass.pods.length > 0 || (phase !== '' && phase !== 'Pending')) return;
    // An earlier instance of the name, which somebody let go by force, may still have its guest: two never run at once.
    if (pods.byIndex('name', keyText(key)).some((pod) => !isPodFinal(pod))) return;
    pass.missingClaim = missingClaim(vmi, claims);
    if (pass.missingClaim !== undefined) {
      if (!saysClaimIsMissing(vmi))
        events.event(vmi, 'Warning', 'FailedPvcNotFound', claimIsMissing(key.namespace, pass.missingClaim));
      return;
    }
    const state = await stateClaims.ensure(vmi);
    pass.problem = state.problem;
    if (state.problem) return;
    const memory = await resumeNodes.of(vmi);
    pass.problem = memory.problem;
    if (memory.problem) return;
    const idLabel = await vmiIdLabel(key.name);
    const stateClaim = state.claim;
    const pod = launcherPod(vmi, { ...options.settings(), idLabel, stateClaim, memoryPlace: memory.place });
    expectations.expectCreations(keyText(key), 1);
    try {
      const created = await client.create(PODS, pod);
      pass.pods = [created];
      pass.current = created;
      pass.podExpected = true;
      events.event(vmi, 'Normal', 'SuccessfulCreate', `Created virtual machine pod ${created.metadata.name}`);
    } catch (error) {
      expectations.creationFailed(keyText(key));
      const message = error instanceof Error ? error.message : String(error);
      pass.problem = { reason: 'FailedCreate', message: `failed to create virtual machine pod: ${message}` };
      events.event(vmi, 'Warning', 'FailedCreate', `Error creating pod: ${message}`);
      throw error;
    }
  };

  const clearUp = async (pass: Pass): Promise<void> => {
    const { vmi } = pass;
    const final = isFinal(vmi.status?.phase);
    if (vmi.metadata.deletionTimestamp === undefined) return;
    for (const pod of pass.pods) {
      if (pod.metadata.deletionTimestamp !== undefined) continue;
      try {
        await client.delete(PODS, keyOf(pod), { preconditions: { uid: pod.metadata.uid ?? '' } });
        events.event(vmi, 'Normal', 'SuccessfulDelete', `Deleted virtual machine pod ${pod.metadata.name}`);
      } catch (error) {
        if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
      }
    }
    if (final && pass.pods.length === 0 && !pass.podExpected) {
      const dropped = new Set<string>([FOREGROUND_FINALIZER, OLD_FINALIZER]);
      // Without a VM above it nobody else would drop the VM controller's finalizer.
      if (!vmi.metadata.ownerReferences?.some((owner) => owner.kind === 'VirtualMachine'))
        dropped.add('kubevirt.io/virtualMachineControllerFinalize');
      vmi.metadata.finalizers = (vmi.metadata.finalizers ?? []).filter((finalizer) => !dropped.has(finalizer));
    }
  };

  /**
   * The Pod of an instance that has just moved, when the cache of Pods lags behind that of instances: without it the
   * guest would look lost.
   */
  const unseenTarget = async ({ metadata, status }: ReadonlyVmi): Promise<ReadonlyPod | undefined> => {
    const { targetNode, targetPod } = status?.migrationState ?? {};
    if (!targetPod || !targetNode || targetNode !== status?.nodeName || isFinal(status.phase)) return undefined;
    try {
      const pod = await client.get(PODS, { namespace: metadata.namespace ?? '', name: targetPod });
      return isLauncherOf(pod, { metadata }) ? pod : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  /** Shows on the Pod whether the guest is paused. A Pod made in this pass is marked when the watch has shown it. */
  const syncUnpaused = async ({ vmi, current: pod, podExpected }: Pass): Promise<void> => {
    if (!pod || podExpected || pod.metadata.deletionTimestamp !== undefined || isFinal(vmi.status?.phase)) return;
    const condition = unpausedCondition(vmi, pod, clock.now());
    if (!condition) return;
    try {
      await client.patch(
        PODS,
        keyOf(pod),
        { type: 'strategic', body: { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } } },
        { subresource: 'status' },
      );
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
    }
  };

  /** The node's label of an instance is its launcher Pod's too. */
  const syncNodeLabel = async ({ vmi, current: pod, podExpected }: Pass): Promise<void> => {
    const node = vmi.metadata.labels?.[NODE_NAME_LABEL];
    if (!pod || podExpected || !node || pod.metadata.deletionTimestamp !== undefined) return;
    if (node !== pod.spec.nodeName || pod.metadata.labels?.[NODE_NAME_LABEL] === node) return;
    await patchPod(pod, { labels: { [NODE_NAME_LABEL]: node } });
  };

  /** Tells the descheduler, on the Pod it evicted, that the eviction is being seen to. */
  const syncEvictionNote = async ({ vmi, current: pod, podExpected }: Pass): Promise<void> => {
    if (!pod || podExpected || pod.metadata.deletionTimestamp !== undefined || isPodFinal(pod)) return;
    const isMarked = !!vmi.status?.evacuationNodeName;
    if (isMarked === (pod.metadata.annotations?.[EVICTION_IN_PROGRESS_ANNOTATION] !== undefined)) return;
    const annotations = { [EVICTION_IN_PROGRESS_ANNOTATION]: isMarked ? 'true' : null };
    await patchPod(pod, { annotations });
  };

  /** Changes a Pod that may have gone or become another one meanwhile. */
  const patchPod = async (pod: ReadonlyPod, metadata: object): Promise<void> => {
    try {
      const body = { metadata: { uid: pod.metadata.uid, ...metadata } };
      await client.patch(PODS, keyOf(pod), { type: 'merge', body });
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
    }
  };

  const controller = createController({
    name: 'vmi',
    client,
    log,
    clock,
    concurrency: 8,
    sources: [
      ownKeys(vmis),
      source(pods, (pod, previous) => {
        const keys = ownerKeys(pod);
        if (!previous) for (const key of keys) expectations.observeCreation(keyText(key));
        return keys;
      }),
      source(claims, (claim, previous) => [
        ...stateClaims.observe(claim, previous),
        ...vmis
          .list(claim.metadata.namespace)
          .filter((vmi) => claimNames(vmi).includes(claim.metadata.name ?? ''))
          .map((vmi) => keyOf(vmi)),
      ]),
      source(classes, stateClaims.waiting),
      source(nodes, resumeNodes.observe),
      source(vmis, (vmi, previous) => instanceKeys(uuids.touchedByVmi(vmi, previous))),
      source(vms, (vm, previous) => instanceKeys(uuids.touchedByVm(vm, previous))),
    ],
    reconcile: async (key) => {
      const cached = vmis.get(key);
      if (!cached) {
        expectations.forget(keyText(key));
        return DONE;
      }
      if (!expectations.satisfied(keyText(key))) return DONE;
      // Before there is a Pod: on a server without our admission nobody else holds an instance until its guest has ended.
      if (isUnheld(cached)) {
        await commit(client, VIRTUAL_MACHINE_INSTANCES, {
          before: cached as VirtualMachineInstance,
          after: held(cached),
        });
        return DONE;
      }
      const after = cloneJson(cached) as VirtualMachineInstance;
      const own = pods.byIndex('instance', cached.metadata.uid ?? '').filter((pod) => isLauncherOf(pod, cached));
      const current = currentPod(cached, own) ?? (await unseenTarget(cached));
      const pass: Pass = {
        key,
        vmi: after,
        pods: [...own].sort(byAge),
        current,
        podExpected: false,
        problem: undefined,
        missingClaim: undefined,
      };
      let error: unknown;
      try {
        await ensurePod(pass);
      } catch (thrown) {
        error = thrown;
      }
      const resize = await resizePod(client, { vmi: cached, pod: pass.current }, facts()).catch((thrown: unknown) => {
        error ??= thrown;
        return { pending: false, waiting: undefined };
      });
      const { nodeLabel } = applyVmiStatus({
        vmi: after,
        pod: pass.current,
        otherPods: pass.pods.filter((pod) => pod.metadata.uid !== pass.current?.metadata.uid),
        podExpected: pass.podExpected,
        problem: pass.problem,
        missingClaim: pass.missingClaim,
        duplicateUuid: sharedMessage(uuids.ofVmi(cached), key.namespace),
        waiting: resize.waiting,
        now: clock.now(),
      });
      if (!isFinal(after.status?.phase))
        applyClaimInfo(after, (name) => claims.get({ namespace: key.namespace, name }), stateClaims.of(cached));
      await clearUp(pass);
      if (nodeLabel && after.metadata.labels?.[NODE_NAME_LABEL] !== nodeLabel)
        after.metadata.labels = { ...after.metadata.labels, [NODE_NAME_LABEL]: nodeLabel };
      clearMigrationMarks(after);
      const duplicate = duplicateOf(after);
      if (duplicate && duplicate !== duplicateOf(cached))
        events.event(after, 'Warning', DUPLICATE_FIRMWARE_UUID, duplicate);
      const before = cached as VirtualMachineInstance;
      if (!deepEqual(before.status ?? {}, after.status ?? {}))
        await commit(client, VIRTUAL_MACHINE_INSTANCES, {
          before,
          after: { ...after, metadata: before.metadata, spec: before.spec },
          subresource: 'status',
        });
      // Phase first: nothing may be labelled for a node, or let go, before its status says so. The write above comes back through the watch.
      else if (!deepEqual(before.metadata, after.metadata))
        await commit(client, VIRTUAL_MACHINE_INSTANCES, { before, after });
      if (error) throw error;
      await syncUnpaused(pass);
      await syncEvictionNote(pass);
      await syncNodeLabel(pass);
      return resize.pending ? requeueAfter(PENDING_CHANGE_MS) : DONE;
    },
  });
  return {
    name: 'vmi',
    start: async (signal) => {
      await Promise.all([pods.start(signal), controller.start(signal)]);
    },
  };
}

const duplicateOf = ({ status }: ReadonlyVmi): string | undefined =>
  status?.conditions?.find(({ type }) => type === DUPLICATE_FIRMWARE_UUID)?.message;

const instanceKeys = (machines: readonly Machine[]): ObjectKey[] =>
  machines.filter(({ kind }) => kind === 'VirtualMachineInstance').map(({ namespace, name }) => ({ namespace, name }));

/** The instance that a launcher Pod was made for, by its name; none for other Pods. */
function ownerKeys(pod: ReadonlyPod): ObjectKey[] {
  const owner = instanceReference(pod);
  return owner ? [{ namespace: pod.metadata.namespace ?? '', name: owner.name }] : [];
}

/** True for an instance that could be gone before its guest is. One that is being deleted takes no finalizer any more. */
const isUnheld = ({ metadata }: ReadonlyVmi): boolean =>
  metadata.deletionTimestamp === undefined &&
  !metadata.finalizers?.some((finalizer) => finalizer === FOREGROUND_FINALIZER || finalizer === OLD_FINALIZER);

function held(vmi: ReadonlyVmi): VirtualMachineInstance {
  const after = cloneJson(vmi) as VirtualMachineInstance;
  after.metadata.finalizers = [...(after.metadata.finalizers ?? []), FOREGROUND_FINALIZER];
  return after;
}

/**
 * Takes off what named a migration or an eviction that is over: the target's label, by which its agent was notified, and who
 * asked for the eviction. The agents write status only.
 */
function clearMigrationMarks(vmi: VirtualMachineInstance): void {
  const { labels = {}, annotations = {} } = vmi.metadata;
  const state = vmi.status?.migrationState;
  const isOver = state === undefined || state.completed === true || state.failed === true;
  // The node's own label first: an agent that looks for either must find one of them.
  const isSettled = labels[NODE_NAME_LABEL] === (vmi.status?.nodeName ?? '');
  if (isOver && isSettled && labels[MIGRATION_TARGET_NODE_LABEL] !== undefined) {
    const { [MIGRATION_TARGET_NODE_LABEL]: _, ...rest } = labels;
    vmi.metadata.labels = rest;
  }
  const wasMarked = vmi.status?.conditions?.some(({ type }) => type === 'EvictionRequested') ?? false;
  if (!vmi.status?.evacuationNodeName && wasMarked && annotations[EVICTION_SOURCE_ANNOTATION] !== undefined) {
    const { [EVICTION_SOURCE_ANNOTATION]: _, ...rest } = annotations;
    vmi.metadata.annotations = rest;
  }
}
