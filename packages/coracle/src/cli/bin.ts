/** `coracle bin`: what is kept of deleted machines, and the end of it. */

import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { DELETED_VIRTUAL_MACHINE_CONTENTS, DELETED_VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { type BinItem, binItems, deletedOf } from './bin-records.ts';
import { type CommandContext, CommandError, UsageError } from './command.ts';
import { machineWord } from './machine-target.ts';
import { namespaceScope } from './namespace-scope.ts';
import { nothingText } from './nothing-text.ts';
import { textTable } from './text-table.ts';

const POLL_MS = 100;
/** What lasts no longer is not worth a word. */
const QUIET_MS = 1_000;
/** Files of many gigabytes are gone in seconds. */
const RELEASE_MS = 60_000;

/** `coracle bin list` and `coracle bin empty [vm NAME]`. */
export async function bin(context: CommandContext): Promise<number> {
  const [verb = '', ...words] = context.words;
  switch (verb) {
    case 'list':
      if (words.length > 0) throw new UsageError(`bin list takes flags only, not "${words[0]}"`);
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

async function open(context: CommandContext, command: string, word?: string): Promise<Opened> {
  const { flags, signal } = context;
  const scope = namespaceScope(flags);
  if (word !== undefined && scope.everywhere) throw new UsageError('give a VM or --all-namespaces, not both');
  const cluster = await clusterFrom(context);
  try {
    const namespace = scope.of(cluster.namespace);
    const where = namespace === undefined ? {} : { namespace };
    const items =
      word === undefined
        ? await binItems(cluster.client, { ...where, command, signal })
        : await deletedOf(context, cluster, { word, command });
    return { cluster, namespace, items };
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

/** Releases the storage of one machine, or of all that the flags name, and waits until it is gone. */
async function empty(context: CommandContext): Promise<number> {
  const { flags, words, print, signal } = context;
  const word = words.length === 0 ? undefined : machineWord(words, 'bin empty');
  const { items: chosen, cluster } = await open(context, 'bin empty', word);
  try {
    const { client } = cluster;
    for (const { kind, id, namespace } of chosen) {
      const deleting =
        kind === 'record'
          ? client.delete(DELETED_VIRTUAL_MACHINES, { namespace, name: id }, { signal })
          : client.delete(DELETED_VIRTUAL_MACHINE_CONTENTS, { namespace: '', name: id }, { signal });
      await orAbsent(deleting);
    }
    await untilReleased(context, client, chosen);
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

/** Who may not list contents waits for the records alone. */
async function untilReleased(
  { progress, signal }: CommandContext,
  client: Client,
  chosen: readonly BinItem[],
): Promise<void> {
  const contents = new Set(chosen.map(({ content }) => content));
  const [namespace, ...others] = new Set(chosen.map((item) => item.namespace));
  const where = namespace === undefined || others.length > 0 ? {} : { namespace };
  const begun = systemClock.monotonic();
  for (;;) {
    const items = await binItems(client, { ...where, command: 'bin empty', signal });
    const left = items.filter(({ content }) => contents.has(content));
    if (left.length === 0) return;
    const waited = systemClock.monotonic() - begun;
    const names = [...new Set(left.map(({ namespace, name }) => `${namespace}/${name}`))].join(', ');
    if (waited > RELEASE_MS)
      throw new CommandError(
        `${names} ${left.length === 1 ? 'is' : 'are'} still there after ${RELEASE_MS / 1000} s (see: coracle bin list -A)`,
      );
    if (waited > QUIET_MS) progress(`waiting until the storage of ${names} is released`);
    await systemClock.sleep(POLL_MS, signal);
  }
}
