/** A stream of a running machine (console, a port of the guest), by the subresource API, or by its node where that is missing. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import { createMessagePair } from '@coracle/runtime/http/message-pair';
import { type MessageSocket, NO_BYTES } from '@coracle/runtime/http/seam';
import type { Cluster } from '../config/cluster.ts';
import { CommandError } from './command.ts';

const PROTOCOL = 'plain.kubevirt.io';

/** What is opened of a machine, and for how long. */
export interface StreamRequest {
  /** `console`, `portforward/22/tcp`. */
  readonly subresource: string;
  readonly query?: string;
  /** Ends the stream when it fires. */
  readonly signal: AbortSignal;
}

/** Opens the stream. Throws CommandError with what the server says of it. */
export async function openMachineStream(
  cluster: Pick<Cluster, 'handler' | 'client'>,
  key: ObjectKey,
  request: StreamRequest,
): Promise<MessageSocket> {
  const [socket, far] = createMessagePair(PROTOCOL);
  (await askForStream(cluster, key, request))(far);
  return socket;
}

/** As `openMachineStream`, for a socket of the caller's own: the stream is joined to what the answer is called with. */
export async function askForStream(
  cluster: Pick<Cluster, 'handler' | 'client'>,
  { namespace, name }: ObjectKey,
  { subresource, query = '', signal }: StreamRequest,
): Promise<(socket: MessageSocket) => void> {
  const at = `namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}/${subresource}`;
  const ask = (path: string) =>
    cluster.handler({
      method: 'GET',
      path,
      query,
      headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': PROTOCOL },
      body: NO_BYTES,
      peer: { address: '' },
      signal,
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
  const { upgrade } = response;
  return (socket) => upgrade.accept(socket);
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
