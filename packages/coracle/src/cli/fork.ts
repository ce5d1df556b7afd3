/** `coracle fork VM`: new machines that go on from the present moment of a running one. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client, WatchCallOptions, WatchEvent } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineSnapshot,
} from '@coracle/kubevirt/kinds/kinds';
import { FORK_INTO, forkNames, forkObstacle, MAX_FORKS } from '@coracle/kubevirt/rules/memory-state/fork';
import { INCLUDE_MEMORY, RESUME_FROM } from '@coracle/kubevirt/rules/memory-state/resume-request';
import { systemClock } from '@coracle/runtime/clock/clock';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { type CommandContext, CommandError, numberFlag, textFlag } from './command.ts';
import { machineWord } from './machine-target.ts';
import { isExplained } from './machines/equivalent.ts';
import { needInstance, needVm, textOf, withMachine } from './machines/find-machine.ts';

/** Looked at anew this often although nothing was heard of a change: a watch may have ended, or not be allowed. */
const LOOK_MS = 2000;
/** The server gives a fork up after five minutes. */
const WAIT_MS = 330_000;

/** Exit code 0 when every fork runs; 1, with what is known, when one does not. */
export function fork(context: CommandContext): Promise<number> {
  const { flags, signal } = context;
  const count = numberFlag(flags, 'count', { min: 1, max: MAX_FORKS, or: 1 });
  return withMachine(context, machineWord(context.words, 'fork'), async (call) => {
    const { key, client } = call;
    const vm = needVm(call);
    if (!isExplained(context)) {
      needInstance(call);
      const obstacle = forkObstacle(vm);
      if (obstacle !== undefined) throw new CommandError(`${textOf(key)} is not forked: ${obstacle}`);
    }
    const { namespace } = key;
    const { items } = await client.list(VIRTUAL_MACHINES, { namespace, metadataOnly: true, signal });
    const taken = new Set(items.map(({ metadata }) => metadata.name));
    const prefix = textFlag(flags, 'name');
    const names = forkNames(key.name, { count, prefix, isTaken: (name) => taken.has(name) });
    const asked = request(key, names);
    if (isExplained(context)) {
      context.print(`kubectl create -f - <<'EOF'\n${JSON.stringify(asked, undefined, 2)}\nEOF`);
      return 0;
    }
    const snapshot = await client.create(VIRTUAL_MACHINE_SNAPSHOTS, asked);
    return followFork(context, { client, namespace, snapshot, names });
  });
}

/** The one object that asks for a fork: from here on the server sees to it, whatever becomes of this command. */
const request = ({ namespace, name }: ObjectKey, names: readonly string[]): VirtualMachineSnapshot =>
  ({
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      namespace,
      generateName: `${name.slice(0, 50)}-fork-`,
      annotations: { [INCLUDE_MEMORY]: 'true', [FORK_INTO]: names.join(',') },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name } },
  }) as VirtualMachineSnapshot;

/** Waits until each machine runs on its own, and prints its name then. Throws CommandError when one will not. */
export async function followFork(
  { flags, print, signal }: Pick<CommandContext, 'flags' | 'print' | 'signal'>,
  fork: {
    readonly client: Client;
    readonly namespace: string;
    readonly snapshot: VirtualMachineSnapshot;
    readonly names: readonly string[];
  },
): Promise<number> {
  const { client, namespace, names } = fork;
  const waiting = new Set(names);
  const snapshotKey = { namespace, name: fork.snapshot.metadata.name ?? '' };
  const deadline = systemClock.monotonic() + WAIT_MS;
  const life = createLinkedController(signal);
  const changes = watchForks(client, { snapshot: snapshotKey, names, signal: life.signal });
  try {
    while (waiting.size > 0) {
      const change = changes.next();
      // Asked first: what was made before the snapshot went is seen below.
      const isOver = await gone(client, snapshotKey);
      for (const name of [...waiting]) {
        const found = await runningFork(client, { namespace, name });
        if (!found) continue;
        waiting.delete(name);
        if (flags['json'] !== true) print(`virtualmachine.kubevirt.io/${name} runs`);
      }
      if (waiting.size === 0) break;
      if (isOver || systemClock.monotonic() > deadline)
        throw new CommandError(
          `not forked: ${[...waiting].join(', ')} (kubectl get events -n ${namespace} --field-selector reason=ForkFailed)`,
        );
      await Promise.race([change, systemClock.sleep(LOOK_MS, life.signal)]);
    }
  } finally {
    life.abort(new DOMException('the fork is followed no more', 'AbortError'));
    life.release();
  }
  if (flags['json'] === true) print(JSON.stringify({ namespace, forks: names }));
  return 0;
}

interface Changes {
  /** Resolves with the next change after this call that may decide something. Never rejects. */
  next(): Promise<void>;
}

/** Asking again and again would take its share of the processors from what is waited for. */
function watchForks(
  client: Client,
  { snapshot, names, signal }: { snapshot: ObjectKey; names: readonly string[]; signal: AbortSignal },
): Changes {
  const { namespace } = snapshot;
  let heard = createDeferred();
  const follow = async <T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchCallOptions,
    decides: (event: WatchEvent<T>) => boolean,
  ): Promise<void> => {
    try {
      for await (const event of client.watch(type, { namespace, ...options, signal, readOnly: true })) {
        if (!decides(event)) continue;
        heard.resolve();
        heard = createDeferred();
      }
    } catch {
      // It is looked at from time to time without it.
    }
  };
  const named = (name: string): WatchCallOptions => ({ fieldSelector: `metadata.name=${name}` });
  const isOurs = (name: string | undefined): boolean => name !== undefined && names.includes(name);
  const forks = names.length === 1 ? named(names[0] ?? '') : {};
  void follow(
    VIRTUAL_MACHINE_SNAPSHOTS,
    { ...named(snapshot.name), metadataOnly: true },
    ({ type }) => type === 'DELETED',
  );
  void follow(
    VIRTUAL_MACHINES,
    { ...forks, metadataOnly: true },
    ({ object: { metadata } }) => isOurs(metadata?.name) && metadata.annotations?.[RESUME_FROM] === undefined,
  );
  void follow(
    VIRTUAL_MACHINE_INSTANCES,
    forks,
    ({ object: { metadata, status } }) => isOurs(metadata?.name) && status?.phase === 'Running',
  );
  return { next: () => heard.promise };
}

async function gone(client: Client, key: ObjectKey): Promise<boolean> {
  return (await orAbsent(client.get(VIRTUAL_MACHINE_SNAPSHOTS, key))) === undefined;
}

/** The machine, once it runs and needs what was saved no more. */
async function runningFork(client: Client, key: ObjectKey): Promise<VirtualMachine | undefined> {
  const vm = await orAbsent(client.get(VIRTUAL_MACHINES, key));
  const vmi = vm && (await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, key)));
  return vmi?.status?.phase === 'Running' && vm?.metadata.annotations?.[RESUME_FROM] === undefined ? vm : undefined;
}
