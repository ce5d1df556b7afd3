/** NodeMetrics and PodMetrics (metrics.k8s.io/v1beta1) of what was measured, in the shape of metrics-server. */
import { goDuration } from '@coracle/apimachinery/meta/go-duration';
import {
  type DeepReadonly,
  formatTime,
  type ObjectMeta,
  type UnstructuredObject,
} from '@coracle/apimachinery/meta/object';
import { addQuantity, formatQuantity, parseQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { PrinterColumn } from '@coracle/apimachinery/types/resource';
import type { MeasuredNode, Usage } from './node-usage.ts';

export const METRICS_GROUP = 'metrics.k8s.io';
export const METRICS_VERSION = 'v1beta1';

/** Quantities of `cpu` and `memory`. */
interface Amounts {
  readonly cpu: string;
  readonly memory: string;
}

interface Measurable {
  readonly metadata: DeepReadonly<ObjectMeta>;
}

const NANO = 1_000_000_000n;

const amountsOf = ({ nanoCores, memoryBytes }: Usage): Amounts => ({
  cpu: formatQuantity({ nano: BigInt(nanoCores), format: 'DecimalSI' }),
  memory: formatQuantity({ nano: BigInt(memoryBytes) * NANO, format: 'BinarySI' }),
});

/** Undefined when the node has no sample. */
export const nodeMetrics = (node: Measurable, measured: MeasuredNode | undefined): UnstructuredObject | undefined =>
  measured?.node && metricsOf('NodeMetrics', node, { measured, rest: { usage: amountsOf(measured.node) } });

/** Undefined when the Pod has no sample. */
export function podMetrics(pod: Measurable, measured: MeasuredNode | undefined): UnstructuredObject | undefined {
  const found = measured?.pods.get(pod.metadata.uid ?? '');
  if (!measured || !found) return undefined;
  const containers = [...found].map(([name, usage]) => ({ name, usage: amountsOf(usage) }));
  return metricsOf('PodMetrics', pod, { measured, rest: { containers } });
}

function metricsOf(
  kind: string,
  { metadata: { name = '', namespace, labels } }: Measurable,
  { measured: { at, windowMs }, rest }: { readonly measured: MeasuredNode; readonly rest: object },
): UnstructuredObject {
  const time = formatTime(at);
  return {
    kind,
    apiVersion: `${METRICS_GROUP}/${METRICS_VERSION}`,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      creationTimestamp: time,
      ...(labels && { labels: { ...labels } }),
    },
    timestamp: time,
    window: goDuration(windowMs),
    ...rest,
  };
}

/** Of a node its usage, of a Pod the sum of its containers. */
function totalOf(object: Readonly<Record<string, unknown>>, name: keyof Amounts): string {
  const { usage, containers = [] } = object as {
    readonly usage?: Amounts;
    readonly containers?: readonly { readonly usage: Amounts }[];
  };
  const all = usage ? [usage] : containers.map((container) => container.usage);
  const amounts = all.map((one) => parseQuantity(one[name]));
  return formatQuantity(amounts.reduce(addQuantity, { nano: 0n, format: 'DecimalSI' }));
}

const amountColumn = (name: keyof Amounts): PrinterColumn => ({
  name,
  type: 'string',
  format: 'quantity',
  priority: 0,
  cell: (object) => totalOf(object, name),
});

/** Columns of both kinds. */
export const METRICS_TABLE: { readonly columns: readonly PrinterColumn[] } = {
  columns: [
    amountColumn('cpu'),
    amountColumn('memory'),
    { name: 'Window', type: 'string', format: 'duration', priority: 0, path: '.window' },
  ],
};
