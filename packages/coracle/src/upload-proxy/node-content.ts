/** What a node says a volume holds, and the bytes of it, as fast as somebody takes them. */
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { CONTENT_PATH, type VolumeContent } from '@coracle/cluster-rules/storage/pool-calls';
import type { ApiHandler, ApiResponse, ByteStream } from '@coracle/runtime/http/seam';
import { NO_BYTES } from '@coracle/runtime/http/seam';
import { Refusal } from './refusal.ts';

/** A list of files, or a Status. */
const MAX_LIST_BYTES = 1024 * 1024;
/** Bytes on their way from a node that nobody has taken yet; above this nothing more is read. */
const HIGH_WATER_BYTES = 1024 * 1024;

interface Place {
  readonly agent: ApiHandler;
  readonly handle: string;
  readonly signal: AbortSignal;
}

const ask = ({ agent, handle, signal }: Place, query: string): Promise<ApiResponse> =>
  agent({
    method: 'GET',
    path: `${CONTENT_PATH}${handle}`,
    query,
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal,
  });

/** Throws Refusal. */
export async function listContent(place: Place): Promise<VolumeContent['files']> {
  const answer = await ask(place, '');
  const text = await textOf(answer);
  if (answer.status !== 200) throw refusalOf(answer.status, text);
  return (JSON.parse(text) as VolumeContent).files;
}

/** The bytes of a file from `from` until before `to`: all of them, or it throws. Throws Refusal before there are any. */
export async function* readContent(
  place: Place,
  { name, bytes }: VolumeContent['files'][number],
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<Buffer> {
  const answer = await ask(place, `file=${encodeURIComponent(name)}&from=${from}`);
  if (answer.status !== 200) throw refusalOf(answer.status, await textOf(answer));
  // An agent of an earlier version sends from the beginning, whatever is asked.
  let at = bytes - Number(answer.headers['content-length'] ?? bytes - from);
  for await (const chunk of streamOf(answer.body)) {
    const part = (chunk as Buffer).subarray(Math.max(0, from - at), to - at);
    if (part.length > 0) yield part;
    at += (chunk as Buffer).length;
    if (at >= to) return;
  }
  if (at !== to) throw new Error(`the node broke off at ${at} of ${to} bytes`);
}

function streamOf(body: ApiResponse['body']): PassThrough {
  const stream = new PassThrough({ highWaterMark: HIGH_WATER_BYTES });
  if (typeof body === 'function') pour(body, stream);
  else stream.end(body instanceof Uint8Array ? body : Buffer.concat([...(body ?? [])]));
  return stream;
}

function pour(body: ByteStream, stream: PassThrough): void {
  const gone = new AbortController();
  stream.once('close', () => gone.abort(new Error('nobody reads any more')));
  body({
    write: (chunk) => !stream.destroyed && stream.write(chunk),
    get buffered() {
      return stream.writableLength;
    },
    drained: () =>
      new Promise<void>((resolve) => {
        if (stream.destroyed || !stream.writableNeedDrain) return resolve();
        stream.once('drain', resolve);
        stream.once('close', resolve);
      }),
    end: () => void stream.end(),
    fail: () => void stream.destroy(new Error('the connection to the node broke off')),
    signal: gone.signal,
  });
}

async function textOf({ body }: ApiResponse): Promise<string> {
  const stream = streamOf(body);
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of stream) {
    length += (part as Buffer).length;
    if (length > MAX_LIST_BYTES) {
      stream.destroy();
      await finished(stream).catch(() => {});
      throw new Error('the node answers more than a list');
    }
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts).toString();
}

function refusalOf(status: number, text: string): Refusal {
  let message = `the node answers ${status}`;
  try {
    message = (JSON.parse(text) as { readonly message?: string }).message ?? message;
  } catch {
    // No Status.
  }
  return new Refusal(status === 404 ? 404 : 503, message);
}
