/** The status of a launcher Pod, as a kubelet would write it: pure. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type {
  Container,
  ContainerState,
  ContainerStatus,
  PodCondition,
  PodStatus,
  ReadonlyPod,
  ResourceRequirements,
} from '@coracle/apimachinery/types/types';
import {
  NETWORK_STATUS_ANNOTATION,
  NO_NETWORK_STATUS,
  networkStatusText,
} from '@coracle/kubevirt/rules/launcher/network-attachments';
import { podAddressOf } from '@coracle/kubevirt/rules/launcher/pod-address';
import { isResizing, type PodResizeDecision } from '@coracle/kubevirt/rules/live-update/pod-resize';
import { FORWARDED_PORTS_ANNOTATION, type PublishedPort } from '@coracle/kubevirt/rules/machine/host-ports';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import { ephemeralStatuses } from './ephemeral-containers.ts';
import type { VmResult } from './vm-result.ts';

/** How a change of the Pod's size goes. */
export interface ResizeView {
  /** For the Pod `of`: one whose size has changed again needs another. */
  readonly decision?: PodResizeDecision;
  readonly of?: ReadonlyPod;
  /** What keeps the guest from having what its Pod has. */
  readonly trouble?: string;
}

/** What the launcher of a Pod has to tell. */
export type LauncherView =
  | { readonly state: 'creating'; readonly reason: string; readonly message: string; readonly container?: string }
  | {
      readonly state: 'running';
      readonly startedAt: number;
      /** Of the guest; absent where the Pod has none. */
      readonly address?: string;
      /** Where the ports of the guest are; absent where that is not known yet. */
      readonly ports?: readonly PublishedPort[];
      /** Of the guest; absent where they are not known yet. */
      readonly cards?: MachinePlan['interfaces'];
      readonly imageIds: Readonly<Record<string, string>>;
      readonly resize?: ResizeView;
      /** What the guest's readiness probe says; without one the guest is ready. */
      readonly isReady?: boolean;
    }
  | {
      readonly state: 'ended';
      readonly result: VmResult;
      readonly startedAt: number | undefined;
      readonly finishedAt: number;
      readonly imageIds: Readonly<Record<string, string>>;
    };

/** The annotations that this Pod lacks: where its guest's ports are, and which networks it is on. They stay as they are once it has ended. */
export function podAnnotationsOf(pod: ReadonlyPod, view: LauncherView): Record<string, string> | undefined {
  if (view.state !== 'running') return undefined;
  const known = pod.metadata.annotations ?? {};
  const ports = view.ports && JSON.stringify(view.ports);
  const networks = view.cards && networkStatusText(view.cards, view.address && podAddressOf(view.address));
  const lacking = {
    ...(ports !== undefined &&
      (known[FORWARDED_PORTS_ANNOTATION] ?? '[]') !== ports && { [FORWARDED_PORTS_ANNOTATION]: ports }),
    ...(networks !== undefined &&
      (known[NETWORK_STATUS_ANNOTATION] ?? NO_NETWORK_STATUS) !== networks && {
        [NETWORK_STATUS_ANNOTATION]: networks,
      }),
  };
  return Object.keys(lacking).length > 0 ? lacking : undefined;
}

/** The container that stands for the image of a volume; '' is that of kernelBoot. */
export const imageContainer = (volume: string): string => (volume === '' ? 'kernel-boot' : `volume${volume}`);

/** The status this Pod should have. Conditions of others (PodScheduled, readiness gates) stay. */
export function podStatusOf(
  pod: ReadonlyPod,
  view: LauncherView,
  { hostIP, now }: { readonly hostIP: string; readonly now: number },
): PodStatus {
  const before = pod.status ?? {};
  const running = view.state === 'running';
  const stamp = formatTime(now);
  const address = running ? view.address && podAddressOf(view.address) : before.podIP;
  const init = pod.spec.initContainers ?? [];
  return {
    ...observedOf(pod),
    phase: running ? 'Running' : view.state === 'creating' ? 'Pending' : view.result.phase,
    ...(view.state === 'ended' &&
      view.result.phase === 'Failed' && { reason: view.result.reason, message: view.result.message }),
    conditions: conditionsOf(pod, view, stamp),
    hostIP,
    hostIPs: [{ ip: hostIP }],
    ...(address !== undefined && { podIP: address, podIPs: [{ ip: address }] }),
    startTime: before.startTime ?? stamp,
    ...(init.length > 0 && {
      initContainerStatuses: init.map((container) =>
        container.restartPolicy === 'Always'
          ? statusOf(pod, view, container, sidecarState(pod, view, container.name, stamp))
          : {
              ...statusOf(pod, view, container, initState(pod, view)),
              ready: view.state !== 'creating',
              started: false,
            },
      ),
    }),
    containerStatuses: pod.spec.containers.map((container) => ({
      ...statusOf(pod, view, container, mainState(pod, view, container.name)),
      ...(running && sizeOf(pod, view, container)),
    })),
    ...ephemeralStatuses(pod, stamp),
    ...(before.qosClass !== undefined && { qosClass: before.qosClass }),
  };
}

/** The generation that a status is about, for those who wait until a change of the spec was seen (KEP-5067). */
const observedOf = ({ metadata: { generation } }: ReadonlyPod): { observedGeneration?: number } =>
  generation === undefined ? {} : { observedGeneration: generation };

/** What was decided on the size that the Pod has now; undefined where it has changed since. */
function resizeDecisionOf(pod: ReadonlyPod, view: LauncherView): PodResizeDecision | undefined {
  const resize = view.state === 'running' ? view.resize : undefined;
  return resize?.of && deepEqual(sizesOf(resize.of), sizesOf(pod)) ? resize.decision : undefined;
}

function conditionsOf(pod: ReadonlyPod, view: LauncherView, stamp: string): PodCondition[] {
  const known = pod.status?.conditions ?? [];
  const observed = observedOf(pod);
  const conditions = new Map<string, PodCondition>(known.map((c) => [c.type, { ...c }]));
  const set = (type: string, status: 'True' | 'False', reason?: string, message?: string): void => {
    const old = conditions.get(type);
    conditions.set(type, {
      type,
      ...observed,
      status,
      lastProbeTime: null,
      lastTransitionTime: old?.status === status && old.lastTransitionTime ? old.lastTransitionTime : stamp,
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
    } as PodCondition);
  };
  set('PodReadyToStartContainers', view.state === 'ended' ? 'False' : 'True');
  set('Initialized', 'True', ...(view.state === 'ended' && view.result.phase === 'Succeeded' ? ['PodCompleted'] : []));
  if (view.state === 'running') {
    const gates = (pod.spec.readinessGates ?? []).map((gate) => gate.conditionType);
    const waitingGate = gates.find((type) => !known.some((c) => c.type === type && c.status === 'True'));
    if (view.isReady === false) {
      for (const type of ['ContainersReady', 'Ready']) set(type, 'False', 'ContainersNotReady', COMPUTE_NOT_READY);
      return [...conditions.values()];
    }
    set('ContainersReady', 'True');
    if (waitingGate === undefined) set('Ready', 'True');
    else set('Ready', 'False', 'ReadinessGatesNotReady', `condition "${waitingGate}" is not True`);
  } else {
    const ended = view.state === 'ended' && view.result.phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed';
    const reason = view.state === 'creating' ? 'ContainersNotReady' : ended;
    set('ContainersReady', 'False', reason);
    set('Ready', 'False', reason);
  }
  const decision = resizeDecisionOf(pod, view);
  if (decision?.type === 'wait') set('PodResizePending', 'True', decision.reason, decision.message);
  else if (!isResizing(pod) || decision) conditions.delete('PodResizePending');
  const trouble = view.state === 'running' ? view.resize?.trouble : undefined;
  if (trouble !== undefined) set('PodResizeInProgress', 'True', 'Error', trouble);
  else conditions.delete('PodResizeInProgress');
  return [...conditions.values()];
}

/** What a container of a running Pod has been given: what it was made with, until a change of it is granted. */
function sizeOf(
  pod: ReadonlyPod,
  view: LauncherView,
  { name, resources }: DeepReadonly<Container>,
): Pick<ContainerStatus, 'allocatedResources' | 'resources'> {
  if (!resources?.requests) return {};
  const known = pod.status?.containerStatuses?.find((status) => status.name === name);
  if (known?.allocatedResources && known.resources && resizeDecisionOf(pod, view)?.type !== 'fits')
    return {
      allocatedResources: { ...known.allocatedResources },
      resources: cloneJson<ResourceRequirements>(known.resources),
    };
  const { requests, limits } = resources;
  return { allocatedResources: { ...requests }, resources: cloneJson({ requests, ...(limits && { limits }) }) };
}

/** The container of the guest, whose probes are the guest's. */
const COMPUTE = 'compute';
const COMPUTE_NOT_READY = `containers with unready status: [${COMPUTE}]`;

const containerId = (pod: ReadonlyPod, name: string): string => `coracle://${pod.metadata.uid ?? ''}/${name}`;

function statusOf(
  pod: ReadonlyPod,
  view: LauncherView,
  { name, image = '' }: DeepReadonly<Container>,
  state: ContainerState,
): ContainerStatus {
  return {
    name,
    image,
    imageID: view.state === 'creating' ? '' : imageIdOf(view.imageIds, name, image),
    restartCount: 0,
    ready: state.running !== undefined && !(name === COMPUTE && view.state === 'running' && view.isReady === false),
    started: state.running !== undefined,
    state,
    lastState: {},
    ...(view.state !== 'creating' && { containerID: containerId(pod, name) }),
  };
}

function mainState(pod: ReadonlyPod, view: LauncherView, name: string): ContainerState {
  switch (view.state) {
    case 'creating':
      return view.container === undefined || view.container === name
        ? { waiting: { reason: view.reason, message: view.message } }
        : // Without a reason of its own, so that the column STATUS shows the one that counts.
          { waiting: {} };
    case 'running':
      return { running: { startedAt: formatTime(view.startedAt) } };
    case 'ended':
      return {
        terminated: {
          exitCode: view.result.exitCode,
          reason: view.result.phase === 'Succeeded' ? 'Completed' : 'Error',
          message: view.result.message,
          ...(view.startedAt !== undefined && { startedAt: formatTime(view.startedAt) }),
          finishedAt: formatTime(view.finishedAt),
          containerID: containerId(pod, name),
        },
      };
  }
}

/** A sidecar starts before the others and goes on beside them: it does not wait for their images. */
function sidecarState(pod: ReadonlyPod, view: LauncherView, name: string, stamp: string): ContainerState {
  const startedAt = pod.status?.startTime ?? stamp;
  if (view.state !== 'ended') return { running: { startedAt } };
  const finishedAt = formatTime(view.finishedAt);
  return {
    terminated: { exitCode: 0, reason: 'Completed', startedAt, finishedAt, containerID: containerId(pod, name) },
  };
}

const initState = (pod: ReadonlyPod, view: LauncherView): ContainerState =>
  view.state === 'creating'
    ? { waiting: { reason: 'PodInitializing' } }
    : { terminated: { exitCode: 0, reason: 'Completed', containerID: containerId(pod, 'init') } };

const sizesOf = (pod: ReadonlyPod): unknown => pod.spec.containers.map(({ resources }) => resources ?? null);

const imageIdOf = (ids: Readonly<Record<string, string>>, name: string, image: string): string =>
  (Object.hasOwn(ids, name) ? ids[name] : undefined) ?? image;

/**
 * True when writing `wanted` would change what the Pod says. The order of keys does not count, nor does a null: a server
 * written in Go gives times that are not set as null (`startedAt`, `lastProbeTime`).
 */
export function podStatusDiffers(pod: ReadonlyPod, wanted: PodStatus): boolean {
  const before = pod.status as Readonly<Record<string, unknown>> | undefined;
  return Object.entries(wanted).some(([key, value]) => !deepEqual(withoutNulls(before?.[key]), withoutNulls(value)));
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNulls);
  const entries = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(entries.map(([key, field]) => [key, withoutNulls(field)]));
}
