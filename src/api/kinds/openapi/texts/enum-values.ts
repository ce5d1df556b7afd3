/**
 * What fields of built-in types may say, where Go's types say so (`+enum` in k8s.io/api): for OpenAPI documents alone,
 * validation has rules and words of its own.
 *
 * A line is `alias Type.field, Type.field: value, value`; alias as in `types.generated.json`. `field[]` means the items of
 * a list, `field{}` the values of a map. Values stand in order, an empty one is the empty text.
 */
import table from '../../builtin/types.generated.json' with { type: 'json' };

const REAL_TIME = [...numbered('SIGRTMAX-', 14), ...numbered('SIGRTMIN+', 15), 'SIGRTMAX', 'SIGRTMIN'];
const SIGNALS =
  'SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ';

/** The table as it is read, for the hash of documents. */
export const ENUM_TABLE = `
core ContainerPort.protocol, ServicePort.protocol, EndpointPort.protocol, PortStatus.protocol: SCTP, TCP, UDP
discovery EndpointPort.protocol: SCTP, TCP, UDP
networking NetworkPolicyPort.protocol, IngressPortStatus.protocol: SCTP, TCP, UDP
core Container.imagePullPolicy, EphemeralContainer.imagePullPolicy, ImageVolumeSource.pullPolicy: Always, IfNotPresent, Never
core Container.terminationMessagePolicy, EphemeralContainer.terminationMessagePolicy: FallbackToLogsOnError, File
core HTTPGetAction.scheme: HTTP, HTTPS
core Lifecycle.stopSignal, ContainerStatus.stopSignal: ${[...SIGNALS.split(' '), ...REAL_TIME].sort().join(', ')}
core SecurityContext.procMount: Default, Unmasked
core SeccompProfile.type, AppArmorProfile.type: Localhost, RuntimeDefault, Unconfined
core PodSpec.restartPolicy: Always, Never, OnFailure
core PodSpec.dnsPolicy: ClusterFirst, ClusterFirstWithHostNet, Default, None
core PodSpec.preemptionPolicy: Never, PreemptLowerPriority
scheduling PriorityClass.preemptionPolicy: Never, PreemptLowerPriority
core PodSecurityContext.fsGroupChangePolicy: Always, OnRootMismatch
core PodSecurityContext.supplementalGroupsPolicy: Merge, Strict
core PodStatus.phase: Failed, Pending, Running, Succeeded, Unknown
core PodStatus.qosClass: BestEffort, Burstable, Guaranteed
core TopologySpreadConstraint.whenUnsatisfiable: DoNotSchedule, ScheduleAnyway
core TopologySpreadConstraint.nodeAffinityPolicy, TopologySpreadConstraint.nodeTaintsPolicy: Honor, Ignore
core NodeSelectorRequirement.operator: DoesNotExist, Exists, Gt, In, Lt, NotIn
core Taint.effect, Toleration.effect: NoExecute, NoSchedule, PreferNoSchedule
core Toleration.operator: Equal, Exists, Gt, Lt
core NodeStatus.phase: Pending, Running, Terminated
core NamespaceStatus.phase: Active, Terminating
core VolumeMount.mountPropagation: Bidirectional, HostToContainer, None
core HostPathVolumeSource.type: , BlockDevice, CharDevice, Directory, DirectoryOrCreate, File, FileOrCreate, Socket
core AzureDiskVolumeSource.cachingMode: None, ReadOnly, ReadWrite
core AzureDiskVolumeSource.kind: Dedicated, Managed, Shared
core PersistentVolumeSpec.persistentVolumeReclaimPolicy: Delete, Recycle, Retain
storage StorageClass.reclaimPolicy: Delete, Recycle, Retain
storage StorageClass.volumeBindingMode: Immediate, WaitForFirstConsumer
core PersistentVolumeSpec.volumeMode, PersistentVolumeClaimSpec.volumeMode: Block, Filesystem
core PersistentVolumeSpec.accessModes[], PersistentVolumeClaimSpec.accessModes[], PersistentVolumeClaimStatus.accessModes[]: ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod
core PersistentVolumeStatus.phase: Available, Bound, Failed, Pending, Released
core PersistentVolumeClaimStatus.phase: Bound, Lost, Pending
core PersistentVolumeClaimStatus.allocatedResourceStatuses{}: ControllerResizeInProgress, ControllerResizeInfeasible, NodeResizeInProgress, NodeResizeInfeasible, NodeResizePending
core ModifyVolumeStatus.status: InProgress, Infeasible, Pending
core ServiceSpec.type: ClusterIP, ExternalName, LoadBalancer, NodePort
core ServiceSpec.sessionAffinity: ClientIP, None
core ServiceSpec.internalTrafficPolicy, ServiceSpec.externalTrafficPolicy: Cluster, Local
core ServiceSpec.ipFamilyPolicy: PreferDualStack, RequireDualStack, SingleStack
core ServiceSpec.ipFamilies[]: , IPv4, IPv6
core ResourceQuotaSpec.scopes[], ScopedResourceSelectorRequirement.scopeName: BestEffort, CrossNamespacePodAffinity, NotBestEffort, NotTerminating, PriorityClass, Terminating, VolumeAttributesClass
core ScopedResourceSelectorRequirement.operator: DoesNotExist, Exists, In, NotIn
apps StatefulSetSpec.podManagementPolicy: OrderedReady, Parallel
apps StatefulSetUpdateStrategy.type, DaemonSetUpdateStrategy.type: OnDelete, RollingUpdate
apps DeploymentStrategy.type: Recreate, RollingUpdate
autoscalingv2 MetricSpec.type, MetricStatus.type: ContainerResource, External, Object, Pods, Resource
batch JobSpec.completionMode: Indexed, NonIndexed
batch JobSpec.podReplacementPolicy: Failed, TerminatingOrFailed
batch CronJobSpec.concurrencyPolicy: Allow, Forbid, Replace
batch PodFailurePolicyRule.action: Count, FailIndex, FailJob, Ignore
batch PodFailurePolicyOnExitCodesRequirement.operator: In, NotIn
certificates CertificateSigningRequestSpec.usages[]: any, cert sign, client auth, code signing, content commitment, crl sign, data encipherment, decipher only, digital signature, email protection, encipher only, ipsec end system, ipsec tunnel, ipsec user, key agreement, key encipherment, microsoft sgc, netscape sgc, ocsp signing, s/mime, server auth, signing, timestamping
discovery EndpointSlice.addressType: FQDN, IPv4, IPv6
networking NetworkPolicySpec.policyTypes[]: Egress, Ingress
networking HTTPIngressPath.pathType: Exact, ImplementationSpecific, Prefix
policy PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy: AlwaysAllow, IfHealthyBudget
admissionregistration MutatingWebhook.failurePolicy, ValidatingWebhook.failurePolicy, ValidatingAdmissionPolicySpec.failurePolicy, MutatingAdmissionPolicySpec.failurePolicy: Fail, Ignore
admissionregistration MutatingWebhook.matchPolicy, ValidatingWebhook.matchPolicy, MatchResources.matchPolicy: Equivalent, Exact
admissionregistration MutatingWebhook.sideEffects, ValidatingWebhook.sideEffects: None, NoneOnDryRun, Some, Unknown
admissionregistration MutatingWebhook.reinvocationPolicy, MutatingAdmissionPolicySpec.reinvocationPolicy: IfNeeded, Never
admissionregistration RuleWithOperations.operations[], NamedRuleWithOperations.operations[]: *, CONNECT, CREATE, DELETE, UPDATE
admissionregistration RuleWithOperations.scope, NamedRuleWithOperations.scope: *, Cluster, Namespaced
admissionregistration ValidatingAdmissionPolicyBindingSpec.validationActions[]: Audit, Deny, Warn
admissionregistration ParamRef.parameterNotFoundAction: Allow, Deny
admissionregistration Mutation.patchType: ApplyConfiguration, JSONPatch
resource DeviceTaint.effect: NoExecute, NoSchedule, None
resource DeviceToleration.effect: NoExecute, NoSchedule, None
resource DeviceToleration.operator: Equal, Exists
resource ExactDeviceRequest.allocationMode, DeviceSubRequest.allocationMode: All, ExactCount
`;

/** Which part of a field is one of the values: itself, the items of a list or the values of a map. */
export interface EnumField {
  readonly part: 'itself' | 'items' | 'additionalProperties';
  readonly values: readonly string[];
}

/** Reads the table: by definition name, then by field. */
export function readEnums(): ReadonlyMap<string, ReadonlyMap<string, EnumField>> {
  const packages: Readonly<Record<string, string>> = table.packages;
  const types = new Map<string, Map<string, EnumField>>();
  for (const line of ENUM_TABLE.trim().split('\n')) {
    const colon = line.indexOf(': ');
    const space = line.indexOf(' ');
    const values = line.slice(colon + 2).split(', ');
    for (const place of line.slice(space + 1, colon).split(', ')) {
      const [, type = '', field = '', marks] = /^(\w+)\.(\w+)(\[\]|\{\})?$/.exec(place) ?? [];
      const name = `${packages[line.slice(0, space)]}.${type}`;
      const fields = types.get(name) ?? new Map<string, EnumField>();
      const part = marks === '[]' ? 'items' : marks === '{}' ? 'additionalProperties' : 'itself';
      types.set(name, fields.set(field, { part, values }));
    }
  }
  return types;
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);
}
