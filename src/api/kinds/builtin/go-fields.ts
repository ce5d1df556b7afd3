/**
 * What Go calls the fields of the built-in types, where the published schema does not tell: named types, and the structs
 * that are embedded in others. A decoder's errors name them (`... into Go struct field Volume.spec.volumes.VolumeSource.nfs
 * of type v1.NFSVolumeSource`).
 */
import type { GoFields } from '../../schema/schema.ts';
import { tableNameOf } from './kept-zeros.ts';

/** `package.version.Type: field=type ...` per line; `~` is the version. Facts of the Go types of Kubernetes 1.36. */
const TYPES = `
admissionregistration.v1.MatchResources: matchPolicy=~MatchPolicyType
admissionregistration.v1.MutatingAdmissionPolicySpec: failurePolicy=~FailurePolicyType reinvocationPolicy=~ReinvocationPolicyType
admissionregistration.v1.MutatingWebhook: failurePolicy=~FailurePolicyType matchPolicy=~MatchPolicyType sideEffects=~SideEffectClass reinvocationPolicy=~ReinvocationPolicyType
admissionregistration.v1.Mutation: patchType=~PatchType
admissionregistration.v1.NamedRuleWithOperations: operations=[]~OperationType scope=~ScopeType
admissionregistration.v1.ParamRef: parameterNotFoundAction=~ParameterNotFoundActionType
admissionregistration.v1.RuleWithOperations: operations=[]~OperationType scope=~ScopeType
admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec: validationActions=[]~ValidationAction
admissionregistration.v1.ValidatingAdmissionPolicySpec: failurePolicy=~FailurePolicyType
admissionregistration.v1.ValidatingWebhook: failurePolicy=~FailurePolicyType matchPolicy=~MatchPolicyType sideEffects=~SideEffectClass
admissionregistration.v1.Validation: reason=~StatusReason
apiextensions.v1.CustomResourceConversion: strategy=~ConversionStrategyType
apiextensions.v1.CustomResourceDefinitionCondition: type=~CustomResourceDefinitionConditionType status=~ConditionStatus
apiextensions.v1.CustomResourceDefinitionSpec: scope=~ResourceScope
apiextensions.v1.JSONSchemaProps: $schema=~JSONSchemaURL dependencies=~JSONSchemaDependencies definitions=~JSONSchemaDefinitions x-kubernetes-validations=~ValidationRules
apiextensions.v1.ValidationRule: reason=~FieldValueErrorReason
apps.v1.DaemonSetCondition: type=~DaemonSetConditionType status=~ConditionStatus
apps.v1.DaemonSetUpdateStrategy: type=~DaemonSetUpdateStrategyType
apps.v1.DeploymentCondition: type=~DeploymentConditionType status=~ConditionStatus
apps.v1.DeploymentStrategy: type=~DeploymentStrategyType
apps.v1.ReplicaSetCondition: type=~ReplicaSetConditionType status=~ConditionStatus
apps.v1.StatefulSetCondition: type=~StatefulSetConditionType status=~ConditionStatus
apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=~PersistentVolumeClaimRetentionPolicyType whenScaled=~PersistentVolumeClaimRetentionPolicyType
apps.v1.StatefulSetSpec: podManagementPolicy=~PodManagementPolicyType
apps.v1.StatefulSetUpdateStrategy: type=~StatefulSetUpdateStrategyType
authentication.v1.BoundObjectReference: uid=types.UID
authentication.v1.UserInfo: extra=map[string]~ExtraValue
authorization.v1.SubjectAccessReviewSpec: extra=map[string]~ExtraValue
autoscaling.v2.ContainerResourceMetricSource: name=v1.ResourceName
autoscaling.v2.ContainerResourceMetricStatus: name=v1.ResourceName
autoscaling.v2.HPAScalingPolicy: type=~HPAScalingPolicyType
autoscaling.v2.HPAScalingRules: selectPolicy=~ScalingPolicySelect
autoscaling.v2.HorizontalPodAutoscalerCondition: type=~HorizontalPodAutoscalerConditionType status=v1.ConditionStatus
autoscaling.v2.MetricSpec: type=~MetricSourceType
autoscaling.v2.MetricStatus: type=~MetricSourceType
autoscaling.v2.MetricTarget: type=~MetricTargetType
autoscaling.v2.ResourceMetricSource: name=v1.ResourceName
autoscaling.v2.ResourceMetricStatus: name=v1.ResourceName
batch.v1.CronJobSpec: concurrencyPolicy=~ConcurrencyPolicy
batch.v1.JobCondition: type=~JobConditionType status=~ConditionStatus
batch.v1.JobSpec: completionMode=~CompletionMode podReplacementPolicy=~PodReplacementPolicy
batch.v1.PodFailurePolicyOnExitCodesRequirement: operator=~PodFailurePolicyOnExitCodesOperator
batch.v1.PodFailurePolicyOnPodConditionsPattern: type=~PodConditionType status=~ConditionStatus
batch.v1.PodFailurePolicyRule: action=~PodFailurePolicyAction
batch.v1.UncountedTerminatedPods: succeeded=[]types.UID failed=[]types.UID
certificates.v1.CertificateSigningRequestCondition: type=~RequestConditionType status=~ConditionStatus
certificates.v1.CertificateSigningRequestSpec: usages=[]~KeyUsage extra=map[string]~ExtraValue
coordination.v1.LeaseSpec: strategy=~CoordinatedLeaseStrategy
core.v1.AppArmorProfile: type=~AppArmorProfileType
core.v1.AttachedVolume: name=~UniqueVolumeName
core.v1.AzureDiskVolumeSource: cachingMode=~AzureDataDiskCachingMode kind=~AzureDataDiskKind
core.v1.Capabilities: add=[]~Capability drop=[]~Capability
core.v1.ComponentCondition: type=~ComponentConditionType status=~ConditionStatus
core.v1.ConfigMapNodeConfigSource: uid=types.UID
core.v1.Container: restartPolicy=~ContainerRestartPolicy terminationMessagePolicy=~TerminationMessagePolicy imagePullPolicy=~PullPolicy
core.v1.ContainerPort: protocol=~Protocol
core.v1.ContainerResizePolicy: resourceName=~ResourceName restartPolicy=~ResourceResizeRestartPolicy
core.v1.ContainerRestartRule: action=~ContainerRestartRuleAction
core.v1.ContainerRestartRuleOnExitCodes: operator=~ContainerRestartRuleOnExitCodesOperator
core.v1.ContainerStatus: allocatedResources=~ResourceList stopSignal=~Signal
core.v1.EmptyDirVolumeSource: medium=~StorageMedium
core.v1.EndpointPort: protocol=~Protocol
core.v1.EphemeralContainer: restartPolicy=~ContainerRestartPolicy terminationMessagePolicy=~TerminationMessagePolicy imagePullPolicy=~PullPolicy
core.v1.HTTPGetAction: scheme=~URIScheme
core.v1.HostPathVolumeSource: type=~HostPathType
core.v1.ImageVolumeSource: pullPolicy=~PullPolicy
core.v1.Lifecycle: stopSignal=~Signal
core.v1.LimitRangeItem: type=~LimitType max=~ResourceList min=~ResourceList default=~ResourceList defaultRequest=~ResourceList maxLimitRequestRatio=~ResourceList
core.v1.LoadBalancerIngress: ipMode=~LoadBalancerIPMode
core.v1.ModifyVolumeStatus: status=~PersistentVolumeClaimModifyVolumeStatus
core.v1.NamespaceCondition: type=~NamespaceConditionType status=~ConditionStatus
core.v1.NamespaceSpec: finalizers=[]~FinalizerName
core.v1.NamespaceStatus: phase=~NamespacePhase
core.v1.NodeAddress: type=~NodeAddressType
core.v1.NodeAllocatableResourceClaimStatus: resources=map[~ResourceName]resource.Quantity
core.v1.NodeCondition: type=~NodeConditionType status=~ConditionStatus
core.v1.NodeSelectorRequirement: operator=~NodeSelectorOperator
core.v1.NodeStatus: capacity=~ResourceList allocatable=~ResourceList phase=~NodePhase volumesInUse=[]~UniqueVolumeName
core.v1.ObjectReference: uid=types.UID
core.v1.PersistentVolumeClaimCondition: type=~PersistentVolumeClaimConditionType status=~ConditionStatus
core.v1.PersistentVolumeClaimSpec: accessModes=[]~PersistentVolumeAccessMode volumeMode=~PersistentVolumeMode
core.v1.PersistentVolumeClaimStatus: phase=~PersistentVolumeClaimPhase accessModes=[]~PersistentVolumeAccessMode capacity=~ResourceList allocatedResources=~ResourceList allocatedResourceStatuses=map[~ResourceName]~ClaimResourceStatus
core.v1.PersistentVolumeSpec: capacity=~ResourceList accessModes=[]~PersistentVolumeAccessMode persistentVolumeReclaimPolicy=~PersistentVolumeReclaimPolicy volumeMode=~PersistentVolumeMode
core.v1.PersistentVolumeStatus: phase=~PersistentVolumePhase
core.v1.PodCondition: type=~PodConditionType status=~ConditionStatus
core.v1.PodOS: name=~OSName
core.v1.PodReadinessGate: conditionType=~PodConditionType
core.v1.PodSecurityContext: supplementalGroupsPolicy=~SupplementalGroupsPolicy fsGroupChangePolicy=~PodFSGroupChangePolicy seLinuxChangePolicy=~PodSELinuxChangePolicy
core.v1.PodSpec: restartPolicy=~RestartPolicy dnsPolicy=~DNSPolicy preemptionPolicy=~PreemptionPolicy overhead=~ResourceList
core.v1.PodStatus: phase=~PodPhase qosClass=~PodQOSClass resize=~PodResizeStatus allocatedResources=~ResourceList
core.v1.PortStatus: protocol=~Protocol
core.v1.ReplicationControllerCondition: type=~ReplicationControllerConditionType status=~ConditionStatus
core.v1.ResourceHealth: resourceID=~ResourceID health=~ResourceHealthStatus
core.v1.ResourceQuotaSpec: hard=~ResourceList scopes=[]~ResourceQuotaScope
core.v1.ResourceQuotaStatus: hard=~ResourceList used=~ResourceList
core.v1.ResourceRequirements: limits=~ResourceList requests=~ResourceList
core.v1.ResourceStatus: name=~ResourceName
core.v1.ScopedResourceSelectorRequirement: scopeName=~ResourceQuotaScope operator=~ScopeSelectorOperator
core.v1.SeccompProfile: type=~SeccompProfileType
core.v1.Secret: type=~SecretType
core.v1.SecurityContext: procMount=~ProcMountType
core.v1.ServicePort: protocol=~Protocol
core.v1.ServiceSpec: type=~ServiceType sessionAffinity=~ServiceAffinity externalTrafficPolicy=~ServiceExternalTrafficPolicy ipFamilies=[]~IPFamily ipFamilyPolicy=~IPFamilyPolicy internalTrafficPolicy=~ServiceInternalTrafficPolicy
core.v1.Taint: effect=~TaintEffect
core.v1.Toleration: operator=~TolerationOperator effect=~TaintEffect
core.v1.TopologySpreadConstraint: whenUnsatisfiable=~UnsatisfiableConstraintAction nodeAffinityPolicy=~NodeInclusionPolicy nodeTaintsPolicy=~NodeInclusionPolicy
core.v1.VolumeMount: recursiveReadOnly=~RecursiveReadOnlyMode mountPropagation=~MountPropagationMode
core.v1.VolumeMountStatus: recursiveReadOnly=~RecursiveReadOnlyMode
core.v1.VolumeResourceRequirements: limits=~ResourceList requests=~ResourceList
discovery.v1.EndpointPort: protocol=~Protocol
discovery.v1.EndpointSlice: addressType=~AddressType
flowcontrol.v1.FlowDistinguisherMethod: type=~FlowDistinguisherMethodType
flowcontrol.v1.FlowSchemaCondition: type=~FlowSchemaConditionType status=~ConditionStatus
flowcontrol.v1.LimitResponse: type=~LimitResponseType
flowcontrol.v1.PriorityLevelConfigurationCondition: type=~PriorityLevelConfigurationConditionType status=~ConditionStatus
flowcontrol.v1.PriorityLevelConfigurationSpec: type=~PriorityLevelEnablement
flowcontrol.v1.Subject: kind=~SubjectKind
meta.v1.APIResource: verbs=~Verbs
meta.v1.Condition: status=~ConditionStatus
meta.v1.DeleteOptions: propagationPolicy=~DeletionPropagation
meta.v1.FieldSelectorRequirement: operator=~FieldSelectorOperator
meta.v1.LabelSelectorRequirement: operator=~LabelSelectorOperator
meta.v1.ManagedFieldsEntry: operation=~ManagedFieldsOperationType
meta.v1.ObjectMeta: uid=types.UID
meta.v1.OwnerReference: uid=types.UID
meta.v1.Preconditions: uid=types.UID
meta.v1.Status: reason=~StatusReason
meta.v1.StatusCause: reason=~CauseType
meta.v1.StatusDetails: uid=types.UID
networking.v1.HTTPIngressPath: pathType=~PathType
networking.v1.IngressPortStatus: protocol=~Protocol
networking.v1.NetworkPolicyPort: protocol=~Protocol
networking.v1.NetworkPolicySpec: policyTypes=[]~PolicyType
node.v1.Overhead: podFixed=~ResourceList
policy.v1.PodDisruptionBudgetSpec: unhealthyPodEvictionPolicy=~UnhealthyPodEvictionPolicyType
resource.v1.CapacityRequirements: requests=map[~QualifiedName]resource.Quantity
resource.v1.Device: attributes=map[~QualifiedName]~DeviceAttribute capacity=map[~QualifiedName]~DeviceCapacity nodeAllocatableResourceMappings=map[~ResourceName]~NodeAllocatableResourceMapping
resource.v1.DeviceAllocationConfiguration: source=~AllocationConfigSource
resource.v1.DeviceConstraint: matchAttribute=~FullyQualifiedName distinctAttribute=~FullyQualifiedName
resource.v1.DeviceRequestAllocationResult: shareID=types.UID consumedCapacity=map[~QualifiedName]resource.Quantity
resource.v1.DeviceSubRequest: allocationMode=~DeviceAllocationMode
resource.v1.DeviceTaint: effect=~DeviceTaintEffect
resource.v1.DeviceToleration: operator=~DeviceTolerationOperator effect=~DeviceTaintEffect
resource.v1.ExactDeviceRequest: allocationMode=~DeviceAllocationMode
resource.v1.NodeAllocatableResourceMapping: capacityKey=~QualifiedName
resource.v1.ResourceClaimConsumerReference: uid=types.UID
scheduling.v1.PriorityClass: preemptionPolicy=~PreemptionPolicy
storage.v1.CSIDriverSpec: volumeLifecycleModes=[]~VolumeLifecycleMode fsGroupPolicy=~FSGroupPolicy
storage.v1.StorageClass: reclaimPolicy=~PersistentVolumeReclaimPolicy volumeBindingMode=~VolumeBindingMode
`;

/** `package.version.Type Embedded: field ...` per line; `*` is every field, `-field` none of them. */
const EMBEDDED = `
admissionregistration.v1.NamedRuleWithOperations RuleWithOperations.Rule: apiGroups apiVersions resources scope
admissionregistration.v1.NamedRuleWithOperations RuleWithOperations: operations
admissionregistration.v1.RuleWithOperations Rule: apiGroups apiVersions resources scope
core.v1.ConfigMapEnvSource LocalObjectReference: name
core.v1.ConfigMapKeySelector LocalObjectReference: name
core.v1.ConfigMapProjection LocalObjectReference: name
core.v1.ConfigMapVolumeSource LocalObjectReference: name
core.v1.EphemeralContainer EphemeralContainerCommon: * -targetContainerName
core.v1.PersistentVolumeClaim TypeMeta: apiVersion kind
core.v1.PersistentVolumeSpec PersistentVolumeSource: * -accessModes -capacity -claimRef -mountOptions -nodeAffinity -persistentVolumeReclaimPolicy -storageClassName -volumeAttributesClassName -volumeMode
core.v1.Probe ProbeHandler: exec httpGet tcpSocket grpc
core.v1.SecretEnvSource LocalObjectReference: name
core.v1.SecretKeySelector LocalObjectReference: name
core.v1.SecretProjection LocalObjectReference: name
core.v1.Volume VolumeSource: * -name
networking.v1.IngressRule IngressRuleValue: http
resource.v1.DeviceAllocationConfiguration DeviceConfiguration: opaque
resource.v1.DeviceClaimConfiguration DeviceConfiguration: opaque
resource.v1.DeviceClassConfiguration DeviceConfiguration: opaque
`;

let types: ReadonlyMap<string, string> | undefined;
let embedded: readonly string[] | undefined;

/** The Go names of the fields of a definition (`io.k8s.api.core.v1.Pod`), of those that need telling. */
export function goFieldsOf(definition: string, properties: Iterable<string>): GoFields {
  types ??= new Map(
    TYPES.trim()
      .split('\n')
      .map((line) => splitLine(line)),
  );
  embedded ??= EMBEDDED.trim().split('\n');
  const type = tableNameOf(definition);
  const version = type.split('.')[1] ?? '';
  const named = (types.get(type) ?? '').split(' ').flatMap((field) => {
    const equals = field.indexOf('=');
    return equals < 0
      ? []
      : [[field.slice(0, equals), field.slice(equals + 1).replaceAll('~', `${version}.`)] as const];
  });
  return { types: new Map(named), through: throughOf(type, [...properties]) };
}

function throughOf(type: string, properties: readonly string[]): ReadonlyMap<string, string> {
  const through = new Map<string, string>();
  for (const line of embedded ?? []) {
    if (!line.startsWith(`${type} `)) continue;
    const [head, text] = splitLine(line);
    const fields = text.split(' ');
    const held = fields[0] === '*' ? properties.filter((name) => !fields.includes(`-${name}`)) : fields;
    for (const field of held) through.set(field, head.slice(type.length + 1));
  }
  return through;
}

const splitLine = (line: string): [head: string, text: string] => {
  const colon = line.indexOf(': ');
  return [line.slice(0, colon), line.slice(colon + 2)];
};
