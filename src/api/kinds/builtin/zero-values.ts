/**
 * What Go writes for a field that nobody sent: numbers, booleans and texts without `omitempty` are 0, false and '',
 * structs (`status`, `template.metadata`) are never left out. So they are in every object that kube-apiserver shows, a
 * JSON patch may reach below them, and a client need not send them although the published types call them required.
 *
 * Not every such field is here: a text or number whose zero upstream refuses stays required, and so says its name.
 */
import type { Schema } from '../../schema/schema.ts';

/**
 * `package.version.Type: field field ...` per line. `field?` is one that Go shows as null: it may be absent, and stays
 * so. Facts of the Go types and the validation of Kubernetes 1.36.
 */
const TABLE = `
admissionregistration.v1.MutatingAdmissionPolicy: spec
admissionregistration.v1.MutatingAdmissionPolicyBinding: spec
admissionregistration.v1.ValidatingAdmissionPolicy: spec status
admissionregistration.v1.ValidatingAdmissionPolicyBinding: spec
apiextensions.v1.CustomResourceDefinitionVersion: served storage
apps.v1.ControllerRevision: revision
apps.v1.DaemonSet: status
apps.v1.DaemonSetCondition: status type
apps.v1.DaemonSetSpec: template
apps.v1.DaemonSetStatus: currentNumberScheduled desiredNumberScheduled numberMisscheduled numberReady
apps.v1.Deployment: status
apps.v1.DeploymentCondition: status type
apps.v1.DeploymentSpec: template
apps.v1.ReplicaSet: status
apps.v1.ReplicaSetCondition: status type
apps.v1.ReplicaSetSpec: template
apps.v1.ReplicaSetStatus: replicas
apps.v1.StatefulSet: status
apps.v1.StatefulSetCondition: status type
apps.v1.StatefulSetOrdinals: start
apps.v1.StatefulSetSpec: serviceName template
apps.v1.StatefulSetStatus: availableReplicas replicas
autoscaling.v1.HorizontalPodAutoscaler: spec status
autoscaling.v1.HorizontalPodAutoscalerSpec: scaleTargetRef
autoscaling.v1.HorizontalPodAutoscalerStatus: currentReplicas desiredReplicas
autoscaling.v2.ContainerResourceMetricStatus: container current name
autoscaling.v2.ExternalMetricStatus: current metric
autoscaling.v2.HorizontalPodAutoscaler: spec status
autoscaling.v2.HorizontalPodAutoscalerCondition: status type
autoscaling.v2.HorizontalPodAutoscalerSpec: scaleTargetRef
autoscaling.v2.HorizontalPodAutoscalerStatus: desiredReplicas
autoscaling.v2.MetricStatus: type
autoscaling.v2.ObjectMetricStatus: current describedObject metric
autoscaling.v2.PodsMetricStatus: current metric
autoscaling.v2.ResourceMetricStatus: current name
batch.v1.CronJob: spec status
batch.v1.CronJobSpec: jobTemplate
batch.v1.Job: status
batch.v1.JobSpec: template
batch.v1.JobTemplateSpec: metadata spec
certificates.v1.CertificateSigningRequest: spec status
coordination.v1.Lease: spec
core.v1.AttachedVolume: devicePath name
core.v1.ContainerStateTerminated: exitCode
core.v1.ContainerStatus: image imageID name ready restartCount
core.v1.DaemonEndpoint: Port
core.v1.Event: involvedObject reportingComponent reportingInstance source
core.v1.HTTPHeader: value
core.v1.ISCSIPersistentVolumeSource: lun
core.v1.ISCSIVolumeSource: lun
core.v1.LimitRange: spec
core.v1.LimitRangeSpec: limits?
core.v1.LinuxContainerUser: gid uid
core.v1.NamespaceCondition: status type
core.v1.Node: spec status
core.v1.NodeAddress: address type
core.v1.NodeCondition: status type
core.v1.NodeDaemonEndpoints: kubeletEndpoint
core.v1.NodeStatus: daemonEndpoints nodeInfo
core.v1.NodeSystemInfo: architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID operatingSystem osImage systemUUID
core.v1.PersistentVolumeClaimCondition: status type
core.v1.PersistentVolumeClaimSpec: resources
core.v1.PersistentVolumeClaimTemplate: metadata spec
core.v1.PodTemplate: template
core.v1.PodTemplateSpec: metadata
core.v1.PortStatus: port protocol
core.v1.PreferredSchedulingTerm: preference
core.v1.ReplicationController: status
core.v1.ReplicationControllerCondition: status type
core.v1.ReplicationControllerStatus: replicas
core.v1.ResourceQuota: spec status
core.v1.SleepAction: seconds
core.v1.Sysctl: value
core.v1.VolumeMountStatus: mountPath name
discovery.v1.Endpoint: conditions
events.v1.Event: deprecatedSource regarding
flowcontrol.v1.FlowSchema: status
flowcontrol.v1.FlowSchemaSpec: priorityLevelConfiguration
flowcontrol.v1.PriorityLevelConfiguration: status
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
resource.v1.AllocationResult: devices
resource.v1.Counter: value
resource.v1.DeviceCapacity: value
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
storage.v1.CSINodeSpec: drivers?
storage.v1.TokenRequest: audience
storage.v1.VolumeAttachment: spec status
storage.v1.VolumeAttachmentSpec: source
storage.v1.VolumeAttachmentStatus: attached
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
 * The zero values of a definition (`io.k8s.api.apps.v1.Deployment`), by property; undefined when it has none. A value of
 * undefined belongs to a property that may be absent and is not written.
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
    const absent = field.endsWith('?');
    const name = absent ? field.slice(0, -1) : field;
    const property = properties[name];
    if (property === undefined) throw new Error(`zero-values.ts: ${definition} has no ${name}`);
    zeros[name] = absent ? undefined : zeroOf(property);
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
