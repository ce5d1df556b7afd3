/** `coracle port-forward NAME PORT...`: ports of a guest at ports of this host, as long as the command runs. */

import { type CommandContext, numberFlag, textFlag, UsageError } from '../command.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type MachineCall, needInstance, textOf, withMachine } from './find-machine.ts';
import { joinGuestPort, joinSpeakingPort, streamsSocket } from './guest-port.ts';
import { DEFAULT_ADDRESS, serveLocally } from './serve-locally.ts';

const USAGE = 'port-forward takes a machine and ports, as PORT or LOCAL:PORT (see: coracle port-forward --help)';

/** A port of this host, 0 for any, and the guest's behind it. */
export interface ForwardedPorts {
  readonly local: number;
  readonly guest: number;
}

/** Reads `80`, `8080:80`, `:80`. Throws UsageError. */
export function readPorts(text: string): ForwardedPorts {
  const [, local, guest = ''] = /^(?:(\d*):)?(\d+)$/.exec(text) ?? [];
  const port = Number(guest);
  const at = local === undefined ? port : Number(local);
  if (guest === '' || port < 1 || port > 65_535 || at > 65_535)
    throw new UsageError(`a port is PORT, LOCAL:PORT or :PORT with numbers up to 65535, not "${text}"`);
  return { local: at, guest: port };
}

/** `coracle port-forward`. */
export async function portForward(context: CommandContext): Promise<number> {
  const { flags, words } = context;
  const [name, ...rest] = words;
  if (name === undefined || rest.length === 0) throw new UsageError(USAGE);
  const ports = rest.map(readPorts);
  const [first] = ports as [ForwardedPorts];
  const stdio = flags['stdio'] === true;
  if (stdio && ports.length > 1) throw new UsageError('--stdio takes one port');
  const patience =
    textFlag(flags, 'wait') === undefined ? undefined : numberFlag(flags, 'wait', { min: 1, max: 86_400, or: 1 });
  if (patience !== undefined && !stdio) throw new UsageError('--wait goes with --stdio');
  const address = textFlag(flags, 'address') ?? DEFAULT_ADDRESS;
  return withMachine(context, name, async (call) => {
    if (isExplained(context)) {
      const more = stdio ? ['--stdio'] : address === DEFAULT_ADDRESS ? [] : ['--address', address];
      return equivalent(context, [
        'virtctl',
        'port-forward',
        ...more,
        `vm/${call.key.name}/${call.key.namespace}`,
        ...rest,
      ]);
    }
    needInstance(call);
    if (stdio) return joinStdio(context, call, { port: first.guest, patience });
    return listenUntilStopped(context, call, { ports, address });
  });
}

async function joinStdio(
  { signal }: CommandContext,
  call: MachineCall,
  { port, patience }: { readonly port: number; readonly patience: number | undefined },
): Promise<number> {
  const { key, cluster } = call;
  if (patience !== undefined) {
    await joinSpeakingPort({ cluster, key, port, signal }, { input: process.stdin, output: process.stdout }, patience);
    return 0;
  }
  await new Promise<void>((resolve, reject) => {
    const socket = streamsSocket(process.stdin, process.stdout);
    process.stdout.once('close', resolve);
    process.stdout.once('finish', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
    joinGuestPort({ cluster, key, port, signal }, socket).catch(reject);
  });
  return 0;
}

async function listenUntilStopped(
  context: CommandContext,
  { cluster, key }: MachineCall,
  { ports, address }: { readonly ports: readonly ForwardedPorts[]; readonly address: string },
): Promise<number> {
  const { signal } = context;
  await serveLocally(
    context,
    address,
    ports.map(({ local, guest }) => ({
      local,
      what: `port ${guest} of ${textOf(key)}`,
      join: (socket) => joinGuestPort({ cluster, key, port: guest, signal }, socket),
    })),
  );
  return 0;
}
