/** Our own one-line descriptions of Pods and what they are made of; the notation is that of `type-texts.ts`. */
export const POD_TEXTS = `
@core
PodSpec: What a Pod is to run, where and how.
  activeDeadlineSeconds: How long the Pod may run before it is stopped and counts as failed.
  affinity: Rules about the nodes, and the company, that the Pod is placed with.
  automountServiceAccountToken: Whether containers find a token of the service account as a file.
  containers: The containers that run side by side; there is at least one.
  dnsConfig: Resolver settings on top of those of dnsPolicy.
  dnsPolicy: Where the resolver settings come from: ClusterFirst, ClusterFirstWithHostNet, Default or None.
  enableServiceLinks: Whether the Services of the namespace are given as environment variables.
  ephemeralContainers: Containers that were added to the running Pod, for debugging.
  hostAliases: Lines that are added to /etc/hosts of the containers.
  hostIPC: Whether the containers share the IPC namespace of the node.
  hostNetwork: Whether the containers use the network of the node.
  hostPID: Whether the containers see the processes of the node.
  hostUsers: Whether the containers use the user ids of the node; false gives them their own.
  hostname: The host name inside the Pod; the Pod's name when empty.
  hostnameOverride: The host name inside the Pod, whatever else would name it.
  imagePullSecrets: The Secrets with which images are pulled.
  initContainers: Containers that run one after the other before the others start.
  nodeName: The node that the Pod runs on; the scheduler fills it.
  nodeSelector: The labels that the node must have.
  os: The operating system that the containers are made for.
  overhead: What the Pod needs beside its containers; comes from the RuntimeClass.
  preemptionPolicy: Whether Pods of lower priority may be removed for this one: PreemptLowerPriority or Never.
  priority: The priority as a number; comes from priorityClassName.
  priorityClassName: The PriorityClass of the Pod.
  readinessGates: Conditions that must hold, too, before the Pod is ready.
  resourceClaims: The ResourceClaims that must be met before the Pod starts.
  resources: What the Pod as a whole asks for and may use.
  restartPolicy: When containers that ended are started again: Always, OnFailure or Never.
  runtimeClassName: The RuntimeClass that runs the Pod.
  schedulerName: Which scheduler chooses the node.
  schedulingGates: While there is one, the Pod is not scheduled.
  schedulingGroup: The group of Pods that is scheduled together with this one.
  securityContext: Users, groups and protection for all containers of the Pod.
  serviceAccount: Deprecated: use serviceAccountName.
  serviceAccountName: The ServiceAccount that the Pod acts as.
  setHostnameAsFQDN: Whether the host name inside is the whole domain name.
  shareProcessNamespace: Whether the containers see each other's processes.
  subdomain: The part of the domain name between host name and namespace.
  terminationGracePeriodSeconds: How long the processes may take to end after they were asked to.
  tolerations: The taints of nodes that the Pod tolerates.
  topologySpreadConstraints: How Pods that are alike are spread over zones, nodes and the like.
  volumes: What containers can mount.
PodStatus: How a Pod was last seen.
  allocatedResources: What the node has set aside for the whole Pod.
  containerStatuses: How each container stands.
  ephemeralContainerStatuses: How each ephemeral container stands.
  extendedResourceClaimStatus: The ResourceClaim that was made for extended resources.
  hostIP: The address of the node.
  hostIPs: All addresses of the node.
  initContainerStatuses: How each init container stands.
  nodeAllocatableResourceClaimStatuses: What claims take from the resources of the node.
  nominatedNodeName: The node that room is being made on for this Pod.
  phase: Where the Pod is in its life: Pending, Running, Succeeded, Failed or Unknown.
  podIP: The address of the Pod.
  podIPs: All addresses of the Pod, at most one for each IP family.
  qosClass: How well the Pod is treated when memory is short: Guaranteed, Burstable or BestEffort.
  resize: Deprecated: the progress of a change of resources; see conditions.
  resourceClaimStatuses: The ResourceClaims that stand for the entries of spec.resourceClaims.
  resources: What the whole Pod runs with.
  startTime: When the node took the Pod on.
Container, EphemeralContainer: One program with its files, and how it is run inside a Pod.
  args: The arguments; those of the image when empty.
  command: The program to run; that of the image when empty.
  env: Environment variables.
  envFrom: ConfigMaps and Secrets whose keys become environment variables.
  image: The image to run.
  imagePullPolicy: When the image is pulled: Always, IfNotPresent or Never.
  lifecycle: What is done after the start and before the end.
  livenessProbe: The container is started again when this keeps failing.
  name: The name, unique inside the Pod.
  ports: The ports that the container listens on, for information and for names.
  readinessProbe: The Pod gets traffic from Services only while this succeeds.
  resizePolicy: Whether the container must restart when its resources change.
  resources: What the container asks for and may use.
  restartPolicy: When this container is started again; Always on an init container keeps it running beside the others.
  restartPolicyRules: Exit codes that are treated in another way than restartPolicy says.
  securityContext: User, groups and protection of this container.
  startupProbe: The other probes wait until this has succeeded once.
  stdin: Whether standard input is kept open.
  stdinOnce: Whether standard input is closed after the first client that was attached.
  targetContainerName: The container whose processes are seen.
  terminationMessagePath: The file from which the last message is read when the container ends.
  terminationMessagePolicy: What is the last message: File, or FallbackToLogsOnError for the end of the log.
  tty: Whether there is a terminal.
  volumeDevices: Block devices that the container sees.
  volumeMounts: Volumes and the folders they are mounted at.
  workingDir: The folder in which the program starts.
ContainerExtendedResourceRequest: Which request of a claim stands for an extended resource of a container.
  containerName: The container.
  requestName: The request in the claim.
  resourceName: The extended resource.
ContainerPort: A port of a container.
  containerPort: The number of the port inside the Pod.
  hostIP: The address of the node that hostPort is opened on.
  hostPort: The port of the node that leads here; most Pods need none.
  name: A name that Services and probes may use instead of the number.
  protocol: TCP, UDP or SCTP.
ContainerResizePolicy: What a change of one resource needs.
  resourceName: The resource: cpu or memory.
  restartPolicy: NotRequired or RestartContainer.
ContainerRestartRule: What is done for some exit codes.
  action: What is done, such as Restart.
  exitCodes: The exit codes it is done for.
ContainerRestartRuleOnExitCodes: A set of exit codes.
  operator: In or NotIn.
  values: The exit codes.
ContainerState: What a container does; one of three.
  running: It runs.
  terminated: It has ended.
  waiting: It has not started.
ContainerStateRunning: A container that runs.
  startedAt: When it started.
ContainerStateTerminated: A container that has ended.
  containerID: The id it had in the runtime.
  exitCode: The exit code of its last run.
  finishedAt: When it ended.
  signal: The signal that ended it.
  startedAt: When it had started.
ContainerStateWaiting: A container that has not started.
ContainerStatus: How a container stands.
  allocatedResources: What the node has set aside for it.
  allocatedResourcesStatus: The health of the devices it was given.
  containerID: Its id in the runtime, such as containerd://...
  image: The image it runs.
  imageID: The image it runs, by digest.
  lastState: How its run before this one ended.
  ready: Whether its readiness probe succeeds.
  resources: What it runs with.
  restartCount: How often it was started again.
  started: Whether its startup probe has succeeded.
  state: What it does now.
  stopSignal: The signal that asks it to end.
  user: The user it started as.
  volumeMounts: How its volumes are mounted.
ContainerUser: Who a container runs as.
  linux: The ids on Linux.
LinuxContainerUser: User and group ids of the first process.
  gid: The group id.
  supplementalGroups: More group ids.
  uid: The user id.
EnvVar: An environment variable.
  value: The value; $(NAME) stands for a variable before it.
  valueFrom: Where the value is taken from.
EnvVarSource: Where the value of a variable is taken from; one of these.
  configMapKeyRef: A key of a ConfigMap.
  fieldRef: A field of the Pod.
  fileKeyRef: A key of a file in a volume.
  resourceFieldRef: A request or limit of a container.
  secretKeyRef: A key of a Secret.
EnvFromSource: A source whose keys become variables.
  configMapRef: The ConfigMap.
  prefix: What is put before each key.
  secretRef: The Secret.
ConfigMapEnvSource, ConfigMapKeySelector: A ConfigMap, or a key of one.
  key: The key.
SecretEnvSource, SecretKeySelector: A Secret, or a key of one.
  key: The key.
FileKeySelector: A key of a file with environment variables.
  key: The key.
  path: The file inside the volume.
  volumeName: The volume.
ObjectFieldSelector: A field of the Pod.
  apiVersion: The version that the path is written in.
  fieldPath: The path of the field, such as metadata.name.
ResourceFieldSelector: A request or a limit of a container.
  containerName: The container; needed in volumes.
  divisor: The unit of the answer.
  resource: What is wanted, such as limits.cpu.
Probe: A check that is made again and again.
  exec: A command; exit code 0 is success.
  failureThreshold: How many failures in a row count as failed.
  grpc: A health check over gRPC.
  httpGet: An HTTP request; 200 to 399 is success.
  initialDelaySeconds: How long to wait after the start before the first check.
  periodSeconds: How long from one check to the next.
  successThreshold: How many successes in a row count as success again.
  tcpSocket: A TCP connection; success if it opens.
  terminationGracePeriodSeconds: How long the processes may take to end when this probe has failed.
  timeoutSeconds: How long one check may take.
Lifecycle: What is done at the edges of a container's life.
  postStart: Done right after the start.
  preStop: Done before the container is asked to end.
  stopSignal: The signal that asks it to end.
LifecycleHandler: One thing to do.
  exec: A command to run in the container.
  httpGet: An HTTP request to send.
  sleep: A time to wait.
  tcpSocket: Not in use.
ExecAction: A command, not run through a shell.
  command: The program and its arguments.
GRPCAction: A health check over gRPC.
  port: The number of the port.
  service: The name of the service to ask for.
HTTPGetAction: An HTTP request.
  host: The host to connect to; the Pod when empty.
  httpHeaders: Headers to send.
  path: The path to ask for.
  port: The number or the name of the port.
  scheme: HTTP or HTTPS.
HTTPHeader: A header.
  value: The value.
SleepAction: A time to wait.
  seconds: How many seconds.
TCPSocketAction: A TCP connection.
  host: The host to connect to; the Pod when empty.
  port: The number or the name of the port.
ResourceRequirements, VolumeResourceRequirements: What is asked for and what may be used.
  claims: The entries of spec.resourceClaims that the container uses.
  limits: The most that may be used, by resource.
  requests: What is set aside, by resource; the limits when empty.
ResourceClaim: An entry of spec.resourceClaims.
  request: One request of the claim; all of them when empty.
ResourceHealth: The health of a device.
  health: Healthy, Unhealthy or Unknown.
  resourceID: The device.
ResourceStatus: The health of the devices of one resource.
  resources: One entry for each device.
SecurityContext, PodSecurityContext: Who the processes run as, and what they may do.
  allowPrivilegeEscalation: Whether a process may gain more rights than its parent has.
  appArmorProfile: The AppArmor profile.
  capabilities: Linux capabilities to add and to take away.
  fsGroup: The group that owns the volumes.
  fsGroupChangePolicy: When the owner of the files in a volume is changed: Always or OnRootMismatch.
  privileged: Whether the container may do what root on the node may do.
  procMount: How /proc is shown: Default or Unmasked.
  readOnlyRootFilesystem: Whether the files of the image can only be read.
  runAsGroup: The group id of the processes.
  runAsNonRoot: Whether to refuse to start as root.
  runAsUser: The user id of the processes.
  seLinuxChangePolicy: How the SELinux label of volumes is set: Recursive or MountOption.
  seLinuxOptions: The SELinux label.
  seccompProfile: Which system calls are allowed.
  supplementalGroups: More groups of the processes.
  supplementalGroupsPolicy: Whether groups that the image names count, too: Merge or Strict.
  sysctls: Kernel settings for the Pod.
  windowsOptions: Settings for Windows.
Capabilities: Linux capabilities.
  add: Those that are added.
  drop: Those that are taken away; ALL takes all.
AppArmorProfile, SeccompProfile: Which profile is in force.
  localhostProfile: The profile on the node, for type Localhost.
  type: Localhost, RuntimeDefault or Unconfined.
SELinuxOptions: An SELinux label.
  level, role, type, user: A part of the label.
WindowsSecurityContextOptions: Settings for Windows.
  gmsaCredentialSpec: The text of the service account credentials.
  gmsaCredentialSpecName: The name of the service account credentials.
  hostProcess: Whether the container runs as a process of the host.
  runAsUserName: The user of the processes.
Sysctl: A kernel setting.
  value: The value.
Affinity: Where a Pod is placed.
  nodeAffinity: Which nodes suit.
  podAffinity: Which Pods should be near.
  podAntiAffinity: Which Pods should not be near.
NodeAffinity: Which nodes suit a Pod.
  preferredDuringSchedulingIgnoredDuringExecution: Preferences; the node with the most weight wins.
  requiredDuringSchedulingIgnoredDuringExecution: What a node must fulfil when the Pod is placed.
PodAffinity, PodAntiAffinity: Which Pods should be near, or should not be.
  preferredDuringSchedulingIgnoredDuringExecution: Preferences; the node with the most weight wins.
  requiredDuringSchedulingIgnoredDuringExecution: What must hold when the Pod is placed.
PodAffinityTerm: Some Pods, and what near means.
  labelSelector: Which Pods are meant.
  matchLabelKeys: Labels whose values are taken from the Pod being placed, to match.
  mismatchLabelKeys: Labels whose values are taken from the Pod being placed, to differ.
  namespaceSelector: The namespaces to look in, by labels.
  namespaces: The namespaces to look in; that of the Pod when nothing is said.
  topologyKey: Nodes with the same value of this label are near each other.
WeightedPodAffinityTerm: A preference and its weight.
  podAffinityTerm: The preferred term.
  weight: The weight, 1 to 100.
PreferredSchedulingTerm: A preference about nodes and its weight.
  preference: The preferred term.
  weight: The weight, 1 to 100.
NodeSelector: Nodes, by labels and fields; one of the terms must hold.
  nodeSelectorTerms: The terms.
NodeSelectorTerm: Conditions that must all hold.
  matchExpressions: Conditions on labels.
  matchFields: Conditions on fields, such as metadata.name.
NodeSelectorRequirement: A key, values, and how they must relate.
  key: The key that is compared.
  operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.
  values: What to compare with.
Toleration: A taint that the Pod tolerates.
  effect: The effect it is about; all when empty.
  key: The key of the taint; all when empty.
  operator: Equal, or Exists for any value.
  tolerationSeconds: How long a NoExecute taint is tolerated; for ever when empty.
  value: The value of the taint.
TopologySpreadConstraint: How evenly Pods are spread.
  labelSelector: The Pods that are counted.
  matchLabelKeys: Labels whose values are taken from the Pod being placed.
  maxSkew: By how many Pods two domains may differ.
  minDomains: How many domains there must be at least.
  nodeAffinityPolicy: Whether only nodes that suit the Pod count: Honor or Ignore.
  nodeTaintsPolicy: Whether only nodes whose taints are tolerated count: Honor or Ignore.
  topologyKey: Nodes with the same value of this label are one domain.
  whenUnsatisfiable: What happens when it cannot be kept: DoNotSchedule or ScheduleAnyway.
HostAlias: A line of /etc/hosts.
  hostnames: The names.
  ip: The address they stand for.
HostIP, PodIP: An address.
  ip: The address.
PodDNSConfig: Settings of the resolver.
  nameservers: The addresses of name servers.
  options: Options of the resolver.
  searches: Domains in which short names are looked up.
PodDNSConfigOption: An option of the resolver.
  value: The value, if it has one.
PodOS: The operating system.
  name: linux or windows.
PodReadinessGate: A condition that must hold before the Pod is ready.
  conditionType: The type of the condition.
PodSchedulingGate: Something that holds back the scheduling.
PodSchedulingGroup: The group that a Pod is scheduled with.
  podGroupName: The name of the group.
PodResourceClaim: A claim that a Pod uses; by name, or made from a template.
  name: How containers call it.
  resourceClaimName: The claim.
  resourceClaimTemplateName: The template.
PodResourceClaimStatus, PodExtendedResourceClaimStatus: The claim that was made for a Pod.
  requestMappings: Which container uses which request.
  resourceClaimName: The claim.
NodeAllocatableResourceClaimStatus: What a claim takes from the resources of the node.
  containers: The containers that use it.
  resourceClaimName: The claim.
  resources: The amounts.
PodCondition: One thing that is true, false or unknown of a Pod.
  status: True, False or Unknown.
  type: What it is about, such as PodScheduled, Initialized, ContainersReady or Ready.
PodTemplate:
  template: The Pod that is described.
PodTemplateSpec: What a Pod that is made from here looks like.
  spec: The state that is wanted.
Binding: Puts a Pod on a node.
  target: The node.
`;
