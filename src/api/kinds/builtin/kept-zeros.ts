/**
 * Optional scalars whose zero value says something: Go holds them by pointer (or always writes them), so `false`, 0 and
 * '' appear in JSON. Of every other optional scalar the zero is left out (omitempty): who sends `paused: false` reads a
 * Deployment without `paused`. Go's protobuf writes those zeros too, set or not: without this list a typed client's
 * `hostNetwork: false` or `nodeName: ''`, which it never set, would look like a choice.
 */
import type { Schema } from '../../schema/schema.ts';

/**
 * `package.version.Type: field field ...` per line; `-field` is a required one whose zero Go leaves out all the same.
 * Facts of the Go types of Kubernetes 1.36.
 */
const TABLE = `
admissionregistration.v1.MatchResources: matchPolicy
admissionregistration.v1.MutatingAdmissionPolicySpec: failurePolicy
admissionregistration.v1.MutatingWebhook: failurePolicy matchPolicy reinvocationPolicy timeoutSeconds
admissionregistration.v1.NamedRuleWithOperations: scope
admissionregistration.v1.ParamRef: parameterNotFoundAction
admissionregistration.v1.RuleWithOperations: scope
admissionregistration.v1.ServiceReference: path port
admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec: -policyName
admissionregistration.v1.ValidatingAdmissionPolicySpec: failurePolicy
admissionregistration.v1.ValidatingWebhook: failurePolicy matchPolicy timeoutSeconds
admissionregistration.v1.Validation: reason
admissionregistration.v1.WebhookClientConfig: url
apiextensions.v1.CustomResourceDefinitionVersion: deprecationWarning
apiextensions.v1.CustomResourceSubresourceScale: labelSelectorPath
apiextensions.v1.JSONSchemaProps: $ref maxItems maxLength maxProperties maximum minItems minLength minProperties minimum multipleOf x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-preserve-unknown-fields
apiextensions.v1.ServiceReference: path port
apiextensions.v1.ValidationRule: optionalOldSelf reason
apiextensions.v1.WebhookClientConfig: url
apiregistration.v1.ServiceReference: port
apps.v1.DaemonSetSpec: revisionHistoryLimit
apps.v1.DaemonSetStatus: collisionCount
apps.v1.DeploymentSpec: progressDeadlineSeconds replicas revisionHistoryLimit
apps.v1.DeploymentStatus: collisionCount terminatingReplicas
apps.v1.ReplicaSetSpec: replicas
apps.v1.ReplicaSetStatus: terminatingReplicas
apps.v1.RollingUpdateStatefulSetStrategy: partition
apps.v1.StatefulSetOrdinals: start
apps.v1.StatefulSetSpec: replicas revisionHistoryLimit serviceName
apps.v1.StatefulSetStatus: availableReplicas collisionCount
authentication.v1.TokenRequestSpec: expirationSeconds
authentication.v1.TokenRequestStatus: token
authentication.v1.TokenReviewSpec: -token
autoscaling.v1.HorizontalPodAutoscalerSpec: minReplicas targetCPUUtilizationPercentage
autoscaling.v1.HorizontalPodAutoscalerStatus: currentCPUUtilizationPercentage observedGeneration
autoscaling.v2.HPAScalingRules: selectPolicy stabilizationWindowSeconds
autoscaling.v2.HorizontalPodAutoscalerSpec: minReplicas
autoscaling.v2.HorizontalPodAutoscalerStatus: observedGeneration
autoscaling.v2.MetricTarget: averageUtilization
autoscaling.v2.MetricValueStatus: averageUtilization
batch.v1.CronJobSpec: failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone
batch.v1.JobSpec: activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector maxFailedIndexes parallelism podReplacementPolicy suspend ttlSecondsAfterFinished
batch.v1.JobStatus: failedIndexes ready terminating
batch.v1.PodFailurePolicyOnExitCodesRequirement: containerName
batch.v1.PodFailurePolicyOnPodConditionsPattern: status
batch.v1.SuccessPolicyRule: succeededCount succeededIndexes
certificates.v1.CertificateSigningRequestSpec: expirationSeconds
coordination.v1.LeaseSpec: holderIdentity leaseDurationSeconds leaseTransitions preferredHolder strategy
core.v1.AppArmorProfile: localhostProfile
core.v1.AzureDiskVolumeSource: cachingMode fsType kind readOnly
core.v1.AzureFilePersistentVolumeSource: secretNamespace
core.v1.CSIVolumeSource: fsType readOnly
core.v1.ClientIPConfig: timeoutSeconds
core.v1.ClusterTrustBundleProjection: name optional signerName
core.v1.ConfigMap: immutable
core.v1.ConfigMapEnvSource: optional
core.v1.ConfigMapKeySelector: optional
core.v1.ConfigMapProjection: optional
core.v1.ConfigMapVolumeSource: defaultMode optional
core.v1.Container: restartPolicy
core.v1.ContainerRestartRule: -action
core.v1.ContainerRestartRuleOnExitCodes: -operator
core.v1.ContainerStatus: started stopSignal
core.v1.DownwardAPIVolumeFile: mode
core.v1.DownwardAPIVolumeSource: defaultMode
core.v1.EndpointAddress: nodeName
core.v1.EndpointPort: appProtocol
core.v1.EphemeralContainer: restartPolicy
core.v1.Event: reportingComponent reportingInstance
core.v1.FCVolumeSource: lun
core.v1.FileKeySelector: optional
core.v1.GRPCAction: service
core.v1.GlusterfsPersistentVolumeSource: endpointsNamespace
core.v1.HostPathVolumeSource: type
core.v1.ISCSIPersistentVolumeSource: initiatorName
core.v1.ISCSIVolumeSource: initiatorName
core.v1.ImageVolumeStatus: -imageRef
core.v1.KeyToPath: mode
core.v1.Lifecycle: stopSignal
core.v1.LoadBalancerIngress: ipMode
core.v1.LocalVolumeSource: fsType
core.v1.NodeFeatures: supplementalGroupsPolicy
core.v1.NodeRuntimeHandler: name
core.v1.NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts userNamespaces
core.v1.NodeSwapStatus: capacity
core.v1.PersistentVolumeClaimSpec: storageClassName volumeAttributesClassName volumeMode
core.v1.PersistentVolumeClaimStatus: currentVolumeAttributesClassName
core.v1.PersistentVolumeSpec: volumeAttributesClassName volumeMode
core.v1.PodCertificateProjection: -keyType -signerName maxExpirationSeconds
core.v1.PodDNSConfigOption: value
core.v1.PodResourceClaim: resourceClaimName resourceClaimTemplateName
core.v1.PodResourceClaimStatus: resourceClaimName
core.v1.PodSchedulingGroup: podGroupName
core.v1.PodSecurityContext: fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy supplementalGroupsPolicy
core.v1.PodSpec: activeDeadlineSeconds automountServiceAccountToken enableServiceLinks hostUsers hostnameOverride preemptionPolicy priority runtimeClassName setHostnameAsFQDN shareProcessNamespace terminationGracePeriodSeconds
core.v1.PortStatus: error
core.v1.Probe: terminationGracePeriodSeconds
core.v1.ProjectedVolumeSource: defaultMode
core.v1.ReplicationControllerSpec: replicas
core.v1.ResourceHealth: message
core.v1.SeccompProfile: localhostProfile
core.v1.Secret: immutable
core.v1.SecretEnvSource: optional
core.v1.SecretKeySelector: optional
core.v1.SecretProjection: optional
core.v1.SecretVolumeSource: defaultMode optional
core.v1.SecurityContext: allowPrivilegeEscalation privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
core.v1.ServiceAccount: automountServiceAccountToken
core.v1.ServiceAccountTokenProjection: expirationSeconds
core.v1.ServicePort: appProtocol
core.v1.ServiceSpec: allocateLoadBalancerNodePorts internalTrafficPolicy ipFamilyPolicy loadBalancerClass trafficDistribution
core.v1.Toleration: tolerationSeconds
core.v1.TopologySpreadConstraint: minDomains nodeAffinityPolicy nodeTaintsPolicy
core.v1.TypedLocalObjectReference: apiGroup
core.v1.TypedObjectReference: apiGroup namespace
core.v1.VolumeMount: mountPropagation recursiveReadOnly
core.v1.VolumeMountStatus: recursiveReadOnly
core.v1.WindowsSecurityContextOptions: gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName
discovery.v1.Endpoint: hostname nodeName zone
discovery.v1.EndpointConditions: ready serving terminating
discovery.v1.EndpointPort: appProtocol name port protocol
flowcontrol.v1.ExemptPriorityLevelConfiguration: lendablePercent nominalConcurrencyShares
flowcontrol.v1.FlowSchemaSpec: matchingPrecedence
flowcontrol.v1.LimitedPriorityLevelConfiguration: borrowingLimitPercent lendablePercent nominalConcurrencyShares
flowcontrol.v1.QueuingConfiguration: handSize queueLengthLimit queues
meta.v1.DeleteOptions: gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents propagationPolicy
meta.v1.ListMeta: remainingItemCount
meta.v1.ObjectMeta: deletionGracePeriodSeconds
meta.v1.OwnerReference: blockOwnerDeletion controller
meta.v1.Preconditions: resourceVersion uid
networking.v1.IngressClassParametersReference: apiGroup namespace scope
networking.v1.IngressPortStatus: error
networking.v1.IngressSpec: ingressClassName
networking.v1.NetworkPolicyPort: endPort protocol
networking.v1.ParentReference: -name -resource
policy.v1.PodDisruptionBudgetSpec: unhealthyPodEvictionPolicy
policy.v1.PodDisruptionBudgetStatus: currentHealthy desiredHealthy disruptionsAllowed expectedPods
rbac.v1.RoleRef: apiGroup
resource.v1.AllocatedDeviceStatus: shareID
resource.v1.Device: allNodes allowMultipleAllocations bindsToNode nodeName
resource.v1.DeviceAttribute: bool int string version
resource.v1.DeviceClassSpec: extendedResourceName
resource.v1.DeviceConstraint: distinctAttribute matchAttribute
resource.v1.DeviceRequestAllocationResult: adminAccess shareID
resource.v1.DeviceToleration: tolerationSeconds
resource.v1.ExactDeviceRequest: adminAccess
resource.v1.NodeAllocatableResourceMapping: capacityKey
resource.v1.ResourceSliceSpec: allNodes nodeName perDeviceNodeSelection
scheduling.v1.PriorityClass: preemptionPolicy value
storage.v1.CSIDriverSpec: attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount preventPodSchedulingIfMissing requiresRepublish seLinuxMount serviceAccountTokenInSecrets storageCapacity
storage.v1.StorageClass: allowVolumeExpansion reclaimPolicy volumeBindingMode
storage.v1.TokenRequest: expirationSeconds
storage.v1.VolumeAttachmentSource: persistentVolumeName
storage.v1.VolumeError: errorCode
storage.v1.VolumeNodeResources: count
`;

let parsed: ReadonlyMap<string, ReadonlySet<string>> | undefined;

/** The table by type: `core.v1.PodSpec` -> fields, those left out with their sign. */
export function keptZeros(): ReadonlyMap<string, ReadonlySet<string>> {
  parsed ??= new Map(
    TABLE.trim()
      .split('\n')
      .map((line) => {
        const [type = '', fields = ''] = line.split(': ');
        return [type, new Set(fields.split(' '))];
      }),
  );
  return parsed;
}

/** `io.k8s.api.core.v1.PodSpec` -> `core.v1.PodSpec`. */
export const tableNameOf = (definition: string): string => definition.split('.').slice(-3).join('.');

/** The scalars of `schema` whose zero value stays in JSON: required ones and those of the table, as it says. */
export function keepsZero(schema: Schema): (property: string) => boolean {
  const required = new Set(schema.required);
  const kept = keptZeros().get(tableNameOf(schema['x-coracle-name'] ?? ''));
  return (property) => (required.has(property) && kept?.has(`-${property}`) !== true) || kept?.has(property) === true;
}
