/** A request passed on to what runs Pods on a node, by its own paths. */
import { internalError } from '@coracle/apimachinery/meta/status';
import { type ApiRequest, type ApiResponse, NO_BYTES, redirected } from '@coracle/runtime/http/seam';
import type { Exchange } from '../exchange.ts';

/**
 * The answer of the node; undefined when that node knows no such Pod, or nothing here runs any. `parts` replace those of
 * the client's request: its headers, credentials among them, do not go on by themselves. Throws ApiError 500 when the
 * node is out of reach.
 */
export async function askNode(
  { server, request }: Exchange,
  nodeName: string,
  parts: Pick<ApiRequest, 'method' | 'path' | 'headers' | 'body'> & Partial<ApiRequest>,
): Promise<ApiResponse | undefined> {
  if (!server.connectNode || nodeName === '') return undefined;
  try {
    const node = await server.connectNode(nodeName);
    const answer = await node(redirected(request, parts));
    return answer.status === 404 && answer.headers['coracle-proxied'] === undefined ? undefined : answer;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    server.log.warn('node not reached', { node: nodeName, error: why });
    throw internalError(`error dialing backend: ${why}`, error);
  }
}

/** The parts of a question of the server's own: what the user proved to us is not for the node to see, or to replay. */
export function ownQuestion(
  { request }: Exchange,
  path: string,
  more: Readonly<Record<string, string>> = {},
): Pick<ApiRequest, 'method' | 'path' | 'headers' | 'body'> {
  const { authorization: _authorization, cookie: _cookie, ...headers } = request.headers;
  return { method: 'GET', path, headers: { ...headers, ...more }, body: NO_BYTES };
}
