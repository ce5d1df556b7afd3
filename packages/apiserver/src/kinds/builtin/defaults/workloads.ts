/** Defaults of apps, batch and autoscaling that are more than values. */
import { isObject } from '@coracle/apimachinery/types/read-value';
import { setTemplateDefaults } from './core.ts';
import { ensureObject, type MutableObject, member, preset } from './preset.ts';

const MAX_INT32 = 2_147_483_647;

/** The pod template of Deployments, DaemonSets and ReplicaSets. */
export const setWorkload = (object: MutableObject): void => setTemplateDefaults(member(object, 'spec'));

export function setStatefulSet(set: MutableObject): void {
  const spec = member(set, 'spec');
  const strategy = spec && ensureObject(spec, 'updateStrategy');
  // One that names its type says of partitions what it says.
  if (strategy !== undefined && (strategy['type'] == null || isObject(strategy['rollingUpdate']))) {
    preset(strategy, { type: 'RollingUpdate' });
    const rolling = strategy['type'] === 'RollingUpdate' ? ensureObject(strategy, 'rollingUpdate') : undefined;
    if (rolling !== undefined) preset(rolling, { partition: 0 });
  }
  // The gate of this field (MaxUnavailableStatefulSet) is shut by default: nobody hears of it.
  delete member(strategy, 'rollingUpdate')?.['maxUnavailable'];
  setTemplateDefaults(spec);
}

export function setJob(job: MutableObject): void {
  const spec = ensureObject(job, 'spec');
  if (spec === undefined) return;
  if (spec['completions'] == null && spec['parallelism'] == null) preset(spec, { completions: 1 });
  preset(spec, {
    parallelism: 1,
    backoffLimit: spec['backoffLimitPerIndex'] == null ? 6 : MAX_INT32,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: spec['podFailurePolicy'] == null ? 'TerminatingOrFailed' : 'Failed',
  });
  takeLabels(spec, job);
  setTemplateDefaults(spec);
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

export const setCronJob = (cronJob: MutableObject): void =>
  setTemplateDefaults(member(member(member(cronJob, 'spec'), 'jobTemplate'), 'spec'));

const percent = { type: 'Percent', value: 100, periodSeconds: 15 };
const SCALING: Readonly<Record<string, Record<string, unknown>>> = {
  scaleUp: {
    stabilizationWindowSeconds: 0,
    selectPolicy: 'Max',
    policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent],
  },
  scaleDown: { selectPolicy: 'Max', policies: [percent] },
};

/** v1 keeps its one target in a field of its own; only v2 has metrics to default. */
export function setAutoscaler(hpa: MutableObject): void {
  const spec = member(hpa, 'spec');
  if (spec === undefined || hpa['apiVersion'] !== 'autoscaling/v2') return;
  const target = { type: 'Utilization', averageUtilization: 80 };
  preset(spec, { metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }] });
  // Whoever says how to scale in one way is shown what that means for both.
  const behavior = member(spec, 'behavior');
  for (const [way, values] of behavior === undefined ? [] : Object.entries(SCALING)) {
    const rules = ensureObject(behavior!, way);
    if (rules !== undefined) preset(rules, structuredClone(values));
  }
}
