/** An upload to a volume, over an upgraded connection: bytes one way, lines of JSON the other. */
import { badRequest, methodNotSupported } from '@coracle/apimachinery/meta/status';
import { UPLOAD_PATH, UPLOAD_PROTOCOL, type UploadReply } from '@coracle/cluster-rules/storage/pool-calls';
import type { ApiRequest, ApiResponse, MessageSocket } from '@coracle/runtime/http/seam';
import { asFillError, FillError } from '../../fill/fill-error.ts';
import type { Fills } from '../../fill/fills.ts';
import type { IncomingImage } from '../../fill/receive.ts';
import { PoolError } from '../../storage/pool-error.ts';

/** Bytes that are here and not written yet; above this nothing more is read. */
const MAX_HELD_BYTES = 1024 * 1024;

/** Answers a request below `UPLOAD_PATH`. */
export function uploadRequest(fills: Pick<Fills, 'receive'>, request: ApiRequest): ApiResponse {
  if (request.method !== 'POST') throw methodNotSupported({ group: '', resource: 'storage' }, request.method);
  if (request.upgradeTo !== UPLOAD_PROTOCOL) throw badRequest(`this needs an upgrade to ${UPLOAD_PROTOCOL}`);
  const bytes = Number(new URLSearchParams(request.query).get('bytes') ?? Number.NaN);
  if (!Number.isSafeInteger(bytes) || bytes <= 0) throw badRequest('bytes is a whole number above 0');
  const handle = request.path.slice(UPLOAD_PATH.length);
  return {
    status: 101,
    headers: {},
    upgrade: { protocol: UPLOAD_PROTOCOL, raw: true, accept: (socket) => void serve(fills, { handle, bytes, socket }) },
  };
}

async function serve(
  fills: Pick<Fills, 'receive'>,
  { handle, bytes, socket }: { readonly handle: string; readonly bytes: number; readonly socket: MessageSocket },
): Promise<void> {
  const report = (reply: UploadReply): void => socket.send(new TextEncoder().encode(`${JSON.stringify(reply)}\n`));
  try {
    await fills.receive(handle, { ...incoming(socket, bytes), received: () => report({ state: 'received' }) });
    report({ state: 'done' });
  } catch (error) {
    const { message } = error as Error;
    const isRefusal = error instanceof PoolError && (error.reason === 'Conflict' || error.reason === 'NotFound');
    report({
      state: 'failed',
      problem: isRefusal ? (error.reason as 'Conflict') : asFillError(error).problem,
      message,
    });
  }
  socket.close();
}

/** The first `bytes` of a socket, of which not more is read than somebody takes. */
function incoming(socket: MessageSocket, bytes: number): Omit<IncomingImage, 'received'> {
  const held: Uint8Array[] = [];
  let heldBytes = 0;
  let got = 0;
  let isPaused = false;
  let isClosed = false;
  let wake = (): void => {};
  socket.onMessage((chunk) => {
    got += chunk.length;
    held.push(chunk);
    heldBytes += chunk.length;
    if (heldBytes > MAX_HELD_BYTES && !isPaused) {
      isPaused = true;
      socket.pause?.();
    }
    wake();
  });
  socket.onClose(() => {
    isClosed = true;
    wake();
  });
  return {
    bytes,
    async *chunks(signal) {
      const stop = (): void => wake();
      signal.addEventListener('abort', stop, { once: true });
      try {
        for (let taken = 0; taken < bytes; ) {
          signal.throwIfAborted();
          if (got > bytes) throw new FillError('Source', 'more bytes were sent than were announced');
          const chunk = held.shift();
          if (chunk) {
            heldBytes -= chunk.length;
            taken += chunk.length;
            yield chunk;
            continue;
          }
          if (isClosed) throw new FillError('Source', `the upload broke off after ${taken} of ${bytes} bytes`);
          if (isPaused) {
            isPaused = false;
            socket.resume?.();
          }
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        signal.removeEventListener('abort', stop);
      }
    },
  };
}
