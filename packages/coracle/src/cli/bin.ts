/** `coracle bin`: what is kept of deleted machines, and the end of it. */

import { isNotFound } from '@coracle/client/api-failure';
import { DELETED_VIRTUAL_MACHINE_CONTENTS, DELETED_VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/coracle/kinds';
import { clusterFrom } from '../config/cluster.ts';
import { type BinItem, binItems, deletedName, deletedOf, notInBin } from './bin-records.ts';
import { type CommandContext, CommandError, UsageError } from './command.ts';
import { machineTargets } from './machine-target.ts';
import { namespaceScope } from './namespace-scope.ts';
import { nothingText } from './nothing-text.ts';
import { textTable } from './text-table.ts';

/** `coracle bin list` and `coracle bin empty [vm NAME]`. */
export async function bin(context: CommandContext): Promise<number> {
  const [verb = '', ...words] = context.words;
  switch (verb) {
    case 'list':
      if (words.length > 0) throw new UsageError(`bin list takes no words, only flags, not "${words[0]}"`);
      return list({ ...context, words });
    case 'empty':
      return empty({ ...context, words });
    default:
      throw new UsageError('bin takes: list, empty (see: coracle bin --help)');
  }
}

interface Opened {
  readonly items: readonly BinItem[];
  readonly cluster: Awaited<ReturnType<typeof clusterFrom>>;
  /** Undefined: all. */
  readonly namespace: string | undefined;
}

async function open(context: CommandContext, command: string, name?: string): Promise<Opened> {
  const { flags, signal } = context;
  const scope = namespaceScope(flags);
  const cluster = await clusterFrom(context);
  try {
    const { client } = cluster;
    const namespace = scope.of(cluster.namespace);
    const where = namespace === undefined ? {} : { namespace };
    if (name === undefined) return { cluster, namespace, items: await binItems(client, { ...where, command, signal }) };
    if (namespace !== undefined) {
      const targets = machineTargets(name, { given: scope.given, ofContext: namespace });
      const { key, items } = await deletedOf(client, targets, { command, signal });
      return { cluster, namespace: key.namespace, items };
    }
    const items = await binItems(client, { command, signal });
    return { cluster, namespace, items: items.filter((item) => item.name === name) };
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

async function list(context: CommandContext): Promise<number> {
  const { flags, print } = context;
  const { items, cluster, namespace } = await open(context, 'bin list');
  await cluster.close();
  if (flags['json'] === true) {
    print(JSON.stringify({ items, usedBytes: bytesOf(items) }, undefined, 2));
    return 0;
  }
  if (items.length === 0) {
    print(nothingText('the bin holds no machine', namespace));
    return 0;
  }
  const head = ['NAMESPACE', 'NAME', 'DELETED', 'BY', 'EXPIRES', 'DISKS', 'SPACE', 'STATE'];
  const rows = items.map(({ kind, namespace, name, deletedAt, deletedBy, disks, status }) => [
    namespace,
    name,
    deletedAt,
    deletedBy ?? '',
    status.expiresAt ?? '',
    String(disks),
    sizeText(status.usedBytes ?? 0),
    `${status.phase ?? 'Deleted'}${kind === 'content' ? ' (without a record in its namespace)' : ''}${status.message ? `: ${status.message}` : ''}`,
  ]);
  print(textTable(head, rows));
  print(`${items.length} ${items.length === 1 ? 'machine' : 'machines'}, ${sizeText(bytesOf(items))}`);
  return 0;
}

const bytesOf = (items: readonly BinItem[]): number =>
  items.reduce((sum, { status }) => sum + (status.usedBytes ?? 0), 0);

function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  let value = bytes;
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024;
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

/** Releases the storage of one machine, or of all that the flags name. */
async function empty(context: CommandContext): Promise<number> {
  const { flags, words, print, signal } = context;
  const name = words.length === 0 ? undefined : deletedName(context, 'bin empty');
  const { items: chosen, cluster, namespace } = await open(context, 'bin empty', name);
  try {
    const { client } = cluster;
    if (name !== undefined && chosen.length === 0)
      throw new CommandError(
        namespace === undefined ? `the bin holds no virtual machine ${name}` : notInBin({ namespace, name }),
      );
    for (const { kind, id, namespace } of chosen) {
      const deleting =
        kind === 'record'
          ? client.delete(DELETED_VIRTUAL_MACHINES, { namespace, name: id }, { signal })
          : client.delete(DELETED_VIRTUAL_MACHINE_CONTENTS, { namespace: '', name: id }, { signal });
      await deleting.catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
    if (flags['json'] === true) print(JSON.stringify({ released: chosen.length, usedBytes: bytesOf(chosen) }));
    else
      print(
        `${chosen.length} ${chosen.length === 1 ? 'machine' : 'machines'} released, with ${sizeText(bytesOf(chosen))}`,
      );
    return 0;
  } finally {
    await cluster.close();
  }
}
