/** The machine that a command's word names: `NAME`, `vm/NAME`, `vmi/NAME`, each also with `.NAMESPACE` behind it. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '@coracle/kubevirt/kinds/kinds';
import { CommandError, UsageError } from './command.ts';

const KINDS: ReadonlySet<string> = new Set(
  ['vm', 'vms', 'virtualmachine', 'virtualmachines'].flatMap((name) => [name, `${name}.kubevirt.io`]),
);
const INSTANCE_KINDS: ReadonlySet<string> = new Set(
  ['vmi', 'vmis', 'virtualmachineinstance', 'virtualmachineinstances'].flatMap((name) => [name, `${name}.kubevirt.io`]),
);

/** What a word may mean, the likeliest first: names of machines may have dots in them too. Throws UsageError. */
export function machineTargets(
  word: string,
  namespaces: { readonly given: string | undefined; readonly ofContext: string },
): readonly ObjectKey[] {
  const [kind, ...rest] = word.split('/');
  const name = rest.length === 0 ? word : rest.join('/');
  if (rest.length > 1 || name === '' || (rest.length === 1 && !KINDS.has(kind!) && !INSTANCE_KINDS.has(kind!)))
    throw new UsageError(`a machine is named NAME, vm/NAME, vmi/NAME or NAME.NAMESPACE, not "${word}"`);
  const own = { namespace: namespaces.given ?? namespaces.ofContext, name };
  const dot = name.lastIndexOf('.');
  if (namespaces.given !== undefined || dot <= 0 || dot === name.length - 1) return [own];
  return [own, { namespace: name.slice(dot + 1), name: name.slice(0, dot) }];
}

/**
 * The one of `targets` whose instance is there. Where the caller may not look, the first one: the server has the last word.
 * Throws CommandError for a machine that is stopped, has ended, or is not there.
 */
export async function runningMachine(client: Client, targets: readonly ObjectKey[]): Promise<ObjectKey> {
  for (const target of targets) {
    const vmi = await look<VirtualMachineInstance>(client, VIRTUAL_MACHINE_INSTANCES, target);
    const text = `${target.namespace}/${target.name}`;
    if (vmi === 'unknown') return target;
    if (vmi) {
      const phase = vmi.status?.phase;
      if (phase === 'Succeeded' || phase === 'Failed')
        throw new CommandError(`${text} has ended (${phase}): it has no console`);
      return target;
    }
    const vm = await look<VirtualMachine>(client, VIRTUAL_MACHINES, target);
    if (vm && vm !== 'unknown') {
      const status = vm.status?.printableStatus ?? 'Stopped';
      throw new CommandError(
        `${text} is ${status === 'Stopped' ? 'stopped' : `not running (${status})`}: it has a console once it runs (virtctl start ${target.name} -n ${target.namespace})`,
      );
    }
  }
  const tried = targets.map(({ namespace, name }) => `${namespace}/${name}`);
  throw new CommandError(`there is no machine ${tried.join(', nor ')} (kubectl get vm,vmi -A)`);
}

async function look<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  key: ObjectKey,
): Promise<T | 'unknown' | undefined> {
  try {
    return await client.get(type, key);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (error instanceof ApiError && error.code === 403) return 'unknown';
    throw error;
  }
}
