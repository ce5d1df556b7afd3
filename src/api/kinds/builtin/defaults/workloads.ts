/** Defaults of apps, batch and autoscaling. */
import type { Steps } from '../../../meta/steps.ts';
import { setClaimDefaults, setTemplateDefaults } from './core.ts';
import { ensureObject, type GroupDefaults, type MutableObject, member, members, preset } from './preset.ts';

const HISTORY = 10;
const MAX_INT32 = 2_147_483_647;

/** Runs `set` on spec with the pod template's own defaults after it. */
const withTemplate = (set: (spec: MutableObject, object: MutableObject) => void) =>
  function* (object: MutableObject): Steps<void> {
    const spec = ensureObject(object, 'spec');
    if (spec === undefined) return;
    set(spec, object);
    yield* setTemplateDefaults(spec);
  };

const setDeployment = withTemplate((spec) => {
  preset(spec, { replicas: 1, revisionHistoryLimit: HISTORY, progressDeadlineSeconds: 600 });
  setRollingUpdate(spec, 'strategy', { maxUnavailable: '25%', maxSurge: '25%' });
});

const setDaemonSet = withTemplate((spec) => {
  preset(spec, { revisionHistoryLimit: HISTORY });
  setRollingUpdate(spec, 'updateStrategy', { maxUnavailable: 1, maxSurge: 0 });
});

const setStatefulSet = withTemplate((spec) => {
  preset(spec, { replicas: 1, podManagementPolicy: 'OrderedReady', revisionHistoryLimit: HISTORY });
  setRollingUpdate(spec, 'updateStrategy', { partition: 0 });
  const retention = ensureObject(spec, 'persistentVolumeClaimRetentionPolicy');
  if (retention !== undefined) preset(retention, { whenDeleted: 'Retain', whenScaled: 'Retain' });
  for (const claim of members(spec, 'volumeClaimTemplates')) {
    preset(claim, { apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
    setClaimDefaults(claim);
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

const setJob = withTemplate((spec, job) => {
  if (spec['completions'] == null && spec['parallelism'] == null) preset(spec, { completions: 1 });
  preset(spec, {
    parallelism: 1,
    backoffLimit: spec['backoffLimitPerIndex'] == null ? 6 : MAX_INT32,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: spec['podFailurePolicy'] == null ? 'TerminatingOrFailed' : 'Failed',
  });
  setFailurePolicy(spec);
  selectOwnPods(spec, job);
  takeLabels(spec, job);
});

function setFailurePolicy(spec: MutableObject): void {
  for (const rule of members(member(spec, 'podFailurePolicy'), 'rules')) {
    for (const pattern of members(rule, 'onPodConditions')) preset(pattern, { status: 'True' });
  }
}

/** A Job selects its Pods by its own uid, once it has one and unless the user does the selecting. */
function selectOwnPods(spec: MutableObject, job: MutableObject): void {
  const metadata = member(job, 'metadata');
  const uid = metadata?.['uid'];
  const name = metadata?.['name'];
  if (spec['manualSelector'] === true || typeof uid !== 'string' || typeof name !== 'string') return;
  const template = member(spec, 'template');
  if (template === undefined || spec['selector'] != null) return;
  const templateMetadata = ensureObject(template, 'metadata');
  const labels = templateMetadata === undefined ? undefined : ensureObject(templateMetadata, 'labels');
  if (labels === undefined) return;
  preset(labels, {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  });
  spec['selector'] = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } };
}

/** A Job without labels has those of its Pods, with the ones by which it selects them. */
function takeLabels(spec: MutableObject, job: MutableObject): void {
  const metadata = member(job, 'metadata');
  if (metadata === undefined || typeof metadata['uid'] !== 'string') return;
  const labels = member(member(member(spec, 'template'), 'metadata'), 'labels');
  if (labels === undefined || Object.keys(member(metadata, 'labels') ?? {}).length > 0) return;
  metadata['labels'] = { ...labels };
}

function* setCronJob(cronJob: MutableObject): Steps<void> {
  const spec = ensureObject(cronJob, 'spec');
  if (spec === undefined) return;
  preset(spec, {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  });
  const jobSpec = member(member(spec, 'jobTemplate'), 'spec');
  if (jobSpec === undefined) return;
  setFailurePolicy(jobSpec);
  yield* setTemplateDefaults(jobSpec);
}

export const APPS_DEFAULTS: GroupDefaults = {
  deployments: setDeployment,
  daemonsets: setDaemonSet,
  statefulsets: setStatefulSet,
  replicasets: withTemplate((spec) => preset(spec, { replicas: 1 })),
};

export const BATCH_DEFAULTS: GroupDefaults = { jobs: setJob, cronjobs: setCronJob };

/** v1 keeps its one target in a field of its own; only v2 has metrics to default. */
export const AUTOSCALING_DEFAULTS: GroupDefaults = {
  horizontalpodautoscalers: (hpa) => {
    const spec = ensureObject(hpa, 'spec');
    if (spec === undefined) return;
    preset(spec, { minReplicas: 1 });
    if (hpa['apiVersion'] === 'autoscaling/v2') {
      const target = { type: 'Utilization', averageUtilization: 80 };
      preset(spec, { metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }] });
    }
  },
};
