/**
 * How a live object is, by the rules of kstatus, and by what the kinds of virtual machines say of themselves: a machine that
 * is to be off and is off is as it should be.
 */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ObjectHealth } from '../kinds/kinds.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}

interface Fields {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>> & { readonly conditions?: readonly Condition[] };
}

type Rule = (fields: Fields) => ObjectHealth | undefined;

/** The health of a live object; undefined stands for one that is not there. */
export function healthOf(live: ReadonlyObject | undefined): ObjectHealth {
  if (!live) return 'NotFound';
  if (isDeleting(live)) return 'Terminating';
  const fields = live as unknown as Fields;
  const { observedGeneration } = fields.status ?? {};
  if (typeof observedGeneration === 'number' && observedGeneration !== live.metadata.generation) return 'InProgress';
  if (isConditionTrue(fields, 'Reconciling')) return 'InProgress';
  if (isConditionTrue(fields, 'Stalled')) return 'Failed';
  const byKind = RULES[`${parseApiVersion(live.apiVersion).group}/${live.kind}`];
  if (byKind) return byKind(fields) ?? 'Current';
  const ready = conditionOf(fields, 'Ready');
  return ready === undefined || ready.status === 'True' ? 'Current' : 'InProgress';
}

const count = (value: unknown, otherwise = 0): number => (typeof value === 'number' ? value : otherwise);

const deployment: Rule = (fields) => {
  const { spec = {}, status = {} } = fields;
  const progressing = conditionOf(fields, 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') return 'Failed';
  const wanted = count(spec['replicas'], 1);
  const enough =
    count(status['replicas']) === wanted &&
    count(status['updatedReplicas']) === wanted &&
    count(status['availableReplicas']) === wanted &&
    count(status['readyReplicas']) === wanted;
  return enough && isConditionTrue(fields, 'Available') ? 'Current' : 'InProgress';
};
const replicas: Rule = ({ spec = {}, status = {} }) => {
  const { updateStrategy } = spec as { updateStrategy?: { type?: string } };
  if (updateStrategy?.type === 'OnDelete') return 'Current';
  const wanted = count(spec['replicas'], 1);
  return count(status['replicas']) === wanted && count(status['readyReplicas']) === wanted ? 'Current' : 'InProgress';
};
const daemonSet: Rule = ({ status = {} }) => {
  const wanted = count(status['desiredNumberScheduled'], -1);
  return typeof status['observedGeneration'] === 'number' && wanted >= 0 && count(status['numberReady']) >= wanted
    ? 'Current'
    : 'InProgress';
};
const pod: Rule = (fields) => {
  const phase = fields.status?.['phase'];
  if (phase === 'Succeeded' || phase === 'Failed') return 'Current';
  return phase === 'Running' && isConditionTrue(fields, 'Ready') ? 'Current' : 'InProgress';
};
/** What `printableStatus` says of a machine that does not get on by itself. */
const MACHINE_TROUBLE: ReadonlySet<unknown> = new Set([
  'CrashLoopBackOff',
  'ErrorUnschedulable',
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrorPvcNotFound',
  'DataVolumeError',
]);
const virtualMachine: Rule = (fields) => {
  const { spec = {}, status = {} } = fields;
  if (MACHINE_TROUBLE.has(status['printableStatus'])) return 'Failed';
  if (isConditionTrue(fields, 'Ready')) return 'Current';
  const isOff = status['created'] !== true && status['printableStatus'] === 'Stopped';
  const mayBeOff =
    spec['running'] === false || ['Halted', 'Manual', 'RerunOnFailure', 'Once'].includes(String(spec['runStrategy']));
  return isOff && mayBeOff ? 'Current' : 'InProgress';
};

const RULES: Readonly<Record<string, Rule>> = {
  'apps/Deployment': deployment,
  'apps/StatefulSet': replicas,
  'apps/ReplicaSet': replicas,
  'apps/DaemonSet': daemonSet,
  '/Pod': pod,
  '/PersistentVolumeClaim': ({ status }) => (status?.['phase'] === 'Bound' ? 'Current' : 'InProgress'),
  '/Service': ({ spec }) => (spec?.['type'] === 'LoadBalancer' && !spec['clusterIP'] ? 'InProgress' : 'Current'),
  '/ConfigMap': () => 'Current',
  '/Secret': () => 'Current',
  '/Namespace': () => 'Current',
  'policy/PodDisruptionBudget': () => 'Current',
  'batch/CronJob': () => 'Current',
  'batch/Job': (fields) =>
    isConditionTrue(fields, 'Failed')
      ? 'Failed'
      : fields.status?.['startTime'] !== undefined
        ? 'Current'
        : 'InProgress',
  'apiextensions.k8s.io/CustomResourceDefinition': (fields) => {
    const names = conditionOf(fields, 'NamesAccepted');
    if (names?.status === 'False') return 'Failed';
    return isConditionTrue(fields, 'Established') ? 'Current' : 'InProgress';
  },
  'kubevirt.io/VirtualMachine': virtualMachine,
  'kubevirt.io/VirtualMachineInstance': (fields) => {
    const phase = fields.status?.['phase'];
    if (phase === 'Failed') return 'Failed';
    return phase === 'Succeeded' || (phase === 'Running' && isConditionTrue(fields, 'Ready'))
      ? 'Current'
      : 'InProgress';
  },
  'cdi.kubevirt.io/DataVolume': ({ status }) => {
    const phase = status?.['phase'];
    if (phase === 'Failed') return 'Failed';
    return phase === 'Succeeded' || phase === 'WaitForFirstConsumer' ? 'Current' : 'InProgress';
  },
};
