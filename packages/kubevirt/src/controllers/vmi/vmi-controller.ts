import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { commit } from '@coracle/client/commit/commit';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { Runnable } from '@coracle/client/controller/environment';
import { type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { DUPLICATE_FIRMWARE_UUID, type Machine, sharedMessage } from '../../rules/identity/shared-uuids.ts';
import { FOREGROUND_FINALIZER, NODE_NAME_LABEL } from '../../rules/launcher/launcher-labels.ts';
import { byAge, currentPod } from '../../rules/launcher/launcher-pods.ts';
import { claimNames } from '../../rules/machine/claim-names.ts';
import { launchersOf } from '../launcher-pod-informer.ts';
import { applyClaimInfo, dataVolumesReady } from './claim-info.ts';
import { resizePod } from './resize-pod.ts';
import { resumeNodeRules } from './resume-node.ts';
import { stateClaimRules } from './state-claim.ts';
import { applyVmiStatus, clearMigrationMarks } from './vmi-status.ts';
import {
  attachmentKeys,
  OLD_FINALIZER,
  ownerKeys,
  type Pass,
  type VmiControllerOptions,
  VmiSteps,
} from './vmi-steps.ts';
/** Rights the controller needs, and no others. */
export const vmiControllerRules = policyRules(
  'get list watch patch : kubevirt.io : virtualmachineinstances',
  'patch : kubevirt.io : virtualmachineinstances/status',
  'update : kubevirt.io : virtualmachineinstances/finalizers',
  'get list watch : kubevirt.io : kubevirts virtualmachines',
  'get list watch create patch delete : core : pods',
  'patch : core : pods/status pods/resize',
  // A launcher owns the Pods that hold plugged volumes, and does not vanish before them.
  'update : core : pods/finalizers',
  'get list watch : core : nodes',
  'get : core : namespaces',
  'get list watch : core : resourcequotas',
  'get list watch : core : persistentvolumeclaims',
  ...stateClaimRules,
  ...resumeNodeRules,
  'create patch : core : events',
);

/** Until it is looked again who should carry a change: nodes come and go. */
const PENDING_CHANGE_MS = 10_000;
/** Makes the controller; nothing happens before `start`. */
export function createVmiController(options: VmiControllerOptions): Runnable {
  const steps = new VmiSteps(options);
  const controller = createController({
    ...options,
    name: 'vmi',
    concurrency: 8,
    sources: [
      ownKeys(steps.vmis),
      source(steps.pods, (pod, previous) => {
        const keys = ownerKeys(pod);
        if (!previous) for (const key of keys) steps.expectations.observeCreation(keyText(key));
        return keys;
      }),
      source(steps.claims, (claim, previous) => [
        ...steps.stateClaims.observe(claim, previous),
        ...steps.vmis
          .list(claim.metadata.namespace)
          .filter((vmi) => claimNames(vmi.spec).includes(claim.metadata.name ?? ''))
          .map((vmi) => keyOf(vmi)),
      ]),
      source(steps.attachments, attachmentKeys),
      source(steps.classes, steps.stateClaims.waiting),
      source(steps.nodes, steps.resumeNodes.observe),
      source(steps.vmis, (vmi, previous) => instanceKeys(steps.uuids.touchedByVmi(vmi, previous))),
      source(steps.vms, (vm, previous) => instanceKeys(steps.uuids.touchedByVm(vm, previous))),
    ],
    reconcile: async (key) => {
      const cached = steps.vmis.get(key);
      if (!cached) return steps.expectations.forget(keyText(key));
      if (!steps.expectations.satisfied(keyText(key))) return;
      // Before there is a Pod: on a server without our admission nobody else holds an instance until its guest has ended.
      if (isUnheld(cached)) {
        const after = cloneJson(cached) as VirtualMachineInstance;
        after.metadata.finalizers = [...(after.metadata.finalizers ?? []), FOREGROUND_FINALIZER];
        await commit(steps.client, VIRTUAL_MACHINE_INSTANCES, { before: cached as VirtualMachineInstance, after });
        return;
      }
      const after = cloneJson(cached) as VirtualMachineInstance;
      const own = launchersOf(steps.pods, cached);
      const current = currentPod(cached, own) ?? (await steps.unseenTarget(cached));
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
      const keep = (thrown: unknown): undefined => {
        error ??= thrown;
      };
      await steps.ensurePod(pass).catch(keep);
      const resized = resizePod(steps.client, { vmi: cached, pod: pass.current }, steps.facts());
      const resize = (await resized.catch(keep)) ?? { pending: false, waiting: undefined };
      const { nodeLabel } = applyVmiStatus({
        ...pass,
        pod: pass.current,
        otherPods: pass.pods.filter((pod) => pod.metadata.uid !== pass.current?.metadata.uid),
        dataVolumesReady: dataVolumesReady(cached, steps.claims),
        duplicateUuid: sharedMessage(steps.uuids.ofVmi(cached), key.namespace),
        waiting: resize.waiting,
        sizing: options.settings(),
        now: steps.clock.now(),
      });
      const claimOf = (name: string) => steps.claims.get({ namespace: key.namespace, name });
      if (!hasEnded(after)) applyClaimInfo(after, claimOf, steps.stateClaims.of(cached));
      await steps.plugVolumes(pass).catch(keep);
      await steps.clearUp(pass);
      if (nodeLabel && after.metadata.labels?.[NODE_NAME_LABEL] !== nodeLabel)
        after.metadata.labels = { ...after.metadata.labels, [NODE_NAME_LABEL]: nodeLabel };
      clearMigrationMarks(after, cached.metadata.labels?.[NODE_NAME_LABEL]);
      const duplicate = duplicateOf(after);
      if (duplicate && duplicate !== duplicateOf(cached))
        steps.events.event(after, 'Warning', DUPLICATE_FIRMWARE_UUID, duplicate);
      const before = cached as VirtualMachineInstance;
      if (!deepEqual(before.status ?? {}, after.status ?? {}))
        await commit(steps.client, VIRTUAL_MACHINE_INSTANCES, {
          before,
          after: { ...after, metadata: before.metadata, spec: before.spec },
          subresource: 'status',
        });
      // Phase first: nothing may be labelled for a node, or let go, before its status says so. The write above comes back through the watch.
      else if (!deepEqual(before.metadata, after.metadata))
        await commit(steps.client, VIRTUAL_MACHINE_INSTANCES, { before, after });
      if (error) throw error;
      await steps.syncUnpaused(pass);
      await steps.syncEvictionNote(pass);
      await steps.syncPodMetadata(pass);
      if (resize.pending) return requeueAfter(PENDING_CHANGE_MS);
    },
  });
  return {
    name: 'vmi',
    start: async (signal) => {
      await Promise.all([steps.pods.start(signal), steps.attachments.start(signal), controller.start(signal)]);
    },
  };
}

const duplicateOf = (vmi: ReadonlyVmi): string | undefined => conditionOf(vmi, DUPLICATE_FIRMWARE_UUID)?.message;

const instanceKeys = (machines: readonly Machine[]): ObjectKey[] =>
  machines.filter(({ kind }) => kind === 'VirtualMachineInstance').map(({ namespace, name }) => ({ namespace, name }));

/** True for an instance that could be gone before its guest is. One that is being deleted takes no finalizer any more. */
const isUnheld = ({ metadata }: ReadonlyVmi): boolean =>
  metadata.deletionTimestamp === undefined &&
  !metadata.finalizers?.some((finalizer) => finalizer === FOREGROUND_FINALIZER || finalizer === OLD_FINALIZER);
