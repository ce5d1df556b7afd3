/**
 * Hand-written shapes of the built-in kinds that our own controllers and the node agent read or write. They name the
 * fields in general use, not all of them: the full field tree is the descriptor table (`builtin-types.ts`), and the
 * server never prunes by these interfaces. RBAC, admission-review and API-registration shapes: `access-types.ts`.
 */

import type { KubeObject } from '../meta/object.ts';
import type {
  Condition,
  IntOrString,
  LabelSelector,
  LocalObjectReference,
  PersistentVolumeClaimSpec,
  ResourceList,
} from './basic-types.ts';
import type { NodeSelector, PodTemplateSpec, Taint } from './pod-types.ts';

export type * from './basic-types.ts';
export type * from './pod-types.ts';

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
  fieldPath?: string;
}

// Nodes.

export interface NodeAddress {
  type: 'Hostname' | 'InternalIP' | 'ExternalIP' | 'InternalDNS' | 'ExternalDNS';
  address: string;
}

export interface NodeCondition extends Condition {
  lastHeartbeatTime?: string;
}

export interface NodeSystemInfo {
  machineID: string;
  systemUUID: string;
  bootID: string;
  kernelVersion: string;
  osImage: string;
  containerRuntimeVersion: string;
  kubeletVersion: string;
  kubeProxyVersion: string;
  operatingSystem: string;
  architecture: string;
}

export interface NodeSpec {
  podCIDR?: string;
  podCIDRs?: string[];
  providerID?: string;
  unschedulable?: boolean;
  taints?: Taint[];
}

export interface NodeStatus {
  capacity?: ResourceList;
  allocatable?: ResourceList;
  conditions?: NodeCondition[];
  addresses?: NodeAddress[];
  daemonEndpoints?: { kubeletEndpoint?: { Port: number } };
  nodeInfo?: NodeSystemInfo;
  images?: { names?: string[]; sizeBytes?: number }[];
  volumesInUse?: string[];
  volumesAttached?: { name: string; devicePath: string }[];
}

export interface Node extends KubeObject {
  spec?: NodeSpec;
  status?: NodeStatus;
}

// Namespaces, configuration, identity.

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: 'Active' | 'Terminating'; conditions?: Condition[] };
}

export interface ConfigMap extends KubeObject {
  immutable?: boolean;
  data?: Record<string, string>;
  /** Base64. */
  binaryData?: Record<string, string>;
}

export interface Secret extends KubeObject {
  type?: string;
  immutable?: boolean;
  /** Base64. */
  data?: Record<string, string>;
  /** Write-only: folded into `data` by defaulting. */
  stringData?: Record<string, string>;
}

export interface ServiceAccount extends KubeObject {
  secrets?: ObjectReference[];
  imagePullSecrets?: LocalObjectReference[];
  automountServiceAccountToken?: boolean;
}

// Services.

export interface ServicePort {
  name?: string;
  protocol?: 'TCP' | 'UDP' | 'SCTP';
  appProtocol?: string;
  port: number;
  targetPort?: IntOrString;
  nodePort?: number;
}

export interface ServiceSpec {
  type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  selector?: Record<string, string>;
  ports?: ServicePort[];
  clusterIP?: string;
  clusterIPs?: string[];
  externalIPs?: string[];
  externalName?: string;
  sessionAffinity?: 'None' | 'ClientIP';
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  loadBalancerIP?: string;
  loadBalancerSourceRanges?: string[];
  externalTrafficPolicy?: 'Cluster' | 'Local';
  internalTrafficPolicy?: 'Cluster' | 'Local';
  healthCheckNodePort?: number;
  publishNotReadyAddresses?: boolean;
  ipFamilies?: ('IPv4' | 'IPv6')[];
  ipFamilyPolicy?: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack';
  allocateLoadBalancerNodePorts?: boolean;
  trafficDistribution?: 'PreferClose' | 'PreferSameZone' | 'PreferSameNode';
}

export interface Service extends KubeObject {
  spec?: ServiceSpec;
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] }; conditions?: Condition[] };
}

export interface EndpointAddress {
  ip: string;
  hostname?: string;
  nodeName?: string;
  targetRef?: ObjectReference;
}

export interface EndpointSubset {
  addresses?: EndpointAddress[];
  notReadyAddresses?: EndpointAddress[];
  ports?: { name?: string; port: number; protocol?: string; appProtocol?: string }[];
}

export interface Endpoints extends KubeObject {
  subsets?: EndpointSubset[];
}

export interface EndpointSlice extends KubeObject {
  addressType: 'IPv4' | 'IPv6' | 'FQDN';
  endpoints: {
    addresses: string[];
    conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean };
    hostname?: string;
    nodeName?: string;
    targetRef?: ObjectReference;
    zone?: string;
    hints?: { forZones?: { name: string }[]; forNodes?: { name: string }[] };
  }[];
  ports?: { name?: string; port?: number; protocol?: string; appProtocol?: string }[];
}

// Events.

/** core/v1 Event. */
export interface Event extends KubeObject {
  involvedObject: ObjectReference;
  reason?: string;
  message?: string;
  source?: { component?: string; host?: string };
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  count?: number;
  type?: string;
  /** MicroTime. */
  eventTime?: string | null;
  series?: { count?: number; lastObservedTime?: string };
  action?: string;
  related?: ObjectReference;
  reportingComponent?: string;
  reportingInstance?: string;
}

// Leases and revisions.

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  /** MicroTime. */
  acquireTime?: string;
  /** MicroTime. */
  renewTime?: string;
  leaseTransitions?: number;
  strategy?: string;
  preferredHolder?: string;
}

export interface Lease extends KubeObject {
  spec?: LeaseSpec;
}

export interface ControllerRevision extends KubeObject {
  data?: Record<string, unknown>;
  revision: number;
}

// Storage.

export interface PersistentVolumeClaimStatus {
  phase?: 'Pending' | 'Bound' | 'Lost';
  accessModes?: string[];
  capacity?: ResourceList;
  conditions?: Condition[];
  allocatedResources?: ResourceList;
  allocatedResourceStatuses?: Record<string, string>;
  currentVolumeAttributesClassName?: string;
}

export interface PersistentVolumeClaim extends KubeObject {
  spec?: PersistentVolumeClaimSpec;
  status?: PersistentVolumeClaimStatus;
}

export interface ResourceQuota extends KubeObject {
  spec?: {
    hard?: ResourceList;
    scopes?: string[];
    scopeSelector?: { matchExpressions?: { scopeName: string; operator: string; values?: string[] }[] };
  };
  status?: { hard?: ResourceList; used?: ResourceList };
}

export interface PersistentVolume extends KubeObject {
  spec?: {
    capacity?: ResourceList;
    accessModes?: string[];
    claimRef?: ObjectReference;
    persistentVolumeReclaimPolicy?: 'Retain' | 'Delete' | 'Recycle';
    storageClassName?: string;
    volumeAttributesClassName?: string;
    volumeMode?: 'Filesystem' | 'Block';
    mountOptions?: string[];
    nodeAffinity?: { required?: NodeSelector };
    hostPath?: { path: string; type?: string };
    local?: { path: string; fsType?: string };
    csi?: { driver: string; volumeHandle: string; [field: string]: unknown };
    [source: string]: unknown;
  };
  status?: { phase?: string; message?: string; reason?: string; lastPhaseTransitionTime?: string };
}

export interface StorageClass extends KubeObject {
  provisioner: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: 'Retain' | 'Delete';
  mountOptions?: string[];
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: 'Immediate' | 'WaitForFirstConsumer';
}

// Scheduling and disruption.

export interface PodDisruptionBudget extends KubeObject {
  spec?: {
    minAvailable?: IntOrString;
    maxUnavailable?: IntOrString;
    selector?: LabelSelector;
    unhealthyPodEvictionPolicy?: 'IfHealthyBudget' | 'AlwaysAllow';
  };
  status?: {
    observedGeneration?: number;
    disruptedPods?: Record<string, string>;
    disruptionsAllowed: number;
    currentHealthy: number;
    desiredHealthy: number;
    expectedPods: number;
    conditions?: Condition[];
  };
}

/** policy/v1 Eviction: the body of `pods/eviction`. */
export interface Eviction extends KubeObject {
  deleteOptions?: {
    gracePeriodSeconds?: number;
    propagationPolicy?: string;
    dryRun?: string[];
    preconditions?: { uid?: string; resourceVersion?: string };
  };
}

/** core/v1 Binding: the body of `pods/binding`. */
export interface Binding extends KubeObject {
  target: ObjectReference;
}

export interface ReplicaSet extends KubeObject {
  spec?: {
    replicas?: number;
    minReadySeconds?: number;
    selector: LabelSelector;
    template?: PodTemplateSpec;
  };
  status?: { replicas: number; readyReplicas?: number; availableReplicas?: number; observedGeneration?: number };
}

export interface Job extends KubeObject {
  spec?: { template: PodTemplateSpec; [field: string]: unknown };
  status?: { active?: number; succeeded?: number; failed?: number; conditions?: Condition[]; [field: string]: unknown };
}
