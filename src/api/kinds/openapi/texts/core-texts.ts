/** Our own one-line descriptions of the core group beside Pods and volumes; the notation is that of `type-texts.ts`. */
export const CORE_TEXTS = `
@core
ConfigMap:
  binaryData: Values that are no text, in base64.
  data: The values, by key.
  immutable: Whether the data cannot be changed any more.
Secret:
  data: The values in base64, by key.
  immutable: Whether the data cannot be changed any more.
  stringData: Values as plain text; put into data when written, never read back.
  type: What is inside, such as Opaque or kubernetes.io/tls.
ConfigMapNodeConfigSource: A ConfigMap with settings of a node; no longer in use.
  kubeletConfigKey: The key.
  resourceVersion: The revision.
ServiceAccount:
  automountServiceAccountToken: Whether Pods find a token as a file, unless they say otherwise.
  imagePullSecrets: The Secrets with which Pods of this account pull images.
  secrets: The Secrets that Pods of this account may use.
NamespaceSpec: Who must do something before a namespace may go.
  finalizers: Who has something to do; the namespace stays until the list is empty.
NamespaceStatus: Where a namespace is in its life.
  phase: Active or Terminating.
NamespaceCondition, NodeCondition, ReplicationControllerCondition, ComponentCondition: One thing that is true, false or unknown of the object.
  error: The error, if there was one.
  status: True, False or Unknown.
  type: What it is about.
ComponentStatus: The health of a part of the control plane; deprecated.
  conditions: What was found.
NodeSpec: What is set for a node.
  configSource: No longer in use.
  externalID: No longer in use.
  podCIDR: The network that its Pods get addresses from.
  podCIDRs: The networks that its Pods get addresses from, one for each IP family.
  providerID: How the cloud calls the machine.
  taints: What keeps Pods away that do not tolerate it.
  unschedulable: Whether new Pods are kept away.
NodeStatus: How a node was last seen.
  addresses: The addresses and names it can be reached by.
  allocatable: What Pods can use.
  capacity: What the machine has.
  config: No longer in use.
  daemonEndpoints: The ports of programs on the node.
  declaredFeatures: What the node says it can do.
  features: What the runtime can do.
  images: The images that are on the node.
  nodeInfo: Versions and ids of the machine.
  phase: No longer in use.
  runtimeHandlers: The ways in which the runtime can run containers.
  volumesAttached: The volumes that are attached.
  volumesInUse: The volumes that are mounted.
NodeAddress: An address of a node.
  address: The address or the name.
  type: Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
AttachedVolume: A volume that is attached to a node.
  devicePath: Where the device stands.
NodeConfigSource, NodeConfigStatus: Settings of a node from a ConfigMap; no longer in use.
  configMap: The ConfigMap.
  active: The settings in use.
  assigned: The settings to be used.
  error: What went wrong.
  lastKnownGood: The settings that last worked.
ContainerImage: An image on a node.
  names: Its names.
  sizeBytes: Its size in bytes.
DaemonEndpoint: A port of a program on a node.
  Port: The number of the port.
NodeDaemonEndpoints: The ports of programs on a node.
  kubeletEndpoint: The port of the kubelet.
NodeFeatures: What the runtime of a node can do.
  supplementalGroupsPolicy: Whether Pods may set supplementalGroupsPolicy.
NodeRuntimeHandler: A way in which the runtime runs containers.
  features: What it can do.
  name: Its name; empty for the default one.
NodeRuntimeHandlerFeatures: What a way of running containers can do.
  recursiveReadOnlyMounts: Whether mounts can be read-only all the way down.
  userNamespaces: Whether containers can have user ids of their own.
NodeSwapStatus: The swap of a machine.
  capacity: How much there is, in bytes.
NodeSystemInfo: Versions and ids of a machine.
  architecture: The processor architecture.
  bootID: Changes with each boot.
  containerRuntimeVersion: The container runtime and its version.
  kernelVersion: The version of the kernel.
  kubeProxyVersion: No longer filled.
  kubeletVersion: The version of the kubelet.
  machineID: The id of the machine.
  operatingSystem: The operating system.
  osImage: The name of the distribution.
  swap: The swap of the machine.
  systemUUID: The UUID of the machine's board.
Taint: Keeps Pods away from a node unless they tolerate it.
  effect: NoSchedule, PreferNoSchedule or NoExecute.
  key: The key.
  timeAdded: When it was put on.
  value: The value.
ServiceSpec: Which Pods are reached, and by which addresses.
  allocateLoadBalancerNodePorts: Whether a LoadBalancer Service gets ports on the nodes.
  clusterIP: The address inside the cluster; None for a Service without one.
  clusterIPs: The addresses inside the cluster, one for each IP family.
  externalIPs: Addresses of nodes that take traffic for the Service, too.
  externalName: The domain name that an ExternalName Service stands for.
  externalTrafficPolicy: Where traffic from outside goes: Cluster, or Local for Pods on the same node.
  healthCheckNodePort: The port on which a node says whether it has Pods of the Service.
  internalTrafficPolicy: Where traffic from inside goes: Cluster, or Local for Pods on the same node.
  ipFamilies: IPv4, IPv6 or both.
  ipFamilyPolicy: SingleStack, PreferDualStack or RequireDualStack.
  loadBalancerClass: Which load balancer is to serve it.
  loadBalancerIP: Deprecated: the address that is asked of the load balancer.
  loadBalancerSourceRanges: The networks that the load balancer lets in.
  ports: The ports of the Service.
  publishNotReadyAddresses: Whether Pods that are not ready are reached, too.
  selector: The labels of the Pods that are reached.
  sessionAffinity: ClientIP sends a client to the same Pod again; None does not.
  sessionAffinityConfig: How long that lasts.
  trafficDistribution: Which Pods are preferred, such as those that are close.
  type: ClusterIP, NodePort, LoadBalancer or ExternalName.
ServicePort: A port of a Service.
  appProtocol: What is spoken on the port.
  name: The name of the port; needed when there are several.
  nodePort: The port on every node.
  port: The port of the Service.
  protocol: TCP, UDP or SCTP.
  targetPort: The number or the name of the port on the Pods.
ServiceStatus: How a Service was last seen.
  loadBalancer: The addresses of the load balancer.
SessionAffinityConfig: How long a client is sent to the same Pod.
  clientIP: The settings for ClientIP.
ClientIPConfig: How long a client is sent to the same Pod.
  timeoutSeconds: For how many seconds.
LoadBalancerStatus: The addresses of a load balancer.
  ingress: One entry for each address.
LoadBalancerIngress: An address of a load balancer.
  hostname: The name.
  ip: The address.
  ipMode: VIP, or Proxy when traffic arrives at the load balancer's address.
  ports: How its ports stand.
PortStatus: How a port of a load balancer stands.
  error: What is wrong with it.
  port: The number of the port.
  protocol: TCP, UDP or SCTP.
Endpoints:
  subsets: Addresses and ports that belong together.
EndpointSubset: Addresses that all have the same ports.
  addresses: Those that are ready.
  notReadyAddresses: Those that are not ready.
  ports: The ports.
EndpointAddress: An address behind a Service.
  hostname: The host name.
  ip: The address.
  nodeName: The node it is on.
  targetRef: The Pod it belongs to.
EndpointPort: A port behind a Service.
  appProtocol: What is spoken on the port.
  name: The name of the port in the Service.
  port: The number of the port.
  protocol: TCP, UDP or SCTP.
Event:
  action: What was done.
  count: How often it happened.
  eventTime: When it was first seen.
  firstTimestamp: When it was first seen, to the second.
  involvedObject: The object it is about.
  lastTimestamp: When it was last seen.
  message: What happened, for people to read.
  reason: What happened, as one word.
  related: Another object it is about.
  reportingComponent: The program that reports it.
  reportingInstance: Which instance of that program.
  series: How it goes on, when it happens again and again.
  source: The program that reports it; reportingComponent is its successor.
  type: Normal or Warning.
EventSeries: Something that happens again and again.
  count: How often it has happened.
  lastObservedTime: When it was last seen.
EventSource: The program that reports an event.
  component: The program.
  host: The node it runs on.
LimitRangeSpec: The limits of a namespace.
  limits: One entry for each type.
LimitRangeItem: Limits for one type of thing.
  default: The limit of those that name none.
  defaultRequest: The request of those that name none.
  max: The most.
  maxLimitRequestRatio: How many times the request the limit may be.
  min: The least.
  type: Container, Pod or PersistentVolumeClaim.
ResourceQuotaSpec: What a namespace may use.
  hard: The most of each resource.
  scopeSelector: Which objects are counted.
  scopes: Which objects are counted; all of these must hold.
ResourceQuotaStatus: What a namespace uses.
  hard: The most of each resource that is in force.
  used: What is used of each.
ScopeSelector: Which objects are counted.
  matchExpressions: Conditions that must all hold.
ScopedResourceSelectorRequirement: A scope, values, and how they must relate.
  operator: In, NotIn, Exists or DoesNotExist.
  scopeName: The scope, such as PriorityClass or BestEffort.
  values: What to compare with.
ReplicationControllerSpec: Which Pods, and how many.
ReplicationControllerStatus: How many Pods there are.
  availableReplicas: How many have been ready for minReadySeconds.
  fullyLabeledReplicas: How many have all labels of the template.
  readyReplicas: How many are ready.
LocalObjectReference, SecretReference: An object, by name.
ObjectReference: An object, or a part of one.
  fieldPath: The part that is meant.
  resourceVersion: The revision that is meant.
TopologySelectorTerm: Places that storage may be in.
  matchLabelExpressions: Conditions on node labels.
TopologySelectorLabelRequirement: A node label and its values.
  key: The label.
  values: The values, one of which must be there.
`;
