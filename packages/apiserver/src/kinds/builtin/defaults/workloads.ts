/** Defaults of apps, batch and autoscaling. */
import { isObject } from '@coracle/apimachinery/types/read-value';
import { setTemplateDefaults } from './core.ts';
import { presetsOf } from './kind-defaults.ts';
import { ensureObject, type MutableObject, member, members, preset } from './preset.ts';

const setClaimDefaults = presetsOf('persistentvolumeclaims');
const HISTORY = 10;
const MAX_INT32 = 2_147_483_647;

/** Runs `set` on spec with the pod template's own defaults after it. */
const withTemplate =
  (set: (spec: MutableObject, object: MutableObject) => void) =>
  (object: MutableObject): void => {
    const spec = ensureObject(object, 'spec');
    if (spec === undefined) return;
    set(spec, object);
    setTemplateDefaults(spec);
  };

export const setDeployment = withTemplate((spec) => {
  preset(spec, { replicas: 1, revisionHistoryLimit: HISTORY, progressDeadlineSeconds: 600 });
  setRollingUpdate(spec, 'strategy', { maxUnavailable: '25%', maxSurge: '25%' });
});

export const setDaemonSet = withTemplate((spec) => {
  preset(spec, { revisionHistoryLimit: HISTORY });
  setRollingUpdate(spec, 'updateStrategy', { maxUnavailable: 1, maxSurge: 0 });
});

export const setReplicaSet = withTemplate((spec) => preset(spec, { replicas: 1 }));

export const setStatefulSet = withTemplate((spec) => {
  preset(spec, { replicas: 1, podManagementPolicy: 'OrderedReady', revisionHistoryLimit: HISTORY });
  const strategy = ensureObject(spec, 'updateStrategy');
  // One that names its type says of partitions what it says.
  if (strategy !== undefined && (strategy['type'] == null || isObject(strategy['rollingUpdate']))) {
    setRollingUpdate(spec, 'updateStrategy', { partition: 0 });
  }
  // The gate of this field (MaxUnavailableStatefulSet) is shut by default: nobody hears of it.
  delete member(strategy, 'rollingUpdate')?.['maxUnavailable'];
  const retention = ensureObject(spec, 'persistentVolumeClaimRetentionPolicy');
  if (retention !== undefined) preset(retention, { whenDeleted: 'Retain', whenScaled: 'Retain' });
  for (const claim of members(spec, 'volumeClaimTemplates')) {
    preset(claim, { apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
    setClaimDefaults?.(claim);
  }
});

function setRollingUpdate(spec: MutableObject, field: string, values: Record<string, unknown>): void {
  const strategy = ensureObject(spec, field);
  if (strategy === undefined) return;
  preset(strategy, { type: 'RollingUpdate' });
  if (strategy['type'] !== 'RollingUpdate') return;
  const rolling = ensureObject(strategy, 'rollingUpdate');
  if (rolling !== undefined) preset(rolling, values);
}

export const setJob = withTemplate((spec, job) => {
  if (spec['completions'] == null && spec['parallelism'] == null) preset(spec, { completions: 1 });
  preset(spec, {
    parallelism: 1,
    backoffLimit: spec['backoffLimitPerIndex'] == null ? 6 : MAX_INT32,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: spec['podFailurePolicy'] == null ? 'TerminatingOrFailed' : 'Failed',
  });
  setFailurePolicy(spec);
  takeLabels(spec, job);
});

function setFailurePolicy(spec: MutableObject): void {
  for (const rule of members(member(spec, 'podFailurePolicy'), 'rules')) {
    for (const pattern of members(rule, 'onPodConditions')) preset(pattern, { status: 'True' });
  }
}

/** A Job without labels has those of its Pods, with the ones by which it selects them: not before it has those. */
function takeLabels(spec: MutableObject, job: MutableObject): void {
  const labels = member(member(member(spec, 'template'), 'metadata'), 'labels');
  const metadata = member(job, 'metadata');
  if (labels === undefined || metadata === undefined) return;
  if (spec['manualSelector'] !== true && labels[CONTROLLER_UID] === undefined) return;
  if (Object.keys(member(metadata, 'labels') ?? {}).length === 0) metadata['labels'] = { ...labels };
}

/** Label of the Pods of a Job, by which it selects them. */
export const CONTROLLER_UID = 'batch.kubernetes.io/controller-uid';

export function setCronJob(cronJob: MutableObject): void {
  const jobSpec = member(member(member(cronJob, 'spec'), 'jobTemplate'), 'spec');
  if (jobSpec === undefined) return;
  setFailurePolicy(jobSpec);
  setTemplateDefaults(jobSpec);
}

const percent = { type: 'Percent', value: 100, periodSeconds: 15 };
const SCALING: Readonly<Record<string, Record<string, unknown>>> = {
  scaleUp: {
    stabilizationWindowSeconds: 0,
    selectPolicy: 'Max',
    policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent],
  },
  scaleDown: { selectPolicy: 'Max', policies: [percent] },
};

/** Whoever says how to scale in one way is shown what that means for both. */
function setScaling(behavior: MutableObject | undefined): void {
  if (behavior === undefined) return;
  for (const [way, values] of Object.entries(SCALING)) {
    const rules = ensureObject(behavior, way);
    if (rules !== undefined) preset(rules, structuredClone(values));
  }
}

/** v1 keeps its one target in a field of its own; only v2 has metrics to default. */
export function setAutoscaler(hpa: MutableObject): void {
  const spec = ensureObject(hpa, 'spec');
  if (spec === undefined) return;
  preset(spec, { minReplicas: 1 });
  if (hpa['apiVersion'] === 'autoscaling/v2') {
    const target = { type: 'Utilization', averageUtilization: 80 };
    preset(spec, { metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }] });
    setScaling(member(spec, 'behavior'));
  }
}
