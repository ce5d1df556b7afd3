/**
 * A node without a hypervisor: it answers for its Pods and instances as an agent does, with the agent's own rights, and
 * plays both ends of a live migration. Guests are words in a status.
 */

import { isDeepStrictEqual } from 'node:util';
import { type DeepReadonly, formatTime, keyOf } from '../../packages/apimachinery/src/meta/object.ts';
import { hasEnded, isDeleting } from '../../packages/apimachinery/src/meta/object-state.ts';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Node, Pod } from '../../packages/apimachinery/src/types/types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { createInformer } from '../../packages/client/src/informer/informer.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { currentPod } from '../../packages/kubevirt/src/rules/launcher/launcher-pods.ts';
import { podInterfaceName, segmentCards } from '../../packages/kubevirt/src/rules/launcher/network-attachments.ts';
import {
  diskChanges,
  volumeDetaching,
  volumeReady,
  volumeUnmounted,
} from '../../packages/kubevirt/src/rules/live-update/disk-changes.ts';
import {
  hasPendingCondition,
  isMoving,
  pendingChanges,
} from '../../packages/kubevirt/src/rules/live-update/pending-changes.ts';
import {
  coversInstance,
  isResizing,
  type PodResizeDecision,
} from '../../packages/kubevirt/src/rules/live-update/pod-resize.ts';
import type { PlannedDisk } from '../../packages/kubevirt/src/rules/machine/machine-plan.ts';
import { isHotpluggable } from '../../packages/kubevirt/src/rules/machine/plug-room.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { partly } from './partly.ts';

export interface FakeNodeOptions {
  readonly name: string;
  /** Acts as the node (`system:node:NAME`). */
  readonly client: Client;
  /** Registers it. */
  readonly admin: Client;
  readonly signal: AbortSignal;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface FakeNode {
  readonly name: string;
  /** What this node leaves undone until it is taken out: as an agent that is slow, or stuck. */
  readonly holds: Set<'target-pod' | 'prepare-target' | 'start' | 'finish' | 'plug' | 'unplug' | 'end'>;
  /** Why migrations that leave from here fail; undefined lets them succeed. */
  failure: string | undefined;
  /** How long a guest takes to get here, from when its source began; milliseconds. */
  transferMs: number;
  /** What it says to a Pod whose size was changed. */
  resize: PodResizeDecision;
  /** What new guests report as LiveMigratable. */
  migratable: boolean;
  /** Looks at everything again, after `holds` changed. */
  nudge(): void;
}

type State = NonNullable<NonNullable<VirtualMachineInstance['status']>['migrationState']>;
type ReadonlyPod = DeepReadonly<Pod>;
type ReadonlyVmi = DeepReadonly<VirtualMachineInstance>;

/** The size of a container as its status shows it. */
const given = (pod: ReadonlyPod, container: string): object => {
  const resources = pod.spec.containers.find(({ name }) => name === container)?.resources;
  return resources ? { allocatedResources: resources.requests, resources } : {};
};

const now = (): string => formatTime(Date.now());

/** Registers the node and plays its agent until the signal aborts. */
export async function startFakeNode({ name, client, admin, signal, labels }: FakeNodeOptions): Promise<FakeNode> {
  await admin.create(NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/arch': 'amd64',
        'kubevirt.io/schedulable': 'true',
        'machine-type.node.kubevirt.io/q35': 'true',
        ...labels,
      },
    },
  } as Node);
  const amounts = {
    ...{ cpu: '64', memory: '256Gi', pods: '500', 'ephemeral-storage': '1Ti' },
    'devices.kubevirt.io/tun': '1k',
  };
  const status = {
    allocatable: amounts,
    capacity: amounts,
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Fake',
        message: '',
        lastHeartbeatTime: now(),
        lastTransitionTime: now(),
      },
    ],
  };
  await admin.patch(NODES, { namespace: '', name }, { type: 'merge', body: { status } }, { subresource: 'status' });
  // No node controller watches it here: a new node counts as not ready until somebody says otherwise.
  await admin.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { taints: null } } });

  const pods = createInformer(client, PODS, { fieldSelector: `spec.nodeName=${name}` });
  // An agent watches those of its own node by their labels; this one only plays.
  const vmis = createInformer(admin, VIRTUAL_MACHINE_INSTANCES);
  const node: FakeNode = {
    name,
    holds: new Set(),
    failure: undefined,
    transferMs: 0,
    resize: { type: 'fits' },
    migratable: true,
    nudge: () => poke(),
  };

  const patchPod = (pod: ReadonlyPod, body: object): Promise<unknown> =>
    client.patch(PODS, keyOf(pod as Pod), { type: 'merge', body: { status: body } }, { subresource: 'status' });
  /** Holds only if nobody wrote in between, as an agent's writes do. */
  const patchVmi = (vmi: ReadonlyVmi, body: object): Promise<unknown> =>
    client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      keyOf(vmi as VirtualMachineInstance),
      {
        type: 'merge',
        body: { metadata: { uid: vmi.metadata.uid, resourceVersion: vmi.metadata.resourceVersion }, status: body },
      },
      { subresource: 'status' },
    );
  const instanceOf = (pod: ReadonlyPod): ReadonlyVmi | undefined => {
    const owner = pod.metadata.ownerReferences?.find(({ kind }) => kind === 'VirtualMachineInstance');
    const vmi = owner && vmis.get({ namespace: pod.metadata.namespace ?? '', name: owner.name });
    return vmi?.metadata.uid === owner?.uid ? vmi : undefined;
  };

  const playPod = async (pod: ReadonlyPod): Promise<void> => {
    const vmi = instanceOf(pod);
    const isHome = vmi?.status?.nodeName === name || vmi?.status?.nodeName === undefined;
    const isTarget = pod.metadata.labels?.['kubevirt.io/migrationJobUID'] !== undefined && !isHome;
    if (isDeleting(pod)) {
      if (node.holds.has('end')) return;
      if (vmi && isHome && vmi.status?.phase === 'Running') await patchVmi(vmi, { phase: 'Succeeded' });
      await client.delete(PODS, keyOf(pod as Pod), { gracePeriodSeconds: 0 });
      return;
    }
    if (hasEnded(pod)) return;
    // The guest has left this node: its launcher is done.
    const state = vmi?.status?.migrationState;
    if (vmi && !isHome && state?.sourceNode === name && state.completed && state.sourcePod === pod.metadata.name) {
      await patchPod(pod, { phase: 'Succeeded', reason: 'Completed' });
      return;
    }
    if (isTarget && node.holds.has('target-pod')) return;
    if (pod.status?.phase === 'Running' && isResizing(pod)) {
      const { resize } = node;
      const others = (pod.status.conditions ?? []).filter(({ type }) => type !== 'PodResizePending');
      const { type: _, ...why } = resize;
      const condition = { type: 'PodResizePending', status: 'True', lastTransitionTime: now(), ...why };
      const isReported = pod.status.conditions?.some(({ type }) => type === condition.type);
      if (resize.type === 'wait' && !isReported) await patchPod(pod, { conditions: [...others, condition] });
      else if (resize.type === 'fits')
        await patchPod(pod, {
          conditions: others,
          containerStatuses: (pod.status.containerStatuses ?? []).map((status) => ({
            ...status,
            ...given(pod, status.name),
          })),
        });
    }
    if (pod.status?.phase !== 'Running')
      await patchPod(pod, {
        phase: 'Running',
        startTime: now(),
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now() }],
        containerStatuses: pod.spec.containers.map(({ name: container, image }) => ({
          name: container,
          image,
          imageID: `${(image ?? '').replace(/[:@][^/]*$/, '')}@sha256:${'a'.repeat(64)}`,
          ready: true,
          restartCount: 0,
          state: { running: { startedAt: now() } },
          ...given(pod, container),
        })),
      });
  };

  const playGuest = async (vmi: ReadonlyVmi): Promise<void> => {
    if (vmi.status?.phase !== 'Scheduled' || vmi.status.nodeName !== name) return;
    const kept = (vmi.status.conditions ?? []).filter(({ type }) => type !== 'LiveMigratable');
    const migratable = {
      type: 'LiveMigratable',
      status: node.migratable ? 'True' : 'False',
      reason: 'Fake',
      lastTransitionTime: now(),
      lastProbeTime: null,
    };
    // By these a machine's controller knows that it did start: its next start is not put off.
    const stamp = { phase: 'Running', phaseTransitionTimestamp: now() };
    const phaseTransitionTimestamps = [...(vmi.status.phaseTransitionTimestamps ?? []), stamp];
    await patchVmi(vmi, { phase: 'Running', phaseTransitionTimestamps, conditions: [...kept, migratable] });
  };

  /** Gives a guest here what its instance is to have, once its Pod has been given that. */
  const playUpdate = async (vmi: ReadonlyVmi): Promise<void> => {
    const pending = pendingChanges(vmi);
    if (vmi.status?.phase !== 'Running' || vmi.status.nodeName !== name || isMoving(vmi)) return;
    if (!(pending.vcpus || pending.memory) || !hasPendingCondition(vmi) || node.holds.has('plug')) return;
    const pod = currentPod(
      vmi,
      pods.list(vmi.metadata.namespace).filter((one) => instanceOf(one)?.metadata.uid === vmi.metadata.uid),
    );
    if (!pod || !coversInstance(pod, vmi, { cpuAllocationRatio: 10 })) return;
    const { sockets, cores, threads } = vmi.spec.domain.cpu ?? {};
    const { guest } = vmi.spec.domain.memory ?? {};
    await patchVmi(vmi, {
      ...(pending.vcpus && { currentCPUTopology: { sockets, cores, threads } }),
      ...(pending.memory && { memory: { guestCurrent: guest, guestRequested: guest } }),
    });
  };

  /** Disks of its guests by the UID of the instance; what a plan of a machine says of them. */
  const plugged = new Map<string, Map<string, PlannedDisk>>();
  /** Plugs and unplugs as an agent does: what a Pod here holds comes, what the spec has no more goes. */
  const playDisks = async (vmi: ReadonlyVmi): Promise<void> => {
    if (vmi.status?.phase !== 'Running' || vmi.status.nodeName !== name || isMoving(vmi)) return;
    const hot = (vmi.spec.volumes ?? []).filter(isHotpluggable);
    const uid = vmi.metadata.uid ?? '';
    const disks = plugged.get(uid) ?? new Map<string, PlannedDisk>();
    if (hot.length === 0 && disks.size === 0 && !vmi.status.volumeStatus?.length) return;
    plugged.set(uid, disks);
    const { plug, unplug } = diskChanges(vmi, { disks: [...disks.values()] });
    if (!node.holds.has('plug'))
      for (const volume of plug)
        disks.set(
          volume,
          partly<PlannedDisk>({ name: volume, hasVolume: true, hotpluggable: true, target: `sd${disks.size}` }),
        );
    if (!node.holds.has('unplug')) for (const volume of unplug) disks.delete(volume);
    const before = vmi.status.volumeStatus ?? [];
    const volumeStatus = before.map((known) => {
      const disk = disks.get(known.name);
      const isWanted = hot.some((volume) => volume.name === known.name);
      if (disk) return { ...known, target: disk.target, ...(isWanted ? volumeReady : volumeDetaching)(known.name) };
      return known.phase === 'Detaching' && !isWanted ? { ...known, ...volumeUnmounted(known.name) } : known;
    });
    if (!isDeepStrictEqual(before, volumeStatus)) await patchVmi(vmi, { volumeStatus });
  };

  const cards = new Map<string, Set<string>>();
  /** The same with cards on networks beside that of Pods. */
  const playCards = async (vmi: ReadonlyVmi): Promise<void> => {
    if (vmi.status?.phase !== 'Running' || vmi.status.nodeName !== name || isMoving(vmi)) return;
    const uid = vmi.metadata.uid ?? '';
    const wanted = new Map(segmentCards(vmi).map(({ nic, segment }) => [nic.name, segment]));
    const here = cards.get(uid) ?? new Set<string>();
    if (wanted.size === 0 && here.size === 0) return;
    cards.set(uid, here);
    if (!node.holds.has('plug')) for (const one of wanted.keys()) here.add(one);
    if (!node.holds.has('unplug')) for (const one of here) if (!wanted.has(one)) here.delete(one);
    const first = { name: 'default', infoSource: 'domain', podInterfaceName: 'eth0' };
    const more = [...here].map((one) => ({
      name: one,
      infoSource: 'domain, multus-status',
      podInterfaceName: podInterfaceName(one),
    }));
    const interfaces = [first, ...more];
    if (!isDeepStrictEqual(vmi.status.interfaces ?? [], interfaces)) await patchVmi(vmi, { interfaces });
  };

  /** The end that sends. */
  const playSource = async (vmi: ReadonlyVmi, state: DeepReadonly<State>): Promise<void> => {
    if (vmi.status?.nodeName !== name) return;
    if (state.startTimestamp == null) {
      if (state.targetNodeAddress && !node.holds.has('start'))
        await patchVmi(vmi, { migrationState: { startTimestamp: now(), mode: 'PreCopy' } });
      return;
    }
    if (state.abortRequested)
      await patchVmi(vmi, {
        migrationState: {
          failed: true,
          completed: true,
          abortStatus: 'Succeeded',
          endTimestamp: now(),
          failureReason: 'Live migration was canceled',
        },
      });
    else if (node.failure !== undefined)
      await patchVmi(vmi, {
        migrationState: { failed: true, completed: true, endTimestamp: now(), failureReason: node.failure },
      });
  };

  /** When transfers to this node began, by migration; as many as a test makes. */
  const begun = new Map<string, number>();
  /** The end that receives: it takes the guest over by one write. */
  const playTarget = async (vmi: ReadonlyVmi, state: DeepReadonly<State>): Promise<void> => {
    const pod = pods.get({ namespace: vmi.metadata.namespace ?? '', name: state.targetPod ?? '' });
    if (!pod || hasEnded(pod) || isDeleting(pod)) return;
    if (vmi.metadata.labels?.['kubevirt.io/migrationTargetNodeName'] !== name) return;
    if (!state.targetNodeAddress) {
      if (node.holds.has('prepare-target')) return;
      await patchVmi(vmi, {
        migrationState: {
          targetNodeAddress: '127.0.0.1',
          targetDirectMigrationNodePorts: { '40001': 0, '40002': 49152 },
          targetNodeDomainDetected: true,
          targetNodeDomainReadyTimestamp: now(),
        },
      });
      return;
    }
    if (state.startTimestamp == null || state.abortRequested || node.holds.has('finish')) return;
    const began = begun.get(state.migrationUid ?? '');
    if (node.transferMs > 0 && began === undefined) {
      begun.set(state.migrationUid ?? '', systemClock.monotonic());
      setTimeout(poke, node.transferMs);
    } else if (node.transferMs === 0 || systemClock.monotonic() - began! >= node.transferMs)
      await patchVmi(vmi, {
        nodeName: name,
        evacuationNodeName: null,
        migrationState: { completed: true, endTimestamp: now() },
      });
  };

  const play = async (): Promise<void> => {
    for (const pod of pods.list()) await playPod(pod).catch(ignoreRaces);
    for (const vmi of vmis.list()) {
      await playGuest(vmi).catch(ignoreRaces);
      await playUpdate(vmi).catch(ignoreRaces);
      await playDisks(vmi).catch(ignoreRaces);
      await playCards(vmi).catch(ignoreRaces);
      const state = vmi.status?.migrationState;
      if (!state || state.completed || state.failed) continue;
      if (state.sourceNode === name) await playSource(vmi, state).catch(ignoreRaces);
      if (state.targetNode === name) await playTarget(vmi, state).catch(ignoreRaces);
    }
  };
  const ignoreRaces = (error: unknown): void => {
    if (!(error instanceof ApiError) || (error.code !== 409 && error.code !== 404)) throw error;
  };

  let wanted = false;
  let wake = (): void => {};
  const poke = (): void => {
    wanted = true;
    wake();
  };
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      if (!wanted)
        await new Promise<void>((resolve) => {
          wake = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
      wanted = false;
      if (!signal.aborted) await play();
    }
  };
  pods.onChange(poke);
  vmis.onChange(poke);
  const stopped = Promise.all([pods.start(signal), vmis.start(signal), loop()]);
  stopped.catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  await Promise.all([pods.synced(signal), vmis.synced(signal)]);
  return node;
}
