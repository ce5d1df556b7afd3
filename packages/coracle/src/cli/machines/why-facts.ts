/** Why a machine does not run, in plain words, with the next step: from what the cluster shows of it. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isDeleting, isFinal } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { EVENTS, NODES } from '@coracle/apimachinery/types/resource-types';
import type { Event, Node, ReadonlyNode } from '@coracle/apimachinery/types/types';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import { DATA_VOLUMES, type DataVolume, type ReadonlyDataVolume } from '@coracle/kubevirt/kinds/kinds';
import type { FoundMachine } from './find-machine.ts';
import { launcherPod } from './launcher-pod.ts';

/** A machine with what was said of it, and the nodes there are. */
export interface MachineFacts extends FoundMachine {
  /** Warnings about the machine, its instance and its Pods, the newest first; at most ten. */
  readonly warnings: readonly DeepReadonly<Event>[];
  /** What its Pod waits for, while an image is fetched. */
  readonly pulling: string | undefined;
  /** Of a machine without an instance: its disks that DataVolumes fill. */
  readonly dataVolumes: readonly ReadonlyDataVolume[];
  /** Undefined where the caller may not list them. */
  readonly nodes: readonly ReadonlyNode[] | undefined;
}

/** What a machine is, and why. */
export interface Why {
  /** `runs`, `is stopped`, `waits for a node`. */
  readonly state: string;
  readonly runs: boolean;
  /** In the words of whoever decided it; absent where the state says all. */
  readonly reason?: string;
  /** What to do. */
  readonly next?: string;
}

const MOST_WARNINGS = 10;
/** Events that are read of one object. */
const MOST_EVENTS = 500;
const MOST_DISKS = 16;

type Condition = {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
};

/** Reads what was said about a machine, its disks that are being filled, and the nodes. What may not be read is left out. */
export async function readMachineFacts(
  client: Client,
  found: FoundMachine,
  signal: AbortSignal,
): Promise<MachineFacts> {
  const { namespace, name } = found.key;
  const orNone = (error: unknown): undefined => {
    if (isNotFound(error) || (error instanceof ApiError && error.code === 403)) return undefined;
    throw error;
  };
  const eventsOf = async (object: string): Promise<readonly Event[]> => {
    const options = { namespace, fieldSelector: `involvedObject.name=${object}`, limit: MOST_EVENTS, signal };
    return (await client.list<Event>(EVENTS, options).catch(orNone))?.items ?? [];
  };
  const volumes = found.vmi ? [] : (found.vm?.spec.template.spec?.volumes ?? []);
  const filled = volumes.flatMap(({ dataVolume }) => (dataVolume?.name ? [dataVolume.name] : [])).slice(0, MOST_DISKS);
  const [own, ofPod, nodes, ...dataVolumes] = await Promise.all([
    eventsOf(name),
    launcherPod(client, found, signal)
      .catch(orNone)
      .then((pod) => (pod?.metadata.name === undefined ? [] : eventsOf(pod.metadata.name))),
    client.list<Node>(NODES, { signal }).catch(orNone),
    ...filled.map((disk) => client.get<DataVolume>(DATA_VOLUMES, { namespace, name: disk }, { signal }).catch(orNone)),
  ]);
  // What was said of an earlier instance does not explain this one.
  const since = (hasEnded(found.vmi) ? found.vm : (found.vmi ?? found.vm))?.metadata.creationTimestamp ?? '';
  const events = [...own, ...ofPod]
    .filter(({ involvedObject }) => /^(Pod|VirtualMachine)/.test(involvedObject?.kind ?? ''))
    .filter((event) => timeOf(event) >= since)
    .sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1));
  const { reason, message } = ofPod.toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))[0] ?? {};
  return {
    ...found,
    warnings: events.filter(({ type }) => type === 'Warning').slice(0, MOST_WARNINGS),
    pulling: reason === 'Pulling' ? message : undefined,
    dataVolumes: dataVolumes.flatMap((disk) => (disk ? [disk] : [])),
    nodes: nodes?.items,
  };
}

const timeOf = (event: DeepReadonly<Event>): string =>
  (event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '').toString();

const strategyOf = ({ vm }: FoundMachine): string =>
  vm?.spec.runStrategy ?? (vm?.spec.running === true ? 'Always' : 'Halted');

/** Strategies by which a machine without an instance gets one. */
const ALWAYS: ReadonlySet<string> = new Set(['Always', 'RerunOnFailure']);

/** Says it. The first rule that fits, from what decides most to what decides least. */
export function whyOf(facts: MachineFacts): Why {
  const { vm, vmi, key } = facts;
  const here = `${key.name} -n ${key.namespace}`;
  if (vm?.metadata.deletionTimestamp !== undefined)
    return { state: 'is being deleted', runs: false, ...heldBy(vm.metadata.finalizers) };
  const phase = vmi?.status?.phase;
  const over = isFinal(phase);
  if (vmi && !over) return ofInstance(facts, vmi, here);
  const failure = conditionOf(vm, 'Failure');
  if (failure?.status === 'True')
    return {
      state: 'cannot be started',
      runs: false,
      reason: `${failure.reason ?? 'Failure'}: ${failure.message ?? ''}`,
      next: NEXT_OF_FAILURE[failure.reason ?? ''] ?? `what it is made of: kubectl get vm ${here} -o yaml`,
    };
  const disk = facts.dataVolumes.find(({ status }) => status?.phase !== 'Succeeded');
  if (disk && strategyOf(facts) !== 'Halted') return ofDisk(disk, key.namespace);
  const failed = vm?.status?.startFailure;
  if (failed?.consecutiveFailCount)
    return {
      state: `ended ${failed.consecutiveFailCount} times before it ran`,
      runs: false,
      reason: facts.warnings[0]?.message ?? 'nothing was said of it',
      next: `it is tried again at ${failed.retryAfterTimestamp ?? 'once'}; what the guest said: coracle logs ${here}`,
    };
  if (!over && ALWAYS.has(strategyOf(facts)))
    return { state: 'is starting', runs: false, reason: `it is ${vm?.status?.printableStatus ?? 'new'}` };
  const ended =
    phase === 'Failed' ? 'its guest failed' : phase === 'Succeeded' ? 'its guest shut itself down' : undefined;
  return {
    state: 'is stopped',
    runs: false,
    reason: [...(ended ? [ended] : []), `its run strategy is ${strategyOf(facts)}`].join('; '),
    next: `coracle start ${here}`,
  };
}

/** Of a machine that waits until a disk is filled. */
function ofDisk({ metadata, status }: ReadonlyDataVolume, namespace: string): Why {
  const running = conditionOf({ status }, 'Running');
  const done = status?.progress && status.progress !== 'N/A' ? ` ${status.progress}` : '';
  const more = running?.message ? `: ${running.message}` : '';
  return {
    state: 'waits for its disk',
    runs: false,
    reason: `${metadata.name} is ${status?.phase ?? 'Pending'}${done}${more}`,
    next: `kubectl describe dv ${metadata.name} -n ${namespace}`,
  };
}

/** Why no node takes a Pod, without what the scheduler adds on preemption: that others could not make room either. */
const placementText = (message: string): string =>
  message.replace(/ no new claims to deallocate, preemption: .*$/s, '');

/** Of an instance that is there and not over. */
function ofInstance(facts: MachineFacts, vmi: VirtualMachineInstance, here: string): Why {
  const { phase } = vmi.status ?? {};
  if (isDeleting(vmi))
    return {
      state: 'is being stopped',
      runs: false,
      reason: `its guest has ${vmi.spec.terminationGracePeriodSeconds ?? 30} s to shut down`,
      next: `to end it at once: coracle stop ${here} --force`,
    };
  if (phase === 'Running') return ofRunning(facts, vmi, here);
  const waiting = conditionOf(vmi, 'Synchronized');
  if (waiting?.status === 'False' && waiting.reason !== undefined)
    return {
      state: 'waits',
      runs: false,
      reason: `${waiting.reason}: ${waiting.message ?? ''}`,
      ...nextOf(waiting, facts.key.namespace),
    };
  const placed = conditionOf(vmi, 'PodScheduled');
  if (placed?.status === 'False') {
    const none = facts.nodes?.length === 0;
    return {
      state: 'waits for a node',
      runs: false,
      reason: none ? 'there is no node' : placementText(placed.message ?? placed.reason ?? 'none takes it'),
      next: none
        ? 'start one: coracle up --nodes 1, or coracle node join'
        : /insufficient (memory|cpu)/i.test(placed.message ?? '')
          ? 'stop another machine, or give this one less; what nodes have: kubectl describe nodes'
          : 'what nodes offer: kubectl describe nodes',
    };
  }
  const reason = facts.pulling ?? facts.warnings[0]?.message;
  return { state: `is starting (${phase || 'Pending'})`, runs: false, ...(reason && { reason }) };
}

function ofRunning({ warnings }: MachineFacts, vmi: VirtualMachineInstance, here: string): Why {
  const paused = conditionOf(vmi, 'Paused');
  if (paused?.status === 'True')
    return conditionOf(vmi, 'DiskFull')?.status === 'True'
      ? {
          state: 'is paused',
          runs: false,
          reason: conditionOf(vmi, 'DiskFull')?.message ?? 'the disk of its node is full',
          next: 'free space on the node; it then resumes by itself',
        }
      : {
          state: 'is paused',
          runs: false,
          reason: paused.message ?? paused.reason ?? 'a user paused it',
          next: `coracle unpause ${here}`,
        };
  const ready = conditionOf(vmi, 'Ready');
  if (ready?.status === 'False') {
    const probed = warnings.find(({ reason, message }) => reason === 'Unhealthy' && message?.startsWith('Readiness'));
    const asked = ready.reason === 'ContainersNotReady' ? probed?.message : undefined;
    return {
      state: 'runs, but is not ready',
      runs: true,
      reason: asked ?? `${ready.reason ?? 'NotReady'}: ${ready.message ?? 'nothing more is said'}`,
      next: `what the guest said: coracle logs ${here}`,
    };
  }
  const credentials = conditionOf(vmi, 'AccessCredentialsSynchronized');
  if (credentials?.status === 'False')
    return {
      state: 'runs, without its access credentials',
      runs: true,
      reason: `${credentials.reason ?? 'SyncFailed'}: ${credentials.message ?? 'nothing more is said'}`,
      ...(credentials.reason === 'AgentNotConnected' && { next: 'install and start qemu-guest-agent in the guest' }),
    };
  const ports = conditionOf(vmi, 'PortsForwarded');
  if (ports?.status === 'False')
    return {
      state: 'runs, without ports of its host that it asks for',
      runs: true,
      reason: ports.message ?? ports.reason ?? 'nothing more is said',
      next: 'a node gives ports by number where it is started with --allow-host-ports: coracle down, coracle up --allow-host-ports',
    };
  const waiting = vmi.status?.volumeStatus?.find(
    ({ hotplugVolume, phase }) => hotplugVolume && (phase === 'Pending' || phase === 'Bound'),
  );
  if (waiting)
    return {
      state: `runs, without volume ${waiting.name}`,
      runs: true,
      reason: waiting.message ?? waiting.reason ?? `it is ${waiting.phase}`,
      next: `claims there are: kubectl get pvc -n ${vmi.metadata.namespace}; to take it out again: virtctl removevolume`,
    };
  return { state: 'runs', runs: true, ...(vmi.status?.nodeName && { reason: `on node ${vmi.status.nodeName}` }) };
}

const heldBy = (finalizers: readonly string[] | undefined): Pick<Why, 'reason'> =>
  finalizers?.length ? { reason: `held by ${finalizers.join(', ')}` } : {};

const NEXT_OF_FAILURE: Readonly<Record<string, string>> = {
  FailedFindInstancetype: 'those there are: kubectl get vmclusterinstancetype',
  FailedFindPreference: 'those there are: kubectl get vmclusterpreference',
};

function nextOf({ reason, message = '' }: Condition, namespace: string): Pick<Why, 'next'> {
  switch (reason) {
    case 'ErrImagePull':
    case 'ImagePullBackOff':
      return {
        next: message.includes('localhost/')
          ? 'images that are here: coracle image list; to add one: coracle image import NAME FILE'
          : 'check the reference, and whether this host can reach its registry',
      };
    case 'FailedPvcNotFound':
      return { next: `claims there are: kubectl get pvc -n ${namespace}` };
    default:
      return {};
  }
}

/** State, reason and next step in one line, for messages about what a machine that does not run cannot do. */
export async function whyNotRunning(client: Client, found: FoundMachine, signal: AbortSignal): Promise<string> {
  const { state, reason, next } = whyOf(await readMachineFacts(client, found, signal));
  return `${state}${reason ? `: ${reason}` : ''}${next ? ` (${next})` : ''}`;
}
