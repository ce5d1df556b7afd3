/** HorizontalPodAutoscaler columns; v1 has one CPU target, v2 a list of metrics. */
import { type JsonObject, numberAt, objectAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { autoscalerView, METRICS } from '../views/autoscaler-view.ts';
import { age } from './age.ts';
import { type Cells, NONE, UNSET } from './cell.ts';

const SHOWN = 2;
const UNKNOWN = '<unknown>';

/** The member of a v2 metric that holds its source, by metric type. */
const SOURCES: Readonly<Record<string, string>> = {
  Resource: 'resource',
  ContainerResource: 'containerResource',
  Pods: 'pods',
  Object: 'object',
  External: 'external',
};

const quantity = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;

function formatMetric(spec: JsonObject, current: JsonObject | undefined): string {
  const source = SOURCES[textAt(spec, 'type')];
  if (source === undefined) return '<unknown type>';
  const target = objectAt(spec, source, 'target');
  const now = objectAt(current, source, 'current');
  const wanted = valueAt(target, 'averageUtilization');
  const name = textAt(spec, source, 'name');
  const prefix = source === 'resource' || source === 'containerResource' ? `${name}: ` : '';
  if (typeof wanted === 'number') {
    const used = valueAt(now, 'averageUtilization');
    return `${prefix}${typeof used === 'number' ? `${used}%` : UNKNOWN}/${wanted}%`;
  }
  const average = quantity(valueAt(target, 'averageValue'));
  if (average !== undefined) {
    const suffix = source === 'object' || source === 'external' ? ' (avg)' : '';
    return `${prefix}${quantity(valueAt(now, 'averageValue')) ?? UNKNOWN}/${average}${suffix}`;
  }
  return `${prefix}${quantity(valueAt(now, 'value')) ?? UNKNOWN}/${quantity(valueAt(target, 'value')) ?? '<auto>'}`;
}

/** In v1 all but the CPU target lies in annotations. */
function inV2(hpa: JsonObject): JsonObject {
  const isOld =
    valueAt(hpa, 'spec', 'targetCPUUtilizationPercentage') !== undefined ||
    (valueAt(hpa, 'spec', 'metrics') === undefined && valueAt(hpa, 'metadata', 'annotations', METRICS) !== undefined);
  return isOld ? autoscalerView.toStored(hpa) : hpa;
}

function targets(asked: JsonObject): string {
  const hpa = inV2(asked);
  const specs = objectsAt(hpa, 'spec', 'metrics');
  if (specs.length === 0) return NONE;
  const current = objectsAt(hpa, 'status', 'currentMetrics');
  const texts = specs.map((spec, i) => formatMetric(spec, current[i]));
  const shown = texts.slice(0, SHOWN).join(', ');
  return texts.length > SHOWN ? `${shown} + ${texts.length - SHOWN} more...` : shown;
}

export const HPA_CELLS: Cells = {
  Reference: (hpa) =>
    `${textAt(hpa, 'spec', 'scaleTargetRef', 'kind')}/${textAt(hpa, 'spec', 'scaleTargetRef', 'name')}`,
  Targets: targets,
  MinPods: (hpa) => {
    const min = valueAt(hpa, 'spec', 'minReplicas');
    return typeof min === 'number' ? String(min) : UNSET;
  },
  MaxPods: (hpa) => numberAt(hpa, 'spec', 'maxReplicas'),
  Replicas: (hpa) => numberAt(hpa, 'status', 'currentReplicas'),
  Age: age,
};
