/** `coracle top`: what machines take of processors and memory now, as their nodes measure it. */

import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, textFlag, UsageError } from '../command.ts';
import { nothingText } from '../nothing-text.ts';
import { sizeText } from '../size-text.ts';
import { textTable } from '../text-table.ts';
import { equivalent, isExplained } from './equivalent.ts';

/** Processor time is counted from the start; what is taken now is the difference over this long. */
const MEASURE_MS = 1_000;
const LAUNCHERS = 'kubevirt.io=virt-launcher';
const MACHINE_NAME = 'vm.kubevirt.io/name';

interface Usage {
  readonly cpuNanos: number;
  readonly memoryBytes: number;
}

interface Summary {
  readonly pods?: readonly {
    readonly podRef: { readonly uid: string };
    readonly cpu?: { readonly usageCoreNanoSeconds?: number };
    readonly memory?: { readonly workingSetBytes?: number };
  }[];
}

/** `coracle top`. */
export async function top(context: CommandContext): Promise<number> {
  const { flags, print, signal, words } = context;
  const all = flags['all-namespaces'] === true;
  const given = textFlag(flags, 'namespace');
  if (all && given !== undefined) throw new UsageError('-A takes all namespaces and -n one: give one of them');
  const cluster = await clusterFrom(context);
  try {
    const namespace = all ? undefined : (given ?? cluster.namespace);
    if (isExplained(context))
      return equivalent(context, [
        ...['kubectl', 'top', 'pod', '-l', LAUNCHERS],
        ...(namespace === undefined ? ['-A'] : ['-n', namespace]),
      ]);
    const { client } = cluster;
    const { items } = await client.list<Pod>(PODS, {
      ...(namespace !== undefined && { namespace }),
      labelSelector: LAUNCHERS,
      signal,
    });
    const pods = items.filter(
      ({ metadata, status }) =>
        status?.phase === 'Running' && (words.length === 0 || words.includes(metadata.labels?.[MACHINE_NAME] ?? '')),
    );
    const rows = await measured(client, pods, signal);
    if (flags['json'] === true) print(JSON.stringify(rows));
    else if (rows.length === 0) print(nothingText('no machine runs', namespace));
    else
      print(
        textTable(
          [...(all ? ['NAMESPACE'] : []), 'NAME', 'CPU', 'MEMORY', 'NODE'],
          rows.map((row) => [
            ...(all ? [row.namespace] : []),
            ...[row.name, `${row.milliCores}m`, sizeText(row.memoryBytes), row.node],
          ]),
        ),
      );
    return 0;
  } finally {
    await cluster.close();
  }
}

async function measured(client: Client, pods: readonly Pod[], signal: AbortSignal) {
  const nodes = [...new Set(pods.flatMap(({ spec }) => (spec.nodeName ? [spec.nodeName] : [])))];
  if (nodes.length === 0) return [];
  const begun = systemClock.monotonic();
  const before = await usageOn(client, nodes, signal);
  await systemClock.sleep(MEASURE_MS, signal);
  const after = await usageOn(client, nodes, signal);
  const ms = systemClock.monotonic() - begun;
  return pods
    .flatMap(({ metadata, spec }) => {
      const [one, other] = [before.get(metadata.uid ?? ''), after.get(metadata.uid ?? '')];
      if (!one || !other) return [];
      return [
        {
          namespace: metadata.namespace ?? '',
          name: metadata.labels?.[MACHINE_NAME] ?? metadata.name ?? '',
          node: spec.nodeName ?? '',
          milliCores: Math.max(0, Math.round((other.cpuNanos - one.cpuNanos) / 1e3 / ms)),
          memoryBytes: other.memoryBytes,
        },
      ];
    })
    .sort((a, b) => b.milliCores - a.milliCores);
}

/** By the UID of the Pod. */
async function usageOn(
  client: Client,
  nodes: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Usage>> {
  const query = 'only_cpu_and_memory=true';
  const summaries = await Promise.all(
    nodes.map((node) =>
      client.raw('GET', `/api/v1/nodes/${encodeURIComponent(node)}/proxy/stats/summary`, { query, signal }),
    ),
  );
  return new Map(
    summaries.flatMap((summary) =>
      ((summary as Summary).pods ?? []).map(({ podRef, cpu, memory }) => [
        podRef.uid,
        { cpuNanos: cpu?.usageCoreNanoSeconds ?? 0, memoryBytes: memory?.workingSetBytes ?? 0 },
      ]),
    ),
  );
}
