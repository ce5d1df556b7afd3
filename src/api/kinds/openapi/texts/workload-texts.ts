/** Our own one-line descriptions of workloads and what serves them; the notation is that of `type-texts.ts`. */
export const WORKLOAD_TEXTS = `
@apps
ControllerRevision:
  data: The state that was kept.
  revision: The number of the state; a higher one is newer.
DaemonSetCondition, DeploymentCondition, ReplicaSetCondition, StatefulSetCondition: One thing that is true, false or unknown of the object.
  status: True, False or Unknown.
  type: What it is about.
DaemonSetSpec: Which Pods run on which nodes.
  updateStrategy: How Pods are replaced when the template changes.
DaemonSetStatus: On how many nodes the Pods run.
  currentNumberScheduled: On how many nodes a Pod runs that should.
  desiredNumberScheduled: On how many nodes a Pod should run.
  numberAvailable: On how many nodes the Pod is available.
  numberMisscheduled: On how many nodes a Pod runs that should not.
  numberReady: On how many nodes the Pod is ready.
  numberUnavailable: On how many nodes the Pod is not available.
  updatedNumberScheduled: On how many nodes the Pod is of the newest template.
DaemonSetUpdateStrategy, StatefulSetUpdateStrategy: How Pods are replaced.
  rollingUpdate: Settings of RollingUpdate.
  type: RollingUpdate, or OnDelete to replace only Pods that somebody deletes.
DeploymentSpec: Which Pods, how many, and how they are replaced.
  paused: Whether changes of the template wait.
  progressDeadlineSeconds: After how long without progress a rollout counts as stuck.
  replicas: How many Pods are wanted.
  selector: The labels by which its Pods are known; it cannot be changed.
  strategy: How Pods are replaced when the template changes.
DeploymentStatus, ReplicaSetStatus, StatefulSetStatus: How many Pods there are.
  availableReplicas: How many have been ready for minReadySeconds.
  currentReplicas: How many are of currentRevision.
  currentRevision: The revision before the update.
  fullyLabeledReplicas: How many have all labels of the template.
  readyReplicas: How many are ready.
  replicas: How many there are.
  terminatingReplicas: How many are being deleted.
  unavailableReplicas: How many are still missing.
  updateRevision: The newest revision.
  updatedReplicas: How many are of the newest template.
DeploymentStrategy: How Pods are replaced.
  rollingUpdate: Settings of RollingUpdate.
  type: RollingUpdate, or Recreate to end all old Pods first.
ReplicaSetSpec: Which Pods, and how many.
  replicas: How many Pods are wanted.
RollingUpdateDaemonSet, RollingUpdateDeployment, RollingUpdateStatefulSetStrategy: How many Pods are replaced at a time.
  maxSurge: How many Pods more than wanted there may be, as a number or a percentage.
  maxUnavailable: How many Pods may be missing, as a number or a percentage.
  partition: Only Pods with this ordinal or a higher one are replaced.
StatefulSetOrdinals: How Pods are numbered.
  start: The number of the first one.
StatefulSetPersistentVolumeClaimRetentionPolicy: What becomes of claims: Retain or Delete.
  whenDeleted: When the StatefulSet is deleted.
  whenScaled: When there are to be fewer Pods.
StatefulSetSpec: Which Pods, how many, and their storage.
  ordinals: How Pods are numbered.
  persistentVolumeClaimRetentionPolicy: What becomes of claims that are not needed any more.
  podManagementPolicy: OrderedReady makes Pods one after the other, Parallel all at once.
  replicas: How many Pods are wanted.
  serviceName: The Service that gives the Pods their domain names.
  updateStrategy: How Pods are replaced when the template changes.
  volumeClaimTemplates: The claims that every Pod gets.
@batch
CronJobSpec: When Jobs are made, and which.
  concurrencyPolicy: What happens when the last Job still runs: Allow, Forbid or Replace.
  failedJobsHistoryLimit: How many failed Jobs are kept.
  jobTemplate: What the Jobs look like.
  schedule: When, in the five fields of cron.
  startingDeadlineSeconds: How late a Job may still be started.
  successfulJobsHistoryLimit: How many successful Jobs are kept.
  suspend: Whether no Jobs are made for the present.
  timeZone: The time zone of the schedule.
CronJobStatus: Which Jobs run.
  active: The Jobs that run.
  lastScheduleTime: When a Job was last made.
  lastSuccessfulTime: When a Job last succeeded.
JobTemplateSpec: What a Job that is made from here looks like.
  spec: What is to be done.
JobCondition: One thing that is true, false or unknown of a Job.
  status: True, False or Unknown.
  type: What it is about, such as Complete or Failed.
JobSpec: What is to be done, and how often.
  activeDeadlineSeconds: How long the Job may take.
  backoffLimit: How many failed Pods make the Job fail.
  backoffLimitPerIndex: How many failed Pods make one index fail.
  completionMode: NonIndexed counts successes; Indexed wants one for every index.
  completions: How many Pods must succeed.
  managedBy: Who runs the Job, when it is not the built-in controller.
  manualSelector: Whether the selector is given by hand.
  maxFailedIndexes: How many failed indexes make the Job fail.
  parallelism: How many Pods may run at a time.
  podFailurePolicy: What a failed Pod means.
  podReplacementPolicy: When a Pod is replaced: TerminatingOrFailed or Failed.
  selector: The labels of its Pods; filled by the system.
  successPolicy: When the Job has succeeded before all Pods have.
  suspend: Whether no Pods run for the present.
  ttlSecondsAfterFinished: After how long the finished Job is deleted.
JobStatus: How far a Job is.
  active: How many Pods run or wait to run.
  completedIndexes: The indexes that succeeded.
  completionTime: When the Job succeeded.
  failed: How many Pods failed.
  failedIndexes: The indexes that failed.
  ready: How many Pods are ready.
  startTime: When the Job began.
  succeeded: How many Pods succeeded.
  terminating: How many Pods are being deleted.
  uncountedTerminatedPods: Pods that have ended and are not counted yet.
PodFailurePolicy: What a failed Pod means.
  rules: The first rule that fits is used.
PodFailurePolicyOnExitCodesRequirement: Exit codes of containers.
  containerName: The container; any one when empty.
  operator: In or NotIn.
  values: The exit codes.
PodFailurePolicyOnPodConditionsPattern: A condition of a Pod.
  status: The status it must have.
  type: The type of the condition.
PodFailurePolicyRule: What some failures mean.
  action: FailJob, FailIndex, Ignore or Count.
  onExitCodes: The exit codes it is about.
  onPodConditions: The conditions it is about.
SuccessPolicy: When a Job has succeeded.
  rules: It has when one of these holds.
SuccessPolicyRule: A set of indexes that is enough.
  succeededCount: How many of them must succeed.
  succeededIndexes: The indexes.
UncountedTerminatedPods: Pods that are not counted yet.
  failed: The uids of those that failed.
  succeeded: The uids of those that succeeded.
@autoscaling
CrossVersionObjectReference: An object whose replicas can be set.
Scale: The number of copies of something.
ScaleSpec: How many copies are wanted.
  replicas: How many.
ScaleStatus: How many copies there are.
  replicas: How many.
  selector: The labels of the Pods, as text.
HorizontalPodAutoscalerSpec: What is scaled, and by what.
  maxReplicas: The most replicas.
  minReplicas: The fewest replicas.
  scaleTargetRef: What is scaled.
  targetCPUUtilizationPercentage: How much of the requested CPU the Pods should use.
HorizontalPodAutoscalerStatus: What was measured and decided.
  currentCPUUtilizationPercentage: How much of the requested CPU the Pods use.
  currentReplicas: How many replicas there are.
  desiredReplicas: How many replicas there should be.
  lastScaleTime: When the number was last changed.
@autoscalingv2
CrossVersionObjectReference: An object.
HPAScalingPolicy: How fast the number may change.
  periodSeconds: The time the value is for.
  type: Pods or Percent.
  value: By how much it may change.
HPAScalingRules: How the number changes in one direction.
  policies: How fast it may change.
  selectPolicy: Which policy counts: Max, Min, or Disabled for no change.
  stabilizationWindowSeconds: How long what was advised before is kept in mind.
  tolerance: How far from the target nothing is done.
HorizontalPodAutoscalerBehavior: How the number changes.
  scaleDown: How it falls.
  scaleUp: How it rises.
HorizontalPodAutoscalerCondition: One thing that is true, false or unknown of the autoscaler.
  status: True, False or Unknown.
  type: What it is about.
HorizontalPodAutoscalerSpec: What is scaled, and by what.
  behavior: How the number changes.
  maxReplicas: The most replicas.
  metrics: What is measured; the highest answer counts.
  minReplicas: The fewest replicas.
  scaleTargetRef: What is scaled.
HorizontalPodAutoscalerStatus: What was measured and decided.
  currentMetrics: What was last measured.
  currentReplicas: How many replicas there are.
  desiredReplicas: How many replicas there should be.
  lastScaleTime: When the number was last changed.
MetricIdentifier: A metric.
  selector: Which series of the metric.
MetricSpec, MetricStatus: Something that is measured; the field named by type is set.
  containerResource: A resource of one container of each Pod.
  external: A metric from outside the cluster.
  object: A metric of one object.
  pods: A metric of each Pod.
  resource: A resource of each Pod.
  type: ContainerResource, External, Object, Pods or Resource.
ContainerResourceMetricSource, ExternalMetricSource, ObjectMetricSource, PodsMetricSource, ResourceMetricSource: What is measured and the value it should have.
  container: The container.
  describedObject: The object.
  metric: The metric.
  name: The resource, such as cpu.
  target: The value it should have.
ContainerResourceMetricStatus, ExternalMetricStatus, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus: What was measured.
  container: The container.
  current: The value it has.
  describedObject: The object.
  metric: The metric.
  name: The resource, such as cpu.
MetricTarget, MetricValueStatus: A value of a metric.
  averageUtilization: The average over Pods, in percent of their requests.
  averageValue: The average over Pods.
  type: Utilization, Value or AverageValue.
  value: The value.
@policy
Eviction: Asks for a Pod to be deleted if its disruption budgets allow it.
  deleteOptions: How it is deleted.
PodDisruptionBudgetSpec: How many Pods may be down by choice.
  maxUnavailable: How many may be down, as a number or a percentage.
  minAvailable: How many must stay, as a number or a percentage.
  selector: The Pods it is about.
  unhealthyPodEvictionPolicy: When Pods that are not ready may be evicted: IfHealthyBudget or AlwaysAllow.
PodDisruptionBudgetStatus: How many Pods may be down now.
  currentHealthy: How many Pods are ready.
  desiredHealthy: How many Pods must be ready.
  disruptedPods: Pods whose eviction was allowed and that are not gone yet.
  disruptionsAllowed: How many Pods may be evicted now.
  expectedPods: How many Pods are counted.
@scheduling
PriorityClass:
  description: When the class is to be used, for people to read.
  globalDefault: Whether Pods without a class get this one.
  preemptionPolicy: Whether other Pods may be removed for these: PreemptLowerPriority or Never.
  value: The priority; more is more important.
@node
RuntimeClass: A way in which Pods are run.
  handler: How the runtime calls it.
  overhead: What a Pod needs beside its containers.
  scheduling: The nodes that can run it.
Overhead: What a Pod needs beside its containers.
  podFixed: The amounts, by resource.
Scheduling: The nodes that can run a RuntimeClass.
  nodeSelector: The labels of such nodes.
  tolerations: What is added to the tolerations of a Pod.
`;
