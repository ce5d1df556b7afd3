/** How a client and this server agree on a way to forward ports; the node does the rest. */
import { badRequest, internalError } from '@coracle/apimachinery/meta/status';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { offeredProtocols } from '../../auth/header-values.ts';
import type { Exchange } from '../exchange.ts';
import { textResponse } from '../responses.ts';
import { askNode, ownQuestion } from './ask-node.ts';

/** What kubectl calls SPDY frames in WebSocket messages, and what nodes call it. */
const PORT_FORWARD = 'SPDY/3.1+portforward.k8s.io';
const NODE_PORT_FORWARD = 'spdy-3.1.portforward.k8s.io';
/** The older way, of client libraries: ports in the query, two channels for each. */
const CHANNELS = 'v4.channel.k8s.io';
/** SPDY without a WebSocket, as kubectl before 1.31 asks for it. */
const SPDY = 'SPDY/3.1';
const STREAM_VERSION = 'x-stream-protocol-version';
const STREAM_PROTOCOL = 'portforward.k8s.io';

/**
 * SPDY/3.1, in the messages of a WebSocket or as the bytes of an upgraded connection. To the node it always goes in a
 * WebSocket, which the client's socket is joined to: nothing here looks into it.
 */
export async function forwardPorts(exchange: Exchange, nodeName: string, path: string): Promise<ApiResponse> {
  const { request } = exchange;
  const agreed = request.upgradeTo === undefined ? overWebSocket(request) : overBytes(request);
  if ('refusal' in agreed) return agreed.refusal;
  const asked = ownQuestion(exchange, path, { 'sec-websocket-protocol': agreed.ofNode ?? NODE_PORT_FORWARD });
  const answer = await askNode(exchange, nodeName, { ...asked, upgradable: true, upgradeTo: undefined });
  if (!answer) throw internalError(`error dialing backend: node ${JSON.stringify(nodeName)} runs no such pod`);
  if (!answer.upgrade) return answer;
  const { accept } = answer.upgrade;
  return { ...answer, headers: { ...answer.headers, ...agreed.headers }, upgrade: { ...agreed.upgrade, accept } };
}

type Agreed =
  | { readonly refusal: ApiResponse }
  | {
      readonly headers?: ApiResponse['headers'];
      readonly upgrade: { readonly protocol: string; readonly raw?: boolean };
      /** What the node is to speak, where that is no SPDY. */
      readonly ofNode?: string;
    };

function overWebSocket({ upgradable, headers }: ApiRequest): Agreed {
  if (!upgradable) throw badRequest('Upgrade request required');
  const offered = offeredProtocols(headers['sec-websocket-protocol']);
  if (offered.includes(PORT_FORWARD)) return { upgrade: { protocol: PORT_FORWARD } };
  if (offered.includes(CHANNELS)) return { upgrade: { protocol: CHANNELS }, ofNode: CHANNELS };
  throw badRequest(`the WebSocket protocols spoken here are ${PORT_FORWARD} and ${CHANNELS}`);
}

/** The handshake of httpstream: 403 when the two have no protocol in common. */
function overBytes({ upgradeTo = '', headers }: ApiRequest): Agreed {
  if (upgradeTo.toLowerCase() !== SPDY.toLowerCase()) {
    throw badRequest(`unable to upgrade: missing upgrade headers in request: "${upgradeTo}" is not ${SPDY}`);
  }
  const offered = offeredProtocols(headers[STREAM_VERSION]);
  if (offered.length === 0) throw badRequest(`unable to upgrade: X-Stream-Protocol-Version is required`);
  if (!offered.includes(STREAM_PROTOCOL)) {
    const text = `unable to upgrade: unable to negotiate protocol: client supports [${offered.join(' ')}], server accepts [${STREAM_PROTOCOL}]`;
    const answer = textResponse(403, text);
    return {
      refusal: { ...answer, headers: { ...answer.headers, 'x-accept-stream-protocol-versions': STREAM_PROTOCOL } },
    };
  }
  return { headers: { [STREAM_VERSION]: STREAM_PROTOCOL }, upgrade: { protocol: SPDY, raw: true } };
}
