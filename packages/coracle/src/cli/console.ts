/** `coracle console NAME`: the serial console of a VM on this terminal; Ctrl-] leaves. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import { createMessagePair } from '@coracle/runtime/http/message-pair';
import { type MessageSocket, NO_BYTES } from '@coracle/runtime/http/seam';
import { type Cluster, clusterFrom } from '../config/cluster.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';
import { machineTargets, runningMachine } from './machine-target.ts';

const ESCAPE = 0x1d; // Ctrl-]

/** `coracle console`. */
export async function console_(context: CommandContext): Promise<number> {
  const { flags, words } = context;
  const [word] = words;
  if (word === undefined || words.length !== 1)
    throw new UsageError('console takes one NAME (see: coracle console --help)');
  const given = textFlag(flags, 'namespace');
  machineTargets(word, { given, ofContext: '' }); // a word that names none needs no cluster to be refused
  const cluster = await clusterFrom(context);
  const finished = new AbortController();
  try {
    const targets = machineTargets(word, { given, ofContext: cluster.namespace });
    return await attachTo(await runningMachine(cluster.client, targets), { cluster, context, finished });
  } finally {
    finished.abort();
    await cluster.close();
  }
}

async function attachTo(
  { namespace, name }: ObjectKey,
  connection: { readonly cluster: Cluster; readonly context: CommandContext; readonly finished: AbortController },
): Promise<number> {
  const { cluster, finished } = connection;
  const { flags, signal, note } = connection.context;
  const at = `namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}/console`;
  const ask = (path: string) =>
    cluster.handler({
      method: 'GET',
      path,
      query: flags['backlog'] === true ? 'backlog=true' : '',
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-protocol': 'plain.kubevirt.io',
      },
      body: NO_BYTES,
      peer: { address: '' },
      signal: finished.signal,
      upgradable: true,
    });
  let response = await ask(`/apis/subresources.kubevirt.io/v1/${at}`);
  // A cluster without virt-api does not know the group: there the way leads through the node.
  if (response.status === 404 && !(await servesSubresources(cluster.client))) {
    const { status } = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name });
    if (!status?.nodeName) throw new CommandError(`${namespace}/${name} is on no node yet`);
    response = await ask(`/api/v1/nodes/${encodeURIComponent(status.nodeName)}/proxy/v1/${at}`);
  }
  if (response.status !== 101 || !response.upgrade)
    throw new CommandError(await refusal(response.body, response.status));
  const [socket, far] = createMessagePair('plain.kubevirt.io');
  response.upgrade.accept(far);
  if (process.stdin.isTTY) note(`connected to the serial console of ${namespace}/${name}; Ctrl-] leaves\r`);
  await attach(socket, signal);
  return 0;
}

async function servesSubresources(client: Client): Promise<boolean> {
  try {
    await client.raw('GET', '/apis/subresources.kubevirt.io');
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

async function refusal(body: unknown, status: number): Promise<string> {
  const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : '';
  try {
    return (JSON.parse(text) as { message?: string }).message ?? `the server answered ${status}`;
  } catch {
    return text.trim() || `the server answered ${status}`;
  }
}

/** Joins the terminal and the socket until either ends. The terminal is put back as it was. */
function attach(socket: MessageSocket, signal: AbortSignal): Promise<void> {
  const { stdin, stdout } = process;
  return new Promise((resolve) => {
    const raw = stdin.isTTY === true;
    const finish = (): void => {
      stdin.off('data', input);
      stdin.off('end', ended);
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
    // A pipe that ends (`echo ls | coracle console tiny`) leaves the console open for the answer until Ctrl-C.
    const ended = (): void => {};
    if (raw) stdin.setRawMode(true);
    stdin.on('data', input);
    stdin.on('end', ended);
    stdin.resume();
    socket.onMessage((data) => void stdout.write(data));
    socket.onClose(finish);
    signal.addEventListener('abort', finish, { once: true });
  });
}
