import type { RawData, WebSocket } from 'ws';
import type { MessageSocket } from './seam.ts';

/** A WebSocket of the library, either end of it, as a MessageSocket. It is ended when it breaks. */
export function messageSocketOf(connection: WebSocket, protocol: string): MessageSocket {
  connection.on('error', () => connection.terminate());
  return {
    protocol,
    send: (data) => connection.send(data),
    get buffered() {
      return connection.bufferedAmount;
    },
    close: (code = 1000, reason = '') => connection.close(code, reason),
    pause: () => connection.pause(),
    resume: () => connection.resume(),
    onMessage: (listener) => {
      connection.on('message', (data, binary) => listener(bytesOf(data), binary));
    },
    onClose: (listener) => {
      const closed = connection.readyState === connection.CLOSED;
      if (closed) queueMicrotask(() => listener(1006, ''));
      else connection.once('close', (code, reason) => listener(code, reason.toString()));
    },
  };
}

const bytesOf = (data: RawData): Uint8Array =>
  Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? new Uint8Array(data) : data;
