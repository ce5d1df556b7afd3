/**
 * HorizontalPodAutoscalers of autoscaling/v1, which `kubectl autoscale` of older releases writes, as a view of the stored
 * v2 objects. v1 knows one CPU target; what else v2 holds travels in one annotation, so that a write through v1 keeps it.
 */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type JsonObject, objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import type { StoredView } from '@coracle/apimachinery/types/resource';
import type { MutableObject } from '../defaults/preset.ts';

/** JSON of the members of a v2 object, by its parts `spec` and `status`, that v1 has no field for. */
export const V2_PARTS = 'coracle.dev/autoscaling-v2';

type Parts = Readonly<Record<string, MutableObject>>;

const isCpu = (metric: JsonObject): boolean =>
  textAt(metric, 'type') === 'Resource' && textAt(metric, 'resource', 'name') === 'cpu';

/** How much of its CPU the Pods shall use, or use, in percent. */
const cpuOf = (metrics: unknown, amount: 'target' | 'current'): unknown =>
  objectsAt({ metrics }, 'metrics')
    .filter(isCpu)
    .map((metric) => valueAt(metric, 'resource', amount, 'averageUtilization'))
    .find((value) => typeof value === 'number');

const targetOf = (averageUtilization: unknown): MutableObject => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});

function fromStored(object: Readonly<Record<string, unknown>>): MutableObject {
  const { spec: stored = {}, status: storedStatus, metadata, ...rest } = object as Parts & { metadata: MutableObject };
  const { metrics, behavior, ...spec } = stored;
  const { currentMetrics, conditions, ...status } = storedStatus ?? {};
  const target = cpuOf(metrics, 'target');
  if (target !== undefined) spec['targetCPUUtilizationPercentage'] = target;
  const used = cpuOf(currentMetrics, 'current');
  if (used !== undefined) status['currentCPUUtilizationPercentage'] = used;
  const isPlain = behavior === undefined && objectsAt({ metrics }, 'metrics').length === 1 && target !== undefined;
  const parts = {
    ...(!isPlain && { spec: { metrics, behavior } }),
    ...((currentMetrics != null || conditions !== undefined) && { status: { currentMetrics, conditions } }),
  };
  const annotations = { ...(metadata['annotations'] as object | undefined), [V2_PARTS]: JSON.stringify(parts) };
  return {
    ...rest,
    metadata: Object.keys(parts).length === 0 ? metadata : { ...metadata, annotations },
    spec,
    // v1 writes the count, though it is nothing.
    ...(storedStatus && { status: { currentReplicas: 0, ...status } }),
  };
}

/** What does not parse is left out, as nobody but this view writes it. */
function parsed(text: unknown): Parts {
  try {
    const value: unknown = JSON.parse(String(text));
    return isJsonObject(value) ? (value as Parts) : {};
  } catch {
    return {};
  }
}

function toStored(object: Readonly<Record<string, unknown>>): MutableObject {
  const { spec: given = {}, status: givenStatus, metadata = {}, ...rest } = object as Record<string, MutableObject>;
  const { annotations: all, ...kept } = metadata;
  const { [V2_PARTS]: text, ...annotations } = (all ?? {}) as Record<string, string>;
  const parts = parsed(text);
  const { targetCPUUtilizationPercentage: cpu, ...spec } = given;
  const others = objectsAt(parts['spec'], 'metrics').filter((metric) => cpuOf([metric], 'target') === undefined);
  const target = cpu !== undefined || others.length === 0 ? [targetOf(cpu ?? 80)] : [];
  const { currentCPUUtilizationPercentage: _, ...status } = givenStatus ?? {};
  if (status['currentReplicas'] === 0) delete status['currentReplicas'];
  return {
    ...rest,
    metadata: { ...kept, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: { ...spec, ...parts['spec'], metrics: [...target, ...others] },
    ...(givenStatus && { status: { currentMetrics: null, ...status, ...parts['status'] } }),
  };
}

export const autoscalerView: StoredView = { fromStored, toStored };
