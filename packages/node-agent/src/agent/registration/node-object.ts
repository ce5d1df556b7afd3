/** The Node this agent registers: pure. */

import { formatTime } from '@coracle/apimachinery/meta/object';
import { formatQuantity, quantityFromBytes } from '@coracle/apimachinery/quantity/quantity';
import type { Node, NodeStatus } from '@coracle/apimachinery/types/types';
import { HELD_CLAIMS_ANNOTATION } from '@coracle/cluster-rules/claims/held-claims';
import { TPM_LABEL } from '@coracle/cluster-rules/placement/node-labels';
import {
  CPU_FEATURE_PREFIX,
  CPU_MODEL_PREFIX,
  HYPERV_OF_NODE,
  HYPERV_PREFIX,
  MACHINE_TYPE_PREFIX,
} from '@coracle/kubevirt/rules/launcher/node-selector';
import { type DiskSpace, diskFloor, hasDiskPressure } from '@coracle/kubevirt/rules/machine/disk-room';
import type { NodeFacts } from '@coracle/kubevirt/rules/machine/machine-plan';

export interface NodeDescription {
  readonly name: string;
  readonly facts: NodeFacts;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Of the file system that guests' disks lie on; this node's share. */
  readonly storageBytes: number;
  /** That file system, whole; absent where nobody measured. */
  readonly disk?: DiskSpace & { readonly directory: string };
  /** Nodes of this host that divide it between them, and what it keeps for itself too; 1 when absent. */
  readonly share?: number;
  readonly address: string;
  /** Where virt-api reaches the agent; 0 when only in process. */
  readonly port: number;
  readonly servingCa?: string;
  /** Of the agent that serves it. */
  readonly agentId?: string;
  /** Where its switch listens for other nodes, `HOST:PORT`. */
  readonly podNetwork?: string;
  /** Claims whose content lies in files of this host, as `formatHeldClaims` writes them. */
  readonly heldClaims?: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Processor models that are not offered, whatever QEMU knows. */
  readonly obsoleteCpuModels: ReadonlySet<string>;
  readonly bootId: string;
  readonly machineId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  readonly version: string;
}

/**
 * What each of `share` nodes of a host has: memory and disk are divided, processors are not. Guests get time of them by
 * what they request, and a guest with as many processors as the host must find a node.
 */
export const shareOfHost = (
  host: { readonly cpus: number; readonly memoryBytes: number; readonly storageBytes: number },
  share: number,
): Pick<NodeDescription, 'cpus' | 'memoryBytes' | 'storageBytes' | 'share'> => ({
  cpus: host.cpus,
  memoryBytes: Math.floor(host.memoryBytes / share),
  storageBytes: Math.floor(host.storageBytes / share),
  share,
});

/** Which agent serves the node (`agent-id.ts`). */
export const AGENT_ID_ANNOTATION = 'coracle.dev/agent-id';
/** Host and port where other nodes' switches find the node's. */
export const POD_NETWORK_ANNOTATION = 'coracle.dev/pod-network';
export const SERVING_CA_ANNOTATION = 'coracle.dev/serving-ca';
/** Pods of a node, as a kubelet's default. */
const MAX_PODS = 110;
/** Device plug-ins of KubeVirt offer each device this often. */
const DEVICE_SLOTS = '1k';
/** The part of a label's key behind the slash. */
const LABEL_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
/** Never given to guests: the host itself needs some. */
const RESERVED_MEMORY = 256 * 1024 * 1024;

/** Labels of these say what the node offers; they are the agent's alone. */
const OFFERS = [
  MACHINE_TYPE_PREFIX,
  CPU_MODEL_PREFIX,
  CPU_FEATURE_PREFIX,
  HYPERV_PREFIX,
  TPM_LABEL,
  'cpu-model-migration.node.kubevirt.io/',
  'host-model-cpu.node.kubevirt.io/',
  'host-model-required-features.node.kubevirt.io/',
];
const isOffer = (label: string): boolean => OFFERS.some((prefix) => label.startsWith(prefix));
/** As long as a Node carries it, what its labels say of what it offers is left as it is. */
const SKIP_LABELS_ANNOTATION = 'node-labeller.kubevirt.io/skip-node';

/** Canonical text, so that what the server stores equals what we computed. */
const inKibibytes = (bytes: number): string => formatQuantity(quantityFromBytes(Math.floor(bytes / 1024) * 1024));

/** Labels by which launcher Pods find this node. */
export function nodeLabels(node: NodeDescription): Record<string, string> {
  const { facts } = node;
  const labels: Record<string, string> = {
    'kubernetes.io/hostname': node.name,
    'kubernetes.io/arch': facts.architecture,
    'kubernetes.io/os': 'linux',
    'kubevirt.io/schedulable': 'true',
  };
  const can = (prefix: string, names: Iterable<string>): void => {
    for (const name of names) if (LABEL_NAME.test(name)) labels[prefix + name] = 'true';
  };
  can(
    MACHINE_TYPE_PREFIX,
    [...facts.machineTypes, ...Object.keys(facts.machineAliases)].filter((type) => type !== 'none'),
  );
  can(
    CPU_MODEL_PREFIX,
    facts.cpuModels.filter((model) => model !== 'max' && model !== 'host' && !node.obsoleteCpuModels.has(model)),
  );
  can(CPU_FEATURE_PREFIX, facts.offeredCpuFeatures ?? []);
  // Every kernel whose KVM this QEMU takes has them.
  if (facts.accelerator === 'kvm') can(HYPERV_PREFIX, HYPERV_OF_NODE);
  if (facts.tpm) labels[TPM_LABEL] = 'true';
  return { ...labels, ...node.labels };
}

/**
 * Labels that a Node is to get (text) and to lose (null): those of `wanted`, without those of an earlier QEMU or
 * configuration that say of it what is no longer so. Labels of others stay.
 */
export function labelChanges(
  { labels: have = {}, annotations = {} }: Node['metadata'],
  wanted: Readonly<Record<string, string>>,
): Record<string, string | null> {
  const isLeftAlone = (label: string): boolean => isOffer(label) && SKIP_LABELS_ANNOTATION in annotations;
  const stale = Object.keys(have).filter((label) => isOffer(label) && !Object.hasOwn(wanted, label));
  const behind = Object.entries(wanted).filter(([label, value]) => have[label] !== value);
  const changes = [...behind, ...stale.map((label) => [label, null] as const)];
  return Object.fromEntries(changes.filter(([label]) => !isLeftAlone(label)));
}

/** Stands on a Node that was made unschedulable because no agent serves it; the next one takes both away. */
export const UNSERVED_ANNOTATION = 'coracle.dev/unserved';

export function nodeObject(node: NodeDescription): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: node.name, labels: nodeLabels(node), annotations: nodeAnnotations(node) },
    spec: {},
  };
}

export const nodeAnnotations = (node: NodeDescription): Record<string, string> => ({
  ...(node.servingCa !== undefined && { [SERVING_CA_ANNOTATION]: node.servingCa }),
  ...(node.agentId !== undefined && { [AGENT_ID_ANNOTATION]: node.agentId }),
  ...(node.podNetwork !== undefined && { [POD_NETWORK_ANNOTATION]: node.podNetwork }),
  ...(node.heldClaims !== undefined && { [HELD_CLAIMS_ANNOTATION]: node.heldClaims }),
  // TCG promises no isolation (QEMU's own policy): an operator can keep tenants away by this.
  'coracle.dev/accelerator': node.facts.accelerator,
});

const PLENTY = { free: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY, directory: '' };

/** Which directory lies on the full disk, and what is missing there until the node takes guests again. */
function pressureMessage({ directory, free, total }: DiskSpace & { readonly directory: string }): string {
  const mib = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2)} MiB`;
  const missing = diskFloor(total).pressure * 1.25 - free;
  // In steps, or each heartbeat would be another message.
  const step = 64 * 1024 ** 2;
  return `the disk of ${directory} is nearly full: about ${mib(Math.ceil(missing / step) * step)} have to be freed there`;
}

/** The status, stamped with the time of this heartbeat; transitions keep the times of `before`. */
export function nodeStatus(node: NodeDescription, before: NodeStatus | undefined, now: number): NodeStatus {
  const stamp = formatTime(now);
  const { facts, share = 1, disk = PLENTY } = node;
  const hadPressure = before?.conditions?.some(({ type, status }) => type === 'DiskPressure' && status === 'True');
  const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: stamp,
    lastTransitionTime:
      before?.conditions?.find((c) => c.type === type && c.status === status)?.lastTransitionTime ?? stamp,
  });
  const amounts = (memory: number): Record<string, string> => ({
    cpu: String(node.cpus),
    memory: inKibibytes(memory),
    pods: String(MAX_PODS),
    'ephemeral-storage': inKibibytes(node.storageBytes),
    ...(facts.accelerator === 'kvm' && { 'devices.kubevirt.io/kvm': DEVICE_SLOTS }),
    'devices.kubevirt.io/tun': DEVICE_SLOTS,
    'devices.kubevirt.io/vhost-net': DEVICE_SLOTS,
  });
  return {
    capacity: amounts(node.memoryBytes),
    allocatable: {
      ...amounts(Math.max(node.memoryBytes - Math.floor(RESERVED_MEMORY / share), 0)),
      // The last of the disk is given to nobody: guests that write are paused before they take it.
      'ephemeral-storage': inKibibytes(
        Math.max(node.storageBytes - Math.floor(diskFloor(node.disk?.total ?? 0).pause / share), 0),
      ),
    },
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'the node has memory left'),
      hasDiskPressure(disk, hadPressure ?? false)
        ? condition('DiskPressure', 'True', 'KubeletHasDiskPressure', pressureMessage(disk))
        : condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'the node has disk space left'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'the node has process ids left'),
      condition('Ready', 'True', 'KubeletReady', 'the node agent is ready'),
    ],
    addresses: [
      { type: 'InternalIP', address: node.address },
      { type: 'Hostname', address: node.name },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: node.port } },
    nodeInfo: {
      machineID: node.machineId,
      systemUUID: node.machineId,
      bootID: node.bootId,
      kernelVersion: node.kernelVersion,
      osImage: node.osImage,
      containerRuntimeVersion: `qemu://${facts.qemuVersion}`,
      kubeletVersion: node.version,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: facts.architecture,
    },
  };
}
