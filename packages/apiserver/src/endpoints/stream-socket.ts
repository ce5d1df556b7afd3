/** A watch over a WebSocket: each event is one message, text for JSON and binary for protobuf. For browsers. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiRequest, ApiResponse, ByteSink, ByteStream, MessageSocket } from '@coracle/runtime/http/seam';
import { offeredProtocols } from '../auth/header-values.ts';
import type { Representation } from './negotiation.ts';

/** A reader this far behind makes the watch wait; the watch itself gives up on one that stays behind. */
const BEHIND_BYTES = 256 * 1024;
const BEHIND_CHECK_MS = 10;
const LENGTH_BYTES = 4;
const NEWLINE = 0x0a;
const decoder = new TextDecoder();

/** The answer that turns a watch's stream of events into messages. */
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
export function socketSink(
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
