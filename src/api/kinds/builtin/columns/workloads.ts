/** Cells of apps, batch, autoscaling and policy. */
import { type JsonObject, numberAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { age, ageSince, humanDuration } from './age.ts';
import { HPA_CELLS } from './autoscaler.ts';
import {
  type Cell,
  type Cells,
  containerImages,
  containerNames,
  formatLabels,
  formatSelector,
  type GroupCells,
  isConditionTrue,
  NONE,
  selectorText,
  text,
  UNSET,
} from './cell.ts';

const podSpec = (object: JsonObject): unknown => valueAt(object, 'spec', 'template', 'spec');
const CONTAINERS: Cells = {
  Containers: (object) => containerNames(podSpec(object)),
  Images: (object) => containerImages(podSpec(object)),
};
const selector: Cell = (object) => formatSelector(valueAt(object, 'spec', 'selector'));

const status =
  (field: string): Cell =>
  (object) =>
    numberAt(object, 'status', field);

const readyOfDesired: Cell = (object) =>
  `${numberAt(object, 'status', 'readyReplicas')}/${numberAt(object, 'spec', 'replicas')}`;

function controllerName(revision: JsonObject): string {
  const owner = objectsAt(revision, 'metadata', 'ownerReferences').find((ref) => ref['controller'] === true);
  if (owner === undefined) return NONE;
  const apiVersion = textAt(owner, 'apiVersion');
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return `${textAt(owner, 'kind')}${group === '' ? '' : `.${group}`}`.toLowerCase().concat(`/${textAt(owner, 'name')}`);
}

export const APPS_CELLS: GroupCells = {
  deployments: {
    Ready: readyOfDesired,
    'Up-to-date': status('updatedReplicas'),
    Available: status('availableReplicas'),
    Age: age,
    ...CONTAINERS,
    Selector: (object) => selectorText(valueAt(object, 'spec', 'selector')),
  },
  replicasets: {
    Desired: (object) => numberAt(object, 'spec', 'replicas'),
    Current: status('replicas'),
    Ready: status('readyReplicas'),
    Age: age,
    ...CONTAINERS,
    Selector: selector,
  },
  statefulsets: { Ready: readyOfDesired, Age: age, ...CONTAINERS },
  daemonsets: {
    Desired: status('desiredNumberScheduled'),
    Current: status('currentNumberScheduled'),
    Ready: status('numberReady'),
    'Up-to-date': status('updatedNumberScheduled'),
    Available: status('numberAvailable'),
    'Node Selector': (object) => formatLabels(valueAt(podSpec(object), 'nodeSelector')),
    Age: age,
    ...CONTAINERS,
    Selector: selector,
  },
  controllerrevisions: { Controller: controllerName, Revision: (object) => numberAt(object, 'revision'), Age: age },
};

function jobStatus(job: JsonObject): string {
  for (const type of ['Complete', 'Failed']) if (isConditionTrue(job, type)) return type;
  if (valueAt(job, 'metadata', 'deletionTimestamp') != null) return 'Terminating';
  const later: [string, string][] = [
    ['Suspended', 'Suspended'],
    ['FailureTarget', 'FailureTarget'],
    ['SuccessCriteriaMet', 'SuccessCriteriaMet'],
  ];
  return later.find(([type]) => isConditionTrue(job, type))?.[1] ?? 'Running';
}

function jobCompletions(job: JsonObject): string {
  const succeeded = numberAt(job, 'status', 'succeeded');
  const completions = valueAt(job, 'spec', 'completions');
  if (typeof completions === 'number') return `${succeeded}/${completions}`;
  const parallelism = numberAt(job, 'spec', 'parallelism');
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration(job: JsonObject, now: number): string {
  const start = Date.parse(textAt(job, 'status', 'startTime'));
  if (Number.isNaN(start)) return '';
  const end = Date.parse(textAt(job, 'status', 'completionTime'));
  return humanDuration((Number.isNaN(end) ? now : end) - start);
}

const cronPodSpec = (object: JsonObject): unknown => valueAt(object, 'spec', 'jobTemplate', 'spec', 'template', 'spec');

function suspend(cronJob: JsonObject): string {
  const value = valueAt(cronJob, 'spec', 'suspend');
  return value === undefined || value === null ? UNSET : value === true ? 'True' : 'False';
}

export const BATCH_CELLS: GroupCells = {
  jobs: {
    Status: jobStatus,
    Completions: jobCompletions,
    Duration: jobDuration,
    Age: age,
    ...CONTAINERS,
    Selector: selector,
  },
  cronjobs: {
    Schedule: text('spec.schedule'),
    Timezone: text('spec.timeZone', NONE),
    Suspend: suspend,
    Active: (object) => objectsAt(object, 'status', 'active').length,
    'Last Schedule': (object, now) => {
      const last = valueAt(object, 'status', 'lastScheduleTime');
      return last == null ? NONE : ageSince(last, now);
    },
    Age: age,
    Containers: (object) => containerNames(cronPodSpec(object)),
    Images: (object) => containerImages(cronPodSpec(object)),
    Selector: (object) => formatSelector(valueAt(object, 'spec', 'jobTemplate', 'spec', 'selector')),
  },
};

const intOrString =
  (field: string): Cell =>
  (object) => {
    const value = valueAt(object, 'spec', field);
    return value === undefined || value === null ? 'N/A' : String(value);
  };

export const POLICY_CELLS: GroupCells = {
  poddisruptionbudgets: {
    'Min Available': intOrString('minAvailable'),
    'Max Unavailable': intOrString('maxUnavailable'),
    'Allowed Disruptions': status('disruptionsAllowed'),
    Age: age,
  },
};

export const AUTOSCALING_CELLS: GroupCells = { horizontalpodautoscalers: HPA_CELLS };
