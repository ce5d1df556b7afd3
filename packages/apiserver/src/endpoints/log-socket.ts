/**
 * A log over a WebSocket, as the API server's streams of bytes are: what comes is sent as it comes, in binary messages or
 * as base64 text, after one empty message that shows the connection is up (apimachinery's wsstream.Reader).
 */
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type ApiRequest, type ApiResponse, NO_BYTES } from '@coracle/runtime/http/seam';
import { offeredProtocols } from '../auth/header-values.ts';
import { socketSink } from './watch-socket.ts';

const BINARY = new Set(['', 'binary.k8s.io']);
const BASE64 = 'base64.binary.k8s.io';

/** The answer as messages; 403 when the client offers protocols and none of these. One that is no success stays as it is. */
export function logOverSocket(request: ApiRequest, answer: ApiResponse, clock: Clock): ApiResponse {
  if (answer.status !== 200) return answer;
  const offered = offeredProtocols(request.headers['sec-websocket-protocol']);
  const protocol = (offered.length === 0 ? [''] : offered).find((one) => BINARY.has(one) || one === BASE64);
  if (protocol === undefined) return { status: 403, headers: {} };
  const split = (chunk: Uint8Array) => [protocol === BASE64 ? encodeBase64(chunk) : chunk];
  return {
    status: 101,
    headers: {},
    upgrade: {
      protocol,
      accept(socket) {
        socket.send(NO_BYTES);
        const sink = socketSink(socket, { split, clock });
        const { body = [] } = answer;
        if (typeof body === 'function') return body(sink);
        for (const chunk of body instanceof Uint8Array ? [body] : body) sink.write(chunk);
        sink.end();
      },
    },
  };
}
