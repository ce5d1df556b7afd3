/** `coracle console NAME`: the serial console of a VM on this terminal; Ctrl-] leaves. */

import type { MessageSocket } from '@coracle/runtime/http/seam';
import type { CommandContext } from './command.ts';
import { openMachineStream } from './machine-stream.ts';
import { machineWord } from './machine-target.ts';
import { equivalent, isExplained } from './machines/equivalent.ts';
import { needInstance, withMachine } from './machines/find-machine.ts';

const ESCAPE = 0x1d; // Ctrl-]

/** `coracle console`. */
export function console_(context: CommandContext): Promise<number> {
  return withMachine(context, machineWord(context.words, 'console'), async (call) => {
    if (isExplained(context))
      return equivalent(context, ['virtctl', 'console', call.key.name, '-n', call.key.namespace]);
    needInstance(call);
    const { key, cluster } = call;
    const { flags, signal, note } = context;
    const finished = new AbortController();
    try {
      const socket = await openMachineStream(cluster, key, {
        subresource: 'console',
        query: flags['backlog'] === true ? 'backlog=true' : '',
        signal: finished.signal,
      });
      if (process.stdin.isTTY) note(`connected to the serial console of ${key.namespace}/${key.name}; Ctrl-] leaves\r`);
      await attach(socket, signal);
      return 0;
    } finally {
      finished.abort();
    }
  });
}

/** Joins the terminal and the socket until either ends. The terminal is put back as it was. */
function attach(socket: MessageSocket, signal: AbortSignal): Promise<void> {
  const { stdin, stdout } = process;
  return new Promise((resolve) => {
    const raw = stdin.isTTY === true;
    const finish = (): void => {
      stdin.off('data', input);
      if (raw) stdin.setRawMode(false);
      stdin.pause();
      socket.close();
      resolve();
    };
    const input = (chunk: Buffer): void => {
      const at = chunk.indexOf(ESCAPE);
      if (at !== 0) socket.send(at < 0 ? chunk : chunk.subarray(0, at));
      if (at >= 0) finish();
    };
    if (raw) stdin.setRawMode(true);
    // A pipe that ends (`echo ls | coracle console tiny`) leaves the console open for the answer until Ctrl-C.
    stdin.on('data', input);
    stdin.resume();
    socket.onMessage((data) => void stdout.write(data));
    socket.onClose(finish);
    signal.addEventListener('abort', finish, { once: true });
  });
}
