/** `coracle logs NAME`: what a guest has written to its serial console, and with `-f` what it writes. */

import type { ApiResponse, ByteSink } from '@coracle/runtime/http/seam';
import { NO_BYTES } from '@coracle/runtime/http/seam';
import { type CommandContext, CommandError, numberFlag, textFlag } from '../command.ts';
import { refusal } from '../machine-stream.ts';
import { machineWord } from '../machine-target.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type FoundMachine, type MachineCall, textOf, withMachine } from './find-machine.ts';
import { awaitNext } from './follow-start.ts';
import { launcherPod } from './launcher-pod.ts';
import { whyNotRunning } from './why-facts.ts';

const CONTAINER = 'guest-console-log';
const MOST_LINES = 1_000_000;

/** `coracle logs`. */
export async function logs(context: CommandContext): Promise<number> {
  const { flags, signal } = context;
  const follow = flags['follow'] === true;
  const tail =
    textFlag(flags, 'tail') === undefined ? undefined : numberFlag(flags, 'tail', { min: 0, max: MOST_LINES, or: 0 });
  return withMachine(context, machineWord(context.words, 'logs'), async (call) => {
    const { key, client } = call;
    const pod = await launcherPod(client, call, signal);
    if (pod === undefined)
      throw new CommandError(`${textOf(key)} has no log: it ${await whyNotRunning(client, call, signal)}`);
    const name = pod.metadata.name ?? '';
    if (isExplained(context))
      return equivalent(context, [
        ...['kubectl', 'logs', name, '-n', key.namespace, '-c', CONTAINER],
        ...(follow ? ['-f'] : []),
        ...(tail === undefined ? [] : [`--tail=${tail}`]),
      ]);
    if (!follow && pod.status?.phase === 'Pending')
      throw new CommandError(`${textOf(key)} has no log yet: it ${await whyNotRunning(client, call, signal)}`);
    await copyLog(call, name, { follow, tail }, signal);
    // Whoever follows a machine follows it through its restarts, until it is off or gone.
    for (let now: FoundMachine | undefined = call; follow && now && process.stdout.writable; ) {
      now = await awaitNext({ client, key, signal, note: context.note }, now);
      const next = now && (await launcherPod(client, now, signal));
      if (next) await copyLog(call, next.metadata.name ?? '', { follow, tail: undefined }, signal);
    }
    return 0;
  });
}

async function copyLog(
  { key, cluster }: MachineCall,
  pod: string,
  { follow, tail }: { readonly follow: boolean; readonly tail: number | undefined },
  signal: AbortSignal,
): Promise<void> {
  const response = await cluster.handler({
    method: 'GET',
    path: `/api/v1/namespaces/${encodeURIComponent(key.namespace)}/pods/${encodeURIComponent(pod)}/log`,
    query: new URLSearchParams({
      container: CONTAINER,
      ...(follow && { follow: 'true' }),
      ...(tail !== undefined && { tailLines: String(tail) }),
    }).toString(),
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal,
  });
  if (response.status !== 200) throw new CommandError(await refusal(response, signal));
  await copyOut(response, signal);
}

/** Writes a body to standard output, as fast as that takes it. */
function copyOut({ body }: ApiResponse, signal: AbortSignal): Promise<void> {
  const { stdout } = process;
  return new Promise((resolve, reject) => {
    if (body === undefined) return resolve();
    if (typeof body !== 'function') {
      for (const part of body instanceof Uint8Array ? [body] : body) stdout.write(part);
      return resolve();
    }
    // A reader that has seen enough ends it.
    const gone = new AbortController();
    stdout.once('close', () => gone.abort());
    stdout.once('error', () => gone.abort());
    const stop = AbortSignal.any([signal, gone.signal]);
    stop.addEventListener('abort', () => resolve(), { once: true });
    const sink: ByteSink = {
      write: (chunk) => stdout.write(chunk),
      get buffered() {
        return stdout.writableLength;
      },
      drained: () => new Promise((done) => (stdout.writableNeedDrain ? void stdout.once('drain', done) : done())),
      end: resolve,
      fail: () => reject(new CommandError('the connection was lost while the log was read')),
      signal: stop,
    };
    body(sink);
  });
}
