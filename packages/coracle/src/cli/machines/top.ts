/** `coracle top`: what machines use of processors and memory now, as metrics.k8s.io has it, and what they have moved since their start. */

import { milliValue, parseQuantity, quantityValue } from '@coracle/apimachinery/quantity/quantity';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError } from '../command.ts';
import { machineTargets, machineWords } from '../machine-target.ts';
import { namespaceScope } from '../namespace-scope.ts';
import { nothingText } from '../nothing-text.ts';
import { sizeText } from '../size-text.ts';
import { textTable } from '../text-table.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type FoundMachine, findMachine, needInstance, textOf } from './find-machine.ts';
import { guestTraffic } from './guest-traffic.ts';

const LAUNCHERS = 'kubevirt.io=virt-launcher';
const MACHINE_NAME = 'vm.kubevirt.io/name';
const METRICS = '/apis/metrics.k8s.io/v1beta1';

interface PodMetrics {
  readonly metadata: { readonly namespace?: string; readonly name?: string };
  readonly containers: readonly { readonly usage: { readonly cpu: string; readonly memory: string } }[];
}

/** `coracle top`. */
export async function top(context: CommandContext): Promise<number> {
  const { flags, print, signal } = context;
  const words = machineWords(context.words);
  const scope = namespaceScope(flags);
  const targetsOf = (word: string, ofContext: string) => machineTargets(word, { given: scope.given, ofContext });
  for (const word of words) targetsOf(word, '');
  await using cluster = await clusterFrom(context);
  // A word may name a namespace of its own.
  const namespace = words.length === 0 || scope.given !== undefined ? scope.of(cluster.namespace) : undefined;
  if (isExplained(context) && words.length === 0)
    return equivalent(context, ['kubectl', 'top', 'pod', '-l', LAUNCHERS, ...inNamespace(namespace)]);
  const { client } = cluster;
  const machines: FoundMachine[] = [];
  for (const word of words) machines.push(await findMachine(client, targetsOf(word, cluster.namespace), signal));
  const keys = machines.map(({ key }) => key);
  if (isExplained(context)) {
    const [one, ...others] = new Set(keys.map((key) => key.namespace));
    const names = keys.map(({ name }) => name);
    const selector = names.length === 1 ? `${MACHINE_NAME}=${names[0]}` : `${MACHINE_NAME} in (${names.join(',')})`;
    return equivalent(context, [
      'kubectl',
      'top',
      'pod',
      '-l',
      selector,
      ...inNamespace(others.length === 0 ? one : undefined),
    ]);
  }
  for (const machine of machines) needInstance(machine);
  const { items } = await client.list<Pod>(PODS, {
    ...(namespace !== undefined && { namespace }),
    labelSelector: LAUNCHERS,
    signal,
  });
  const wanted = new Set(keys.map(textOf));
  const pods = items.filter(
    ({ metadata, status }) =>
      status?.phase === 'Running' &&
      (words.length === 0 ||
        wanted.has(textOf({ namespace: metadata.namespace ?? '', name: metadata.labels?.[MACHINE_NAME] ?? '' }))),
  );
  const rows = await measured(client, pods, { namespace, signal });
  if (flags['json'] === true) print(JSON.stringify(rows));
  else if (rows.length === 0) print(words.length > 0 ? 'not measured yet' : nothingText('no machine runs', namespace));
  else
    print(
      textTable(
        [
          ...(scope.everywhere ? ['NAMESPACE'] : []),
          'NAME',
          'CPU',
          'MEMORY',
          'READ',
          'WRITTEN',
          'RECEIVED',
          'SENT',
          'NODE',
        ],
        rows.map((row) => [
          ...(scope.everywhere ? [row.namespace] : []),
          ...[row.name, `${row.milliCores}m`, sizeText(row.memoryBytes)],
          ...[row.readBytes, row.writtenBytes, row.receivedBytes, row.sentBytes].map(movedText),
          row.node,
        ]),
      ),
    );
  return 0;
}

const movedText = (bytes: number | undefined): string => (bytes === undefined ? '-' : sizeText(bytes));

const inNamespace = (namespace: string | undefined): string[] => (namespace === undefined ? ['-A'] : ['-n', namespace]);

async function measured(
  client: Client,
  pods: readonly Pod[],
  { namespace, signal }: { readonly namespace: string | undefined; readonly signal: AbortSignal },
) {
  if (pods.length === 0) return [];
  const path = namespace === undefined ? 'pods' : `namespaces/${encodeURIComponent(namespace)}/pods`;
  const query = `labelSelector=${encodeURIComponent(LAUNCHERS)}`;
  const { items } = (await client.raw('GET', `${METRICS}/${path}`, { query, signal }).catch(explained)) as {
    readonly items: readonly PodMetrics[];
  };
  const traffic = await guestTraffic(client, new Set(pods.flatMap(({ spec }) => spec.nodeName ?? [])), signal);
  const byKey = new Map(items.map((one) => [keyOf(one.metadata), one]));
  return pods
    .flatMap(({ metadata, spec }) => {
      const usages = byKey.get(keyOf(metadata))?.containers.map(({ usage }) => usage);
      if (!usages) return [];
      const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
      const key = { namespace: metadata.namespace ?? '', name: metadata.labels?.[MACHINE_NAME] ?? metadata.name ?? '' };
      return [
        {
          ...key,
          node: spec.nodeName ?? '',
          milliCores: sum(usages.map(({ cpu }) => milliValue(parseQuantity(cpu)))),
          memoryBytes: sum(usages.map(({ memory }) => quantityValue(parseQuantity(memory)))),
          ...traffic.get(textOf(key)),
        },
      ];
    })
    .sort((a, b) => b.milliCores - a.milliCores);
}

const keyOf = ({ namespace, name }: PodMetrics['metadata']): string => `${namespace}/${name}`;

function explained(error: unknown): never {
  if (!isNotFound(error)) throw error;
  throw new CommandError('this cluster serves no metrics.k8s.io: install metrics-server in it');
}
