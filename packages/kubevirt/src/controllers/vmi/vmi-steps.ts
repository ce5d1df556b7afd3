import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting, isFinal } from '@coracle/apimachinery/meta/object-state';
import {
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_QUOTAS,
  STORAGE_CLASSES,
} from '@coracle/apimachinery/types/resource-types';
import type { Node, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { orAbsent, orGone } from '@coracle/client/api-failure';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import { createInformer } from '@coracle/client/informer/informer';
import {
  KUBEVIRTS,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import { createUuidIndex } from '../../rules/identity/uuid-index.ts';
import { ATTACHMENT_VALUE, attachedInstance } from '../../rules/launcher/attachment-pod.ts';
import {
  FOREGROUND_FINALIZER,
  LAUNCHER_LABEL,
  NODE_NAME_LABEL,
  vmiIdLabel,
} from '../../rules/launcher/launcher-labels.ts';
import { instanceReference, isLauncherOf } from '../../rules/launcher/launcher-owner.ts';
import { type LauncherPodOptions, launcherPod } from '../../rules/launcher/launcher-pod.ts';
import type { NamespaceLimits } from '../../rules/launcher/launcher-resources.ts';
import { limitedBy, namespaceLimits } from '../../rules/launcher/namespace-limits.ts';
import { NETWORKS_ANNOTATION, networksAnnotation } from '../../rules/launcher/network-attachments.ts';
import { VM_FINALIZER } from '../../rules/machine-defaults/hold-machine.ts';
import { launcherPodInformer } from '../launcher-pod-informer.ts';
import { missingClaim } from './claim-info.ts';
import { plugVolumes } from './plug-volumes.ts';
import type { ResizeFacts } from './resize-pod.ts';
import { createResumeNodes } from './resume-node.ts';
import { createStateClaims } from './state-claim.ts';
import { claimIsMissing, type SyncProblem, saysClaimIsMissing, unpausedCondition } from './vmi-status.ts';

export interface VmiControllerOptions extends ControllerEnvironment {
  /** Cluster settings that shape the Pod, read at each start. */
  readonly settings: () => Omit<LauncherPodOptions, 'idLabel'>;
}

/** The name of the finalizer in instances of early versions of KubeVirt. */
export const OLD_FINALIZER = 'foregroundDeleteVirtualMachine';

const EVICTION_IN_PROGRESS_ANNOTATION = 'descheduler.alpha.kubernetes.io/eviction-in-progress';

export interface Pass {
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

/** The instance that a launcher Pod was made for, by its name; none for other Pods. */
export function ownerKeys(pod: ReadonlyPod): ObjectKey[] {
  const owner = instanceReference(pod);
  return owner ? [{ namespace: pod.metadata.namespace ?? '', name: owner.name }] : [];
}

/** The instance that a Pod says it holds a volume for. */
export function attachmentKeys(pod: ReadonlyPod): ObjectKey[] {
  const name = attachedInstance(pod);
  return name === undefined ? [] : [{ namespace: pod.metadata.namespace ?? '', name }];
}

/** The steps of an instance: its launcher Pod is made, shown to, and cleared up. */
export class VmiSteps extends ControllerSteps<VmiControllerOptions> {
  readonly vmis = this.options.informers.of(VIRTUAL_MACHINE_INSTANCES);
  readonly claims = this.options.informers.of(PERSISTENT_VOLUME_CLAIMS);
  readonly classes = this.options.informers.of(STORAGE_CLASSES);
  readonly quotas = this.options.informers.of(RESOURCE_QUOTAS);
  readonly nodes = this.options.informers.of<Node>(NODES);
  readonly #kubevirts = this.options.informers.of(KUBEVIRTS);
  readonly vms = this.options.informers.of(VIRTUAL_MACHINES);
  readonly uuids = createUuidIndex(this.vms, this.vmis);
  readonly pods = launcherPodInformer(this.options, { name: (pod) => ownerKeys(pod).map(keyText) });
  /** Pods that hold volumes which are plugged into guests. */
  readonly attachments = createInformer(this.client, PODS, {
    clock: this.clock,
    log: this.log,
    labelSelector: `${LAUNCHER_LABEL}=${ATTACHMENT_VALUE}`,
    indexes: { instance: (pod) => attachmentKeys(pod).map(keyText) },
  });
  readonly events = createEventRecorder(this.client, { ...this.options, component: 'virtualmachine-controller' });
  readonly expectations = createExpectations(this.clock);
  readonly stateClaims = createStateClaims(this.options, this.events);
  readonly resumeNodes = createResumeNodes(this.options, this.events);

  facts(): ResizeFacts {
    return {
      kubevirt: this.#kubevirts.list()[0],
      nodes: this.nodes.list(),
      sizing: this.options.settings(),
    };
  }

  async ensurePod(pass: Pass): Promise<void> {
    const { vmi, key } = pass;
    if (isDeleting(vmi) || hasEnded(vmi)) return;
    const phase = vmi.status?.phase ?? '';
    // Only an instance that never had a Pod gets one: a Pod that vanished means the guest is gone.
    if (pass.pods.length > 0 || (phase !== '' && phase !== 'Pending')) return;
    // An earlier instance of the name, which somebody let go by force, may still have its guest: two never run at once.
    if (this.pods.byIndex('name', keyText(key)).some((pod) => !hasEnded(pod))) return;
    pass.missingClaim = missingClaim(vmi, this.claims);
    if (pass.missingClaim !== undefined) {
      if (!saysClaimIsMissing(vmi))
        this.events.event(vmi, 'Warning', 'FailedPvcNotFound', claimIsMissing(key.namespace, pass.missingClaim));
      return;
    }
    const state = await this.stateClaims.ensure(vmi);
    pass.problem = state.problem;
    if (state.problem) return;
    const memory = await this.resumeNodes.of(vmi);
    pass.problem = memory.problem;
    if (memory.problem) return;
    const pod = launcherPod(vmi, {
      ...this.options.settings(),
      ...(await this.#namespaceLimits(key.namespace)),
      idLabel: await vmiIdLabel(key.name),
      stateClaim: state.claim,
      memoryPlace: memory.place,
    });
    this.expectations.expectCreations(keyText(key), 1);
    try {
      const created = await this.client.create(PODS, pod);
      pass.pods = [created];
      pass.current = created;
      pass.podExpected = true;
      this.events.event(vmi, 'Normal', 'SuccessfulCreate', `Created virtual machine pod ${created.metadata.name}`);
    } catch (error) {
      this.expectations.creationFailed(keyText(key));
      const message = error instanceof Error ? error.message : String(error);
      pass.problem = { reason: 'FailedCreate', message: `failed to create virtual machine pod: ${message}` };
      this.events.event(vmi, 'Warning', 'FailedCreate', `Error creating pod: ${message}`);
      throw error;
    }
  }

  async plugVolumes({ vmi, key, current, pods }: Pass): Promise<void> {
    await plugVolumes(
      vmi,
      {
        launcher: current,
        launchers: pods,
        attachments: this.attachments.byIndex('instance', keyText(key)),
        claimOf: (name) => this.claims.get({ namespace: key.namespace, name }),
      },
      { client: this.client, events: this.events, kubeVirt: this.#kubevirts.list()[0] },
    );
  }

  /** What guests in this namespace are limited to that name no limits themselves. Its labels are asked for only if they matter. */
  async #namespaceLimits(name: string): Promise<NamespaceLimits> {
    const selector = this.#kubevirts.list()[0]?.spec.configuration?.autoCPULimitNamespaceLabelSelector;
    const quotas = this.quotas.list(name);
    if (!selector && !limitedBy(quotas, 'memory')) return namespaceLimits({ selector, labels: {}, quotas });
    const { metadata } = await this.client.get(NAMESPACES, { namespace: '', name });
    return namespaceLimits({ selector, labels: metadata.labels, quotas });
  }

  async clearUp(pass: Pass): Promise<void> {
    const { vmi } = pass;
    if (!isDeleting(vmi)) return;
    for (const pod of pass.pods.filter((one) => !isDeleting(one))) {
      const deleted = this.client.delete(PODS, keyOf(pod), { preconditions: { uid: pod.metadata.uid ?? '' } });
      if (await orGone(deleted.then(() => true)))
        this.events.event(vmi, 'Normal', 'SuccessfulDelete', `Deleted virtual machine pod ${pod.metadata.name}`);
    }
    if (hasEnded(vmi) && pass.pods.length === 0 && !pass.podExpected) {
      const dropped = new Set<string>([FOREGROUND_FINALIZER, OLD_FINALIZER]);
      // Without a VM above it nobody else would drop the VM controller's finalizer.
      if (!vmi.metadata.ownerReferences?.some((owner) => owner.kind === 'VirtualMachine')) dropped.add(VM_FINALIZER);
      vmi.metadata.finalizers = (vmi.metadata.finalizers ?? []).filter((finalizer) => !dropped.has(finalizer));
    }
  }

  /**
   * The Pod of an instance that has just moved, when the cache of Pods lags behind that of instances: without it the
   * guest would look lost.
   */
  async unseenTarget({ metadata, status }: ReadonlyVmi): Promise<ReadonlyPod | undefined> {
    const { targetNode, targetPod } = status?.migrationState ?? {};
    if (!targetPod || !targetNode || targetNode !== status?.nodeName || isFinal(status.phase)) return undefined;
    const pod = await orAbsent(this.client.get(PODS, { namespace: metadata.namespace ?? '', name: targetPod }));
    return pod && isLauncherOf(pod, { metadata }) ? pod : undefined;
  }

  /** Shows on the Pod whether the guest is paused. A Pod made in this pass is marked when the watch has shown it. */
  async syncUnpaused({ vmi, current: pod, podExpected }: Pass): Promise<void> {
    if (!pod || podExpected || isDeleting(pod) || hasEnded(vmi)) return;
    const condition = unpausedCondition(vmi, pod, this.clock.now());
    if (!condition) return;
    const body = { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } };
    await orGone(this.client.patch(PODS, keyOf(pod), { type: 'strategic', body }, { subresource: 'status' }));
  }

  /** The node's label of an instance is its launcher Pod's too, and the networks that it has been given while it runs. */
  async syncPodMetadata({ vmi, current: pod, podExpected }: Pass): Promise<void> {
    if (!pod || podExpected || isDeleting(pod) || hasEnded(pod)) return;
    const node = vmi.metadata.labels?.[NODE_NAME_LABEL];
    const networks = networksAnnotation(vmi) ?? vmi.metadata.annotations?.[NETWORKS_ANNOTATION];
    const hasLabel = !node || node !== pod.spec.nodeName || pod.metadata.labels?.[NODE_NAME_LABEL] === node;
    const hasNetworks = pod.metadata.annotations?.[NETWORKS_ANNOTATION] === networks;
    if (hasLabel && hasNetworks) return;
    await this.#patchPod(pod, {
      ...(!hasLabel && { labels: { [NODE_NAME_LABEL]: node } }),
      ...(!hasNetworks && { annotations: { [NETWORKS_ANNOTATION]: networks ?? null } }),
    });
  }

  /** Tells the descheduler, on the Pod it evicted, that the eviction is being seen to. */
  async syncEvictionNote({ vmi, current: pod, podExpected }: Pass): Promise<void> {
    if (!pod || podExpected || isDeleting(pod) || hasEnded(pod)) return;
    const isMarked = !!vmi.status?.evacuationNodeName;
    if (isMarked === (pod.metadata.annotations?.[EVICTION_IN_PROGRESS_ANNOTATION] !== undefined)) return;
    const annotations = { [EVICTION_IN_PROGRESS_ANNOTATION]: isMarked ? 'true' : null };
    await this.#patchPod(pod, { annotations });
  }

  /** Changes a Pod that may have gone or become another one meanwhile. */
  async #patchPod(pod: ReadonlyPod, metadata: object): Promise<void> {
    const body = { metadata: { uid: pod.metadata.uid, ...metadata } };
    await orGone(this.client.patch(PODS, keyOf(pod), { type: 'merge', body }));
  }
}
