/** The settings of the KubeVirt object as the rules read them: every knob has a value. */

import type { EvictionStrategy, QuantityValue, ReadonlyKubeVirt } from '../../kinds/kubevirt.ts';
import { type FeatureGate, isGateEnabled } from './feature-gates.ts';

export const ARCHITECTURES = ['amd64', 'arm64', 's390x'] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Upstream's default: ten vCPUs share a core. */
const CPU_ALLOCATION_RATIO = 10;

/** How many vCPUs share a core. */
export const cpuAllocationRatioOf = (kubevirt: ReadonlyKubeVirt | undefined): number =>
  kubevirt?.spec?.configuration?.developerConfiguration?.cpuAllocationRatio || CPU_ALLOCATION_RATIO;

/** How large the cluster makes launcher Pods. */
export interface PodSizing {
  /** How many vCPUs share a core. */
  readonly cpuAllocationRatio: number;
  /** Guest memory in percent of what its Pod asks for it; 100 when absent. */
  readonly memoryOvercommit?: number;
  /** Factor on what QEMU and its launcher need beyond the guest's memory; 1 when absent. */
  readonly overheadRatio?: number;
}

/** Reads it from the KubeVirt object. A factor that is no number counts as none: admission refuses it. */
export function podSizingOf(kubevirt: ReadonlyKubeVirt | undefined): PodSizing {
  const { developerConfiguration, additionalGuestMemoryOverheadRatio } = kubevirt?.spec?.configuration ?? {};
  const factor = Number(additionalGuestMemoryOverheadRatio || 1);
  return {
    cpuAllocationRatio: cpuAllocationRatioOf(kubevirt),
    memoryOvercommit: developerConfiguration?.memoryOvercommit || 100,
    overheadRatio: Number.isFinite(factor) ? factor : 1,
  };
}

export interface ClusterConfig {
  readonly defaultArchitecture: string;
  machineType(architecture: string): string;
  /** Patterns of the machine types a guest may ask for. */
  emulatedMachines(architecture: string): readonly string[];
  /** '' when the cluster names none. */
  readonly cpuModel: string;
  readonly cpuRequest: QuantityValue;
  readonly evictionStrategy: EvictionStrategy;
  /** `bridge`, `masquerade`, or whatever was written. */
  readonly defaultNetworkInterface: string;
  readonly permitBridgeInterfaceOnPodNetwork: boolean;
  readonly networkBindings: ReadonlySet<string>;
  readonly liveUpdate: boolean;
  readonly maxHotplugRatio: number;
  /** 0 when the cluster sets no maximum. */
  readonly maxCpuSockets: number;
  readonly maxGuest: QuantityValue | undefined;
  readonly persistentReservation: boolean;
  /** The taint that means that a node is drained. */
  readonly nodeDrainTaintKey: string;
  /** How a virtual machine keeps its instance type and preference. */
  readonly instancetypeReferencePolicy: 'reference' | 'expand' | 'expandAll';
  /** Whether the common instance types and preferences are put into the cluster. */
  readonly commonInstancetypes: boolean;
  /** What becomes of a machine that brings a firmware UUID which another has. */
  readonly duplicateUuids: DuplicateUuids;
  isEnabled(gate: FeatureGate): boolean;
}

/** Annotation of the KubeVirt object: `Warn` (default) or `Refuse`. */
export const DUPLICATE_UUIDS_ANNOTATION = 'coracle.dev/duplicate-firmware-uuids';
export const DUPLICATE_UUIDS = ['Warn', 'Refuse'] as const;
export type DuplicateUuids = (typeof DUPLICATE_UUIDS)[number];

/** Image that launcher Pods name, for the record: nothing pulls it. A guest whose Pod names another is outdated. */
export const launcherImageOf = (kubeVirt: ReadonlyKubeVirt | undefined): string =>
  `${kubeVirt?.spec?.imageRegistry || 'coracle'}/virt-launcher:${kubeVirt?.spec?.imageTag || 'builtin'}`;

export const DEFAULT_CPU_REQUEST = '100m';

const MACHINE_TYPE: Record<Architecture, string> = { amd64: 'q35', arm64: 'virt', s390x: 's390-ccw-virtio' };
const EMULATED_MACHINES: Record<Architecture, readonly string[]> = {
  amd64: ['q35*', 'pc-q35*'],
  arm64: ['virt*'],
  s390x: ['s390-ccw-virtio*'],
};

const isArchitecture = (text: string): text is Architecture => (ARCHITECTURES as readonly string[]).includes(text);

/** Reads the settings; without a KubeVirt object they are the defaults. */
export function clusterConfigOf(kubeVirt: ReadonlyKubeVirt | undefined): ClusterConfig {
  const configuration = kubeVirt?.spec?.configuration ?? {};
  const { developerConfiguration, liveUpdateConfiguration, architectureConfiguration, network } = configuration;
  const gates = {
    enabled: developerConfiguration?.featureGates ?? [],
    disabled: developerConfiguration?.disabledFeatureGates ?? [],
  };
  const ofArchitecture = (architecture: string) =>
    isArchitecture(architecture) ? architectureConfiguration?.[architecture] : undefined;
  const builtinArchitecture = (architecture: string): Architecture =>
    isArchitecture(architecture) ? architecture : 'amd64';
  return {
    defaultArchitecture:
      architectureConfiguration?.defaultArchitecture || kubeVirt?.status?.defaultArchitecture || 'amd64',
    machineType: (architecture) =>
      ofArchitecture(architecture)?.machineType ||
      configuration.machineType ||
      MACHINE_TYPE[builtinArchitecture(architecture)],
    emulatedMachines: (architecture) =>
      ofArchitecture(architecture)?.emulatedMachines ??
      configuration.emulatedMachines ??
      EMULATED_MACHINES[builtinArchitecture(architecture)],
    duplicateUuids: kubeVirt?.metadata?.annotations?.[DUPLICATE_UUIDS_ANNOTATION] === 'Refuse' ? 'Refuse' : 'Warn',
    cpuModel: configuration.cpuModel ?? '',
    cpuRequest: configuration.cpuRequest ?? DEFAULT_CPU_REQUEST,
    evictionStrategy: configuration.evictionStrategy ?? 'None',
    defaultNetworkInterface: network?.defaultNetworkInterface || 'bridge',
    permitBridgeInterfaceOnPodNetwork: network?.permitBridgeInterfaceOnPodNetwork ?? true,
    networkBindings: new Set(Object.keys(network?.binding ?? {})),
    liveUpdate: (configuration.vmRolloutStrategy ?? 'LiveUpdate') === 'LiveUpdate',
    maxHotplugRatio: liveUpdateConfiguration?.maxHotplugRatio || 4,
    maxCpuSockets: liveUpdateConfiguration?.maxCpuSockets ?? 0,
    maxGuest: liveUpdateConfiguration?.maxGuest,
    persistentReservation: configuration.persistentReservationConfiguration?.enabled ?? false,
    nodeDrainTaintKey: configuration.migrations?.nodeDrainTaintKey || 'kubevirt.io/drain',
    instancetypeReferencePolicy: configuration.instancetype?.referencePolicy ?? 'reference',
    commonInstancetypes: configuration.commonInstancetypesDeployment?.enabled ?? true,
    isEnabled: (gate) => isGateEnabled(gate, gates),
  };
}
