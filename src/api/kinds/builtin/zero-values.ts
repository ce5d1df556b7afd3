/**
 * What Go writes for a field that nobody sent: numbers, booleans and texts without `omitempty` are 0, false and '',
 * structs (`status`, `template.metadata`) are never left out, and lists, maps, pointers and times without it are null. So
 * they are in every object that kube-apiserver shows, a JSON patch may reach below them, and a client need not send them
 * although the published types call them required.
 *
 * Not every such field is here: one whose zero or null upstream refuses stays required, and so says its name.
 */
import type { Schema } from '../../schema/schema.ts';

/**
 * `package.version.Type: field field ...` per line. `field?` is one that Go shows as null. Facts of the Go types and the
 * validation of Kubernetes 1.36.
 */
const TABLE = `
admissionregistration.v1.MutatingAdmissionPolicy: spec
admissionregistration.v1.MutatingAdmissionPolicyBinding: spec
admissionregistration.v1.ValidatingAdmissionPolicy: spec status
admissionregistration.v1.ValidatingAdmissionPolicyBinding: spec
apiextensions.v1.CustomResourceDefinitionCondition: lastTransitionTime?
apiextensions.v1.CustomResourceDefinitionStatus: conditions? storedVersions?
apiextensions.v1.CustomResourceDefinitionVersion: served storage
apiregistration.v1.APIService: status
apiregistration.v1.APIServiceCondition: lastTransitionTime?
apps.v1.ControllerRevision: data? revision
apps.v1.DaemonSet: status
apps.v1.DaemonSetCondition: lastTransitionTime? status type
apps.v1.DaemonSetSpec: template
apps.v1.DaemonSetStatus: currentNumberScheduled desiredNumberScheduled numberMisscheduled numberReady
apps.v1.Deployment: status
apps.v1.DeploymentCondition: lastTransitionTime? lastUpdateTime? status type
apps.v1.DeploymentSpec: template
apps.v1.ReplicaSet: status
apps.v1.ReplicaSetCondition: lastTransitionTime? status type
apps.v1.ReplicaSetSpec: template
apps.v1.ReplicaSetStatus: replicas
apps.v1.StatefulSet: status
apps.v1.StatefulSetCondition: lastTransitionTime? status type
apps.v1.StatefulSetOrdinals: start
apps.v1.StatefulSetSpec: serviceName template
apps.v1.StatefulSetStatus: availableReplicas replicas
authentication.v1.TokenRequestSpec: audiences? boundObjectRef? expirationSeconds?
autoscaling.v1.HorizontalPodAutoscaler: spec status
autoscaling.v1.HorizontalPodAutoscalerSpec: scaleTargetRef
autoscaling.v1.HorizontalPodAutoscalerStatus: currentReplicas desiredReplicas
autoscaling.v2.ContainerResourceMetricStatus: container current name
autoscaling.v2.ExternalMetricStatus: current metric
autoscaling.v2.HorizontalPodAutoscaler: spec status
autoscaling.v2.HorizontalPodAutoscalerCondition: lastTransitionTime? status type
autoscaling.v2.HorizontalPodAutoscalerSpec: scaleTargetRef
autoscaling.v2.HorizontalPodAutoscalerStatus: currentMetrics? desiredReplicas
autoscaling.v2.MetricStatus: type
autoscaling.v2.ObjectMetricStatus: current describedObject metric
autoscaling.v2.PodsMetricStatus: current metric
autoscaling.v2.ResourceMetricStatus: current name
batch.v1.CronJob: spec status
batch.v1.CronJobSpec: jobTemplate
batch.v1.Job: status
batch.v1.JobCondition: lastProbeTime? lastTransitionTime?
batch.v1.JobSpec: template
batch.v1.JobTemplateSpec: metadata spec
batch.v1.PodFailurePolicy: rules?
certificates.v1.CertificateSigningRequest: spec status
certificates.v1.CertificateSigningRequestCondition: lastTransitionTime? lastUpdateTime?
coordination.v1.Lease: spec
core.v1.AttachedVolume: devicePath name
core.v1.AzureFilePersistentVolumeSource: secretNamespace?
core.v1.ContainerImage: names?
core.v1.ContainerStateRunning: startedAt?
core.v1.ContainerStateTerminated: exitCode finishedAt? startedAt?
core.v1.ContainerStatus: image imageID name ready restartCount
core.v1.DaemonEndpoint: Port
core.v1.Event: eventTime? firstTimestamp? involvedObject lastTimestamp? reportingComponent reportingInstance source
core.v1.EventSeries: lastObservedTime?
core.v1.HTTPHeader: value
core.v1.ISCSIPersistentVolumeSource: lun
core.v1.ISCSIVolumeSource: lun
core.v1.LimitRange: spec
core.v1.LimitRangeSpec: limits?
core.v1.LinuxContainerUser: gid uid
core.v1.NamespaceCondition: lastTransitionTime? status type
core.v1.Node: spec status
core.v1.NodeAddress: address type
core.v1.NodeAllocatableResourceClaimStatus: resources?
core.v1.NodeCondition: lastHeartbeatTime? lastTransitionTime? status type
core.v1.NodeDaemonEndpoints: kubeletEndpoint
core.v1.NodeRuntimeHandler: name
core.v1.NodeStatus: daemonEndpoints nodeInfo
core.v1.NodeSystemInfo: architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID operatingSystem osImage systemUUID
core.v1.PersistentVolumeClaimCondition: lastProbeTime? lastTransitionTime? status type
core.v1.PersistentVolumeClaimSpec: resources
core.v1.PersistentVolumeClaimTemplate: metadata spec
core.v1.PodCondition: lastProbeTime? lastTransitionTime?
core.v1.PodExtendedResourceClaimStatus: requestMappings?
core.v1.PodTemplate: template
core.v1.PodTemplateSpec: metadata
core.v1.PortStatus: port protocol
core.v1.PreferredSchedulingTerm: preference
core.v1.ProjectedVolumeSource: sources?
core.v1.ReplicationController: status
core.v1.ReplicationControllerCondition: lastTransitionTime? status type
core.v1.ReplicationControllerStatus: replicas
core.v1.ResourceQuota: spec status
core.v1.ScaleIOPersistentVolumeSource: secretRef?
core.v1.ScaleIOVolumeSource: secretRef?
core.v1.SleepAction: seconds
core.v1.Sysctl: value
core.v1.TypedLocalObjectReference: apiGroup?
core.v1.TypedObjectReference: apiGroup?
core.v1.VolumeMountStatus: mountPath name
discovery.v1.Endpoint: conditions
discovery.v1.EndpointSlice: endpoints? ports?
events.v1.Event: deprecatedFirstTimestamp? deprecatedLastTimestamp? deprecatedSource eventTime? regarding
events.v1.EventSeries: lastObservedTime?
flowcontrol.v1.FlowSchema: status
flowcontrol.v1.FlowSchemaCondition: lastTransitionTime?
flowcontrol.v1.FlowSchemaSpec: priorityLevelConfiguration
flowcontrol.v1.PriorityLevelConfiguration: status
flowcontrol.v1.PriorityLevelConfigurationCondition: lastTransitionTime?
flowcontrol.v1.ResourcePolicyRule: namespaces?
meta.v1.Condition: lastTransitionTime? message reason
networking.v1.HTTPIngressPath: backend
networking.v1.IPAddress: spec
networking.v1.Ingress: spec status
networking.v1.IngressClass: spec
networking.v1.IngressPortStatus: port protocol
networking.v1.IngressServiceBackend: port
networking.v1.IngressStatus: loadBalancer
networking.v1.ServiceCIDR: spec status
policy.v1.PodDisruptionBudget: spec status
policy.v1.PodDisruptionBudgetStatus: currentHealthy desiredHealthy disruptionsAllowed expectedPods
rbac.v1.ClusterRole: rules?
rbac.v1.Role: rules?
resource.v1.AllocatedDeviceStatus: conditions?
resource.v1.AllocationResult: devices
resource.v1.CapacityRequestPolicy: default?
resource.v1.Counter: value
resource.v1.DeviceCapacity: value
resource.v1.DeviceClaim: requests?
resource.v1.DeviceClass: spec
resource.v1.ResourceClaim: spec status
resource.v1.ResourceClaimSpec: devices
resource.v1.ResourceClaimTemplate: spec
resource.v1.ResourceClaimTemplateSpec: metadata spec
resource.v1.ResourcePool: generation
resource.v1.ResourceSlice: spec
resource.v1.ResourceSliceSpec: pool
scheduling.v1.PriorityClass: value
storage.v1.CSIDriver: spec
storage.v1.CSINode: spec
storage.v1.CSINodeDriver: topologyKeys?
storage.v1.CSINodeSpec: drivers?
storage.v1.TokenRequest: audience
storage.v1.VolumeAttachment: spec status
storage.v1.VolumeAttachmentSpec: source
storage.v1.VolumeAttachmentStatus: attached
storage.v1.VolumeError: time?
`;

let parsed: ReadonlyMap<string, readonly string[]> | undefined;

function fieldsByType(): ReadonlyMap<string, readonly string[]> {
  parsed ??= new Map(
    TABLE.trim()
      .split('\n')
      .map((line) => {
        const [type = '', fields = ''] = line.split(': ');
        return [type, fields.split(' ')];
      }),
  );
  return parsed;
}

/**
 * The zero values of a definition (`io.k8s.api.apps.v1.Deployment`), by property; undefined when it has none.
 * @throws Error when the table names a property that the type does not have.
 */
export function zeroValuesOf(
  definition: string,
  properties: Readonly<Record<string, Schema>>,
): Readonly<Record<string, unknown>> | undefined {
  const fields = fieldsByType().get(definition.split('.').slice(-3).join('.'));
  if (fields === undefined) return undefined;
  const zeros: Record<string, unknown> = Object.create(null);
  for (const field of fields) {
    const isNull = field.endsWith('?');
    const name = isNull ? field.slice(0, -1) : field;
    const property = properties[name];
    if (property === undefined) throw new Error(`zero-values.ts: ${definition} has no ${name}`);
    zeros[name] = isNull ? null : zeroOf(property);
  }
  return zeros;
}

function zeroOf(property: Schema): unknown {
  switch (property.type) {
    case 'integer':
      return 0;
    case 'boolean':
      return false;
    case 'string':
      return '';
    case 'object':
      return {};
    default:
      if (property.format === 'quantity') return '0';
      throw new Error(`zero-values.ts: no zero for ${property['x-coracle-name'] ?? property.type}`);
  }
}
