/** What a node and its Pods take, in kubelet's two forms: `/stats/summary` (stats/v1alpha1) and `/metrics/resource`. */

import { formatTime } from '@coracle/apimachinery/meta/object';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Labels, ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { ProcessIdentity } from '@coracle/runtime/process/identity';
import { type CpuAndMemory, diskUsage, hostUsage, processUsage } from './usage.ts';

/** A Pod of this node, with the QEMU of its guest while there is one. */
export interface MeasuredPod {
  readonly pod: ReadonlyPod;
  readonly process: ProcessIdentity | undefined;
}

interface Measuring {
  readonly nodeName: string;
  /** Where the guests' files are. */
  readonly directory: string;
  readonly pods: readonly MeasuredPod[];
  /** ms since the epoch. */
  readonly now: number;
}

/** The container that stands for QEMU. */
const COMPUTE = 'compute';

/** Measures now. What cannot be measured is left out. */
export async function measure(at: Measuring) {
  const [host, disk, ...pods] = await Promise.all([
    hostUsage(),
    diskUsage(at.directory),
    ...at.pods.map(async ({ pod, process }) => ({ pod, usage: process && (await processUsage(process)) })),
  ]);
  return { at, host, disk, pods: pods.flatMap(({ pod, usage }) => (usage ? [{ pod, usage }] : [])) };
}

type Measured = Awaited<ReturnType<typeof measure>>;
type DiskUsage = NonNullable<Measured['disk']>;

/** The body of `/stats/summary`. `withDisks` is false for `?only_cpu_and_memory=true`. */
export function summaryOf({ at, host, disk, pods }: Measured, { withDisks }: { readonly withDisks: boolean }): object {
  const time = formatTime(at.now);
  const taken = ({ cpuNanos, memoryBytes }: CpuAndMemory, availableBytes?: number) => ({
    cpu: { time, usageCoreNanoSeconds: cpuNanos },
    memory: {
      time,
      ...(availableBytes !== undefined && { availableBytes }),
      usageBytes: memoryBytes,
      workingSetBytes: memoryBytes,
    },
  });
  return {
    node: {
      nodeName: at.nodeName,
      startTime: host ? formatTime(host.bootedAt) : null,
      ...(host && taken(host, host.availableBytes)),
      ...(withDisks && disk && { fs: fileSystem(disk, time) }),
    },
    pods: pods.map(({ pod, usage }) => {
      const startTime = pod.status?.startTime ?? null;
      const { name = '', namespace = '', uid = '' } = pod.metadata;
      const containers = [{ name: COMPUTE, startTime, ...taken(usage) }];
      return { podRef: { name, namespace, uid }, startTime, containers, ...taken(usage) };
    }),
  };
}

const fileSystem = ({ availableBytes, capacityBytes, inodes, inodesFree }: DiskUsage, time: string) => ({
  time,
  availableBytes,
  capacityBytes,
  usedBytes: capacityBytes - availableBytes,
  inodesFree,
  inodes,
  inodesUsed: inodes - inodesFree,
});

/** The families of `/metrics/resource`, by which metrics-server knows what `kubectl top` shows. */
export function resourceMetrics({ host, pods }: Measured): ValueFamily[] {
  const families = (of: string, samples: Samples): ValueFamily[] => [
    {
      name: `${of}_cpu_usage_seconds_total`,
      help: `[STABLE] Cumulative cpu time consumed by the ${of} in core-seconds`,
      type: 'counter',
      samples: samples.map(([labels, { cpuNanos }]) => ({ labels, value: cpuNanos / 1e9 })),
    },
    {
      name: `${of}_memory_working_set_bytes`,
      help: `[STABLE] Current working set of the ${of} in bytes`,
      type: 'gauge',
      samples: samples.map(([labels, { memoryBytes }]) => ({ labels, value: memoryBytes })),
    },
  ];
  const ofPods: Samples = pods.map(({ pod: { metadata }, usage }) => [
    { namespace: metadata.namespace ?? '', pod: metadata.name ?? '' },
    usage,
  ]);
  const ofContainers: Samples = ofPods.map(([labels, usage]) => [{ container: COMPUTE, ...labels }, usage]);
  const ofNode: Samples = host ? [[{}, host]] : [];
  return [
    ...families('container', ofContainers),
    ...families('node', ofNode),
    ...families('pod', ofPods),
    {
      name: 'resource_scrape_error',
      help: '[STABLE] 1 if there was an error while getting container metrics, 0 otherwise',
      type: 'gauge',
      samples: [{ labels: {}, value: host ? 0 : 1 }],
    },
  ];
}

type Samples = readonly (readonly [Labels, CpuAndMemory])[];
