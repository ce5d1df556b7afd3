/** What makes Pods, and what limits how many go: apps, batch, autoscaling, policy. */
import {
  setAutoscaler,
  setCronJob,
  setDaemonSet,
  setDeployment,
  setJob,
  setReplicaSet,
  setStatefulSet,
} from '../defaults/workloads.ts';
import { prepareNewJob } from '../preparations/jobs.ts';
import { keepTemplateGeneration, startTemplateGeneration } from '../preparations/template-generation.ts';
import { validateBudget, validateControllerRevision } from '../validation/cluster.ts';
import type { GroupKinds } from './builtin-kind.ts';

export const APPS: GroupKinds = {
  controllerrevisions: { validate: validateControllerRevision },
  daemonsets: {
    generation: 'spec',
    setDefaults: setDaemonSet,
    prepareForCreate: startTemplateGeneration,
    prepareForUpdate: keepTemplateGeneration,
    subresources: { status: { prepareForUpdate: keepTemplateGeneration } },
  },
  deployments: {
    generation: 'spec',
    // Handed down to ReplicaSets, so they count as well.
    generationFollows: 'annotations',
    setDefaults: setDeployment,
    statusKeeps: ['labels'],
  },
  replicasets: { generation: 'spec', setDefaults: setReplicaSet },
  statefulsets: { generation: 'spec', setDefaults: setStatefulSet },
};

export const BATCH: GroupKinds = {
  cronjobs: { generation: 'spec', setDefaults: setCronJob },
  jobs: {
    generation: 'spec',
    setDefaults: setJob,
    prepareForCreate: prepareNewJob,
    // Older than the garbage collector: clients of the first versions clean up by themselves.
    garbageCollection: 'orphan-dependents',
    warningOnDelete:
      'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
  },
};

export const AUTOSCALING: GroupKinds = { horizontalpodautoscalers: { setDefaults: setAutoscaler } };

export const POLICY: GroupKinds = {
  poddisruptionbudgets: { generation: 'spec', validate: validateBudget, allowUnconditionalUpdate: false },
};
