/** The machine that a command's word names, with its instance, in the cluster that the command talks to. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { isFinal } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '@coracle/kubevirt/kinds/kinds';
import { type Cluster, clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError, textFlag } from '../command.ts';
import { machineTargets } from '../machine-target.ts';
import { didYouMean } from '../suggestions.ts';

/** A machine as the cluster shows it now; of one that was made as a bare instance there is no `vm`. */
export interface FoundMachine {
  readonly key: ObjectKey;
  readonly vm: VirtualMachine | undefined;
  readonly vmi: VirtualMachineInstance | undefined;
}

/** What a command about one machine works with. */
export interface MachineCall extends FoundMachine {
  readonly cluster: Cluster;
  readonly client: Client;
}

/**
 * Opens the cluster, finds the machine that `word` names, and closes the cluster when `use` is through. Throws UsageError
 * for a word that names none, CommandError with what it may have meant for one that is not there.
 */
export async function withMachine<T>(
  context: CommandContext,
  word: string,
  use: (call: MachineCall) => Promise<T>,
): Promise<T> {
  const given = textFlag(context.flags, 'namespace');
  machineTargets(word, { given, ofContext: '' });
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const targets = machineTargets(word, { given, ofContext: cluster.namespace });
  return await use({ cluster, client, ...(await findMachine(client, targets, context.signal)) });
}

/**
 * The first of `targets` that is there. Where the caller may not look, the first: the server has the last word. Throws
 * CommandError when there is none.
 */
export async function findMachine(
  client: Client,
  targets: readonly ObjectKey[],
  signal: AbortSignal,
): Promise<FoundMachine> {
  for (const key of targets) {
    const [vm, vmi] = await Promise.all([
      look<VirtualMachine>(client, VIRTUAL_MACHINES, key, signal),
      look<VirtualMachineInstance>(client, VIRTUAL_MACHINE_INSTANCES, key, signal),
    ]);
    if (vm === 'hidden' || vmi === 'hidden' || vm !== undefined || vmi !== undefined)
      return { key, vm: vm === 'hidden' ? undefined : vm, vmi: vmi === 'hidden' ? undefined : vmi };
  }
  const tried = targets.map(textOf).join(', nor ');
  const names = await namesIn(client, targets[0]?.namespace ?? '', signal);
  throw new CommandError(
    `there is no machine ${tried}${didYouMean(targets[0]?.name ?? '', names)} (coracle list -A shows all)`,
  );
}

/** Throws CommandError for a machine that is stopped, or has ended: what takes a guest says so, and what to do. */
export function needInstance({ key, vm, vmi }: FoundMachine): void {
  const here = `${key.name} -n ${key.namespace}`;
  const phase = vmi?.status?.phase;
  if (isFinal(phase)) throw new CommandError(`${textOf(key)} has ended (${phase}; why: coracle why ${here})`);
  if (vmi !== undefined || vm === undefined) return;
  const status = vm.status?.printableStatus ?? 'Stopped';
  throw new CommandError(
    status === 'Stopped'
      ? `${textOf(key)} is stopped (start it: coracle start ${here})`
      : `${textOf(key)} is not running (${status}; why: coracle why ${here})`,
  );
}

/** The VirtualMachine, for what works on no bare instance. Throws CommandError. */
export function needVm({ key, vm, vmi }: FoundMachine): VirtualMachine {
  if (vm) return vm;
  throw new CommandError(
    vmi ? `${textOf(key)} belongs to no VirtualMachine` : `you may not get VirtualMachine ${textOf(key)}`,
  );
}

/** `NAMESPACE/NAME`. */
export const textOf = ({ namespace, name }: ObjectKey): string => `${namespace}/${name}`;

async function look<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<T | 'hidden' | undefined> {
  try {
    return await client.get(type, key, { signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (error instanceof ApiError && error.code === 403) return 'hidden';
    throw error;
  }
}

/** For a suggestion only: what cannot be listed suggests nothing. */
async function namesIn(client: Client, namespace: string, signal: AbortSignal): Promise<string[]> {
  try {
    const { items } = await client.list(VIRTUAL_MACHINES, { namespace, metadataOnly: true, signal });
    return items.map(({ metadata }) => metadata.name ?? '');
  } catch {
    return [];
  }
}
