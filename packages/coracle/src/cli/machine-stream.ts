/** What a running machine gives out (console, screen, a port of the guest), by the subresource API, or by its node where that is missing. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import { wholeBody } from '@coracle/client/transport/response-body';
import { VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import { createMessagePair } from '@coracle/runtime/http/message-pair';
import { type ApiResponse, type MessageSocket, NO_BYTES } from '@coracle/runtime/http/seam';
import type { Cluster } from '../config/cluster.ts';
import { CommandError } from './command.ts';

const PROTOCOL = 'plain.kubevirt.io';

type Reached = Pick<Cluster, 'handler' | 'client'>;

/** What is opened of a machine, and for how long. */
export interface StreamRequest {
  /** `console`, `vnc`, `portforward/22/tcp`. */
  readonly subresource: string;
  readonly query?: string;
  /** Ends the stream when it fires. */
  readonly signal: AbortSignal;
}

/** Opens the stream. Throws CommandError with what the server says of it. */
export async function openMachineStream(
  cluster: Reached,
  key: ObjectKey,
  request: StreamRequest,
): Promise<MessageSocket> {
  const [socket, far] = createMessagePair(PROTOCOL);
  (await askForStream(cluster, key, request))(far);
  return socket;
}

/** As `openMachineStream`, for a socket of the caller's own: the stream is joined to what the answer is called with. */
export async function askForStream(
  cluster: Reached,
  key: ObjectKey,
  request: StreamRequest,
): Promise<(socket: MessageSocket) => void> {
  const response = await ask(cluster, key, {
    ...request,
    headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': PROTOCOL },
  });
  if (response.status !== 101 || !response.upgrade) throw new CommandError(await refusal(response, request.signal));
  const { upgrade } = response;
  return (socket) => upgrade.accept(socket);
}

/** What a GET of a subresource answers, whole. Throws CommandError with what the server says of a failure. */
export async function readSubresource(cluster: Reached, key: ObjectKey, request: StreamRequest): Promise<Uint8Array> {
  const response = await ask(cluster, key, request);
  if (response.status !== 200) throw new CommandError(await refusal(response, request.signal));
  return wholeBody(response, request.signal);
}

/** Asks the subresource API; with headers of an upgrade, for a stream. */
async function ask(
  { handler, client }: Reached,
  { namespace, name }: ObjectKey,
  { subresource, query = '', signal, headers }: StreamRequest & { readonly headers?: Readonly<Record<string, string>> },
): Promise<ApiResponse> {
  const at = `namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}/${subresource}`;
  const get = (path: string) =>
    handler({
      method: 'GET',
      path,
      query,
      headers: headers ?? {},
      body: NO_BYTES,
      peer: { address: '' },
      signal,
      ...(headers && { upgradable: true }),
    });
  const response = await get(`/apis/subresources.kubevirt.io/v1/${at}`);
  // A cluster without virt-api does not know the group: there the way leads through the node.
  const servesGroup = () => orAbsent(client.raw('GET', '/apis/subresources.kubevirt.io').then(() => true));
  if (response.status !== 404 || (await servesGroup())) return response;
  const { status } = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name });
  if (!status?.nodeName) throw new CommandError(`${namespace}/${name} is on no node yet`);
  return get(`/api/v1/nodes/${encodeURIComponent(status.nodeName)}/proxy/v1/${at}`);
}

/** Bytes of a refusal that are looked at. */
const MAX_MESSAGE = 4096;

/** What the server says of a request that it refuses. */
export async function refusal(response: ApiResponse, signal: AbortSignal): Promise<string> {
  const { status } = response;
  const bytes = await wholeBody(response, signal).catch(() => NO_BYTES);
  const text = new TextDecoder().decode(bytes.subarray(0, MAX_MESSAGE));
  try {
    return (JSON.parse(text) as { message?: string }).message ?? `the server answered ${status}`;
  } catch {
    return text.trim() || `the server answered ${status}`;
  }
}
