/** `coracle undelete NAME`: brings a deleted machine back, and waits until it is there. */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
  type UndeleteRequest,
} from '@coracle/kubevirt/kinds/kinds';
import { VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kubevirt';
import { UNDELETED_FROM } from '@coracle/kubevirt/rules/bin/bin-names';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { type BinItem, deletedOf, notInBin } from './bin-records.ts';
import { type CommandContext, CommandError, numberFlag, textFlag } from './command.ts';
import { machineWord } from './machine-target.ts';

const POLL_MS = 100;
const MOST_SECONDS = 3600;

/** Exit code 0 when the machine is there; 1, with the way out, when it cannot come back. */
export async function undelete(context: CommandContext): Promise<number> {
  const { flags, print, note, signal } = context;
  const word = machineWord(context.words, 'undelete');
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: MOST_SECONDS, or: 120 });
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const item = chosen(context, await deletedOf(context, cluster, { word, command: 'undelete' }));
  const { namespace } = item;
  if (item.status.message) note(`before: ${item.status.message}`);
  const request: UndeleteRequest = { id: crypto.randomUUID() };
  const name = textFlag(flags, 'name');
  if (name !== undefined) request.name = name;
  if (flags['new-identity'] === true) request.newIdentity = true;
  await ask(client, item, request, signal);
  const machine = await follow(context, { client, item, request, name: name ?? item.name, seconds });
  const { disks } = item;
  if (flags['json'] === true)
    print(JSON.stringify({ namespace, name: machine.metadata.name, uid: machine.metadata.uid, disks }));
  else print(`${namespace}/${machine.metadata.name} is back, with ${disks} ${disks === 1 ? 'disk' : 'disks'}`);
  return 0;
}

/** The newest of them, or the one whose record is named. */
function chosen({ flags, note }: CommandContext, items: readonly BinItem[]): BinItem {
  const record = textFlag(flags, 'record');
  const [item, ...others] = items.filter(({ id }) => record === undefined || id === record);
  if (!item) throw notInBin(items[0]!, ` as ${record}`);
  for (const other of others) note(`also in the bin: deleted at ${other.deletedAt}, --record ${other.id}`);
  return item;
}

/** Writes the request. */
async function ask(client: Client, item: BinItem, request: UndeleteRequest, signal: AbortSignal): Promise<void> {
  // All members: those of an earlier request go.
  const undelete = { id: request.id, name: request.name ?? null, newIdentity: request.newIdentity ?? null };
  const patch = { type: 'merge', body: { spec: { undelete } } } as const;
  if (item.kind === 'record')
    await client.patch(DELETED_VIRTUAL_MACHINES, { namespace: item.namespace, name: item.id }, patch, { signal });
  else await client.patch(DELETED_VIRTUAL_MACHINE_CONTENTS, { namespace: '', name: item.id }, patch, { signal });
}

interface Followed {
  readonly client: Client;
  readonly item: BinItem;
  readonly request: UndeleteRequest;
  readonly name: string;
  readonly seconds: number;
}

/** Waits until the machine is there and its record is gone. */
async function follow({ signal, note }: CommandContext, followed: Followed): Promise<KubeObject> {
  const { client, item, request, name, seconds } = followed;
  const deadline = systemClock.monotonic() + seconds * 1000;
  let said: string | undefined;
  for (;;) {
    const status = await statusNow(client, item, signal);
    if (status === undefined) return machineOf(client, { ...item, name }, signal);
    if (status.failedRequest === request.id) throw new CommandError(status.message ?? 'it cannot be brought back');
    if (status.message !== undefined && status.message !== said && status.message !== item.status.message) {
      said = status.message;
      note(said);
    }
    if (systemClock.monotonic() > deadline)
      throw new CommandError(
        `${item.namespace}/${item.name} is not back after ${seconds} s${said ? ` (${said})` : ''}; the server continues`,
      );
    await systemClock.sleep(POLL_MS, signal);
  }
}

/** The status that the request is answered in; undefined when the record is gone. */
async function statusNow(client: Client, item: BinItem, signal: AbortSignal): Promise<BinItem['status'] | undefined> {
  const found = await (item.kind === 'record'
    ? orAbsent(client.get(DELETED_VIRTUAL_MACHINES, { namespace: item.namespace, name: item.id }, { signal }))
    : orAbsent(client.get(DELETED_VIRTUAL_MACHINE_CONTENTS, { namespace: '', name: item.id }, { signal })));
  return found && (found.status ?? {});
}

/** A record that went without its machine had its time over, or was emptied. */
async function machineOf(
  client: Client,
  { namespace, name }: Pick<BinItem, 'namespace' | 'name'>,
  signal: AbortSignal,
): Promise<KubeObject> {
  const machine = await orAbsent(client.get(VIRTUAL_MACHINES, { namespace, name }, { signal }));
  if (machine?.metadata.annotations?.[UNDELETED_FROM] !== undefined) return machine;
  throw new CommandError(
    `${namespace}/${name} is no longer in the bin: its retention had expired, or the bin was emptied`,
  );
}
