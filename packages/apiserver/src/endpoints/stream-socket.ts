/** Streams over a WebSocket, for browsers: the events of a watch, each one message, and the bytes of a log. */
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { Clock } from '@coracle/runtime/clock/clock';
import {
  type ApiRequest,
  type ApiResponse,
  type ByteSink,
  type ByteStream,
  type MessageSocket,
  NO_BYTES,
} from '@coracle/runtime/http/seam';
import { offeredProtocols } from '../auth/header-values.ts';
import type { Representation } from './negotiation.ts';

/** A reader this far behind makes the watch wait; the watch itself gives up on one that stays behind. */
const BEHIND_BYTES = 256 * 1024;
const BEHIND_CHECK_MS = 10;
const LENGTH_BYTES = 4;
const NEWLINE = 0x0a;
const decoder = new TextDecoder();

/** The answer that turns a watch's stream of events into messages: text for JSON, binary for protobuf. */
export const socketResponse = (
  request: ApiRequest,
  {
    stream,
    encoding,
    clock,
  }: { readonly stream: ByteStream; readonly encoding: Representation['encoding']; readonly clock: Clock },
): ApiResponse => ({
  status: 101,
  headers: {},
  upgrade: {
    // The sub-protocol if the client offers just one; nobody asks for more of a watch.
    protocol: onlyOne(offeredProtocols(request.headers['sec-websocket-protocol'])),
    accept: (socket) => stream(socketSink(socket, { split: encoding === 'protobuf' ? byLength : byLine, clock })),
  },
});

const onlyOne = (offered: readonly string[]): string => (offered.length === 1 ? offered[0]! : '');

type Split = (chunk: Uint8Array) => Iterable<Uint8Array | string>;

function* byLine(chunk: Uint8Array): Iterable<string> {
  let start = 0;
  while (start < chunk.length) {
    const end = chunk.indexOf(NEWLINE, start);
    const after = end < 0 ? chunk.length : end + 1;
    yield decoder.decode(chunk.subarray(start, after));
    start = after;
  }
}

/** A message knows its own length: the prefix that frames a stream is left out. */
function* byLength(chunk: Uint8Array): Iterable<Uint8Array> {
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  let at = 0;
  while (at + LENGTH_BYTES <= chunk.length) {
    const length = view.getUint32(at);
    yield chunk.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
    at += LENGTH_BYTES + length;
  }
}

/** What is written goes out as the messages that `split` makes of it; the end closes the socket. */
function socketSink(
  socket: MessageSocket,
  { split, clock }: { readonly split: Split; readonly clock: Clock },
): ByteSink {
  const gone = new AbortController();
  socket.onClose(() => gone.abort(new Error('the client closed the connection')));
  return {
    signal: gone.signal,
    get buffered() {
      return socket.buffered;
    },
    write(chunk) {
      if (gone.signal.aborted) return true;
      for (const message of split(chunk)) socket.send(message);
      return socket.buffered <= BEHIND_BYTES;
    },
    // A socket does not say when it has caught up: it is asked.
    drained: () =>
      new Promise((resolve) => {
        const look = (): void => {
          if (gone.signal.aborted || socket.buffered <= BEHIND_BYTES) resolve();
          else clock.schedule(BEHIND_CHECK_MS, look);
        };
        look();
      }),
    end: () => socket.close(1000),
  };
}

const BINARY = new Set(['', 'binary.k8s.io']);
const BASE64 = 'base64.binary.k8s.io';

/**
 * A log as messages, binary or base64 text, after an empty one that shows the connection is up (apimachinery's
 * wsstream.Reader); 403 when the client offers protocols and none of these. An answer that is no success
 * stays as it is.
 */
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
