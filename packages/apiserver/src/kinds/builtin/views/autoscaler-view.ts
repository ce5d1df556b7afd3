/**
 * HorizontalPodAutoscalers of autoscaling/v1 as a view of the stored v2 objects. v1 knows one CPU target; whatever else
 * v2 holds travels in annotations, in the spelling of the old alpha API (autoscaling/v1 conversion.go).
 */
import { getOwn, isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type JsonObject, objectAt, objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import type { StoredView } from '@coracle/apimachinery/types/resource';
import type { MutableObject } from '../defaults/preset.ts';
import sources from './metric-sources.json' with { type: 'json' };

const PREFIX = 'autoscaling.alpha.kubernetes.io/';
/** Annotation of a v1 object: the metrics that v1 has no field for. */
export const METRICS = `${PREFIX}metrics`;
const CURRENT_METRICS = `${PREFIX}current-metrics`;
const CONDITIONS = `${PREFIX}conditions`;
const BEHAVIOR = `${PREFIX}behavior`;

/** v2 path -> v1 name, by metric source. `$` stands for `target` (spec) or `current` (status). */
interface SourceNames {
  readonly member: string;
  readonly spec: Readonly<Record<string, string>>;
  readonly status: Readonly<Record<string, string>>;
}

const SOURCES: Readonly<Record<string, SourceNames>> = sources;

type Part = 'spec' | 'status';
const amount: Record<Part, string> = { spec: 'target', status: 'current' };

function toOldMetric(metric: JsonObject, part: Part): MutableObject {
  const source = SOURCES[textAt(metric, 'type')];
  if (source === undefined) return { ...metric };
  const from = objectAt(metric, source.member);
  const old: MutableObject = {};
  for (const [path, name] of Object.entries(source[part])) {
    const value = valueAt(from, ...path.replace('$', amount[part]).split('.'));
    if (value !== undefined) old[name] = value;
  }
  return { type: metric['type'], [source.member]: old };
}

function fromOldMetric(metric: JsonObject, part: Part): MutableObject {
  const source = SOURCES[textAt(metric, 'type')];
  if (source === undefined) return { ...metric };
  const from = objectAt(metric, source.member);
  const next: MutableObject = {};
  for (const [path, name] of Object.entries(source[part])) {
    const value = getOwn(from as Record<string, unknown>, name);
    if (value === undefined) continue;
    const [head = '', tail] = path.replace('$', amount[part]).split('.');
    if (tail === undefined) next[head] = value;
    else next[head] = { ...(next[head] as object | undefined), [tail]: value };
  }
  if (part === 'spec') {
    const target = (next['target'] ?? {}) as MutableObject;
    const type =
      target['averageUtilization'] !== undefined
        ? 'Utilization'
        : target['value'] !== undefined
          ? 'Value'
          : 'AverageValue';
    next['target'] = { type, ...target };
  }
  return { type: metric['type'], [source.member]: next };
}

const isCpu = (metric: JsonObject): boolean =>
  textAt(metric, 'type') === 'Resource' && textAt(metric, 'resource', 'name') === 'cpu';

function fromStored(object: Readonly<Record<string, unknown>>): MutableObject {
  const { spec: stored = {}, status: storedStatus, metadata, ...rest } = object as Record<string, MutableObject>;
  const { metrics: _metrics, behavior, ...spec } = stored;
  const annotations: Record<string, string> = {};
  const others: MutableObject[] = [];
  let cpuSeen = false;
  for (const metric of objectsAt(stored, 'metrics')) {
    const utilization = valueAt(metric, 'resource', 'target', 'averageUtilization');
    if (!cpuSeen && isCpu(metric) && typeof utilization === 'number') {
      spec['targetCPUUtilizationPercentage'] = utilization;
      cpuSeen = true;
    } else others.push(toOldMetric(metric, 'spec'));
  }
  if (others.length > 0) annotations[METRICS] = JSON.stringify(others);
  if (behavior !== undefined) annotations[BEHAVIOR] = JSON.stringify(behavior);
  let status: MutableObject | undefined;
  if (isJsonObject(storedStatus)) {
    const { currentMetrics, conditions, ...kept } = storedStatus;
    // What each version writes though it is nothing.
    status = { currentReplicas: 0, ...kept };
    const used = objectsAt({ currentMetrics }, 'currentMetrics')
      .filter(isCpu)
      .map((metric) => valueAt(metric, 'resource', 'current', 'averageUtilization'))
      .find((value) => typeof value === 'number');
    if (used !== undefined) status['currentCPUUtilizationPercentage'] = used;
    const current = objectsAt({ currentMetrics }, 'currentMetrics');
    if (current.length > 0) {
      annotations[CURRENT_METRICS] = JSON.stringify(current.map((metric) => toOldMetric(metric, 'status')));
    }
    if (Array.isArray(conditions) && conditions.length > 0) annotations[CONDITIONS] = JSON.stringify(conditions);
  }
  return {
    ...rest,
    metadata:
      Object.keys(annotations).length === 0
        ? metadata
        : { ...metadata, annotations: { ...(metadata?.['annotations'] as object | undefined), ...annotations } },
    spec,
    ...(status && { status }),
  };
}

/** The list or object in an annotation; what does not parse is left out, as nobody but us writes it. */
function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const objects = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : []);

function toStored(object: Readonly<Record<string, unknown>>): MutableObject {
  const { spec: given = {}, status: givenStatus, metadata = {}, ...rest } = object as Record<string, MutableObject>;
  const { targetCPUUtilizationPercentage: cpu, ...spec } = given;
  const { annotations: all, ...kept } = metadata;
  const {
    [METRICS]: others,
    [CURRENT_METRICS]: current,
    [CONDITIONS]: conditions,
    ...annotations
  } = (all ?? {}) as Record<string, string>;
  const behavior = parsed(annotations[BEHAVIOR]);
  delete annotations[BEHAVIOR];
  const metrics: MutableObject[] = [];
  if (typeof cpu === 'number') metrics.push(cpuMetric(cpu));
  metrics.push(...objects(parsed(others)).map((metric) => fromOldMetric(metric, 'spec')));
  if (metrics.length === 0) metrics.push(cpuMetric(80));
  spec['metrics'] = metrics;
  if (isJsonObject(behavior)) spec['behavior'] = behavior;
  let status: MutableObject | undefined;
  if (isJsonObject(givenStatus)) {
    const { currentCPUUtilizationPercentage: used, ...plain } = givenStatus;
    status = plain;
    if (plain['currentReplicas'] === 0) delete status['currentReplicas'];
    const list = objects(parsed(current)).map((metric) => fromOldMetric(metric, 'status'));
    if (list.length === 0 && typeof used === 'number') {
      list.push({ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: used } } });
    }
    status['currentMetrics'] = list.length > 0 ? list : null;
    const found = objects(parsed(conditions));
    if (found.length > 0) status['conditions'] = found;
  }
  return {
    ...rest,
    metadata: { ...kept, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec,
    ...(status && { status }),
  };
}

const cpuMetric = (averageUtilization: number): MutableObject => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});

export const autoscalerView: StoredView = { fromStored, toStored };
