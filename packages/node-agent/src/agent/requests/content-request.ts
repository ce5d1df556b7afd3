/** The content of a volume, as bytes: read no faster than they are taken. */
import { methodNotSupported } from '@coracle/apimachinery/meta/status';
import { CONTENT_PATH } from '@coracle/cluster-rules/storage/pool-calls';
import type { ApiRequest, ApiResponse, ByteSink } from '@coracle/runtime/http/seam';
import type { OpenFile, VolumeReader } from '../../export/volume-content.ts';
import { PoolError } from '../../storage/pool-error.ts';

/** Answers a request below `CONTENT_PATH`. Throws PoolError. */
export async function contentRequest(reader: VolumeReader, request: ApiRequest): Promise<ApiResponse> {
  if (request.method !== 'GET') throw methodNotSupported({ group: '', resource: 'storage' }, request.method);
  const handle = request.path.slice(CONTENT_PATH.length);
  const query = new URLSearchParams(request.query);
  const name = query.get('file');
  if (name === null)
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: new TextEncoder().encode(JSON.stringify(await reader.list(handle))),
    };
  const from = Number(query.get('from') ?? 0);
  if (!Number.isSafeInteger(from) || from < 0) throw new PoolError('Invalid', 'from is a number of bytes');
  const file = await reader.open(handle, name, request.signal);
  return {
    status: 200,
    headers: { 'content-type': 'application/octet-stream', 'content-length': String(Math.max(0, file.bytes - from)) },
    body: (sink) => void send(file, from, sink),
  };
}

/** What breaks off is never taken for whole: its bytes are fewer than were promised. */
async function send(file: OpenFile, from: number, sink: ByteSink): Promise<void> {
  let isWhole = false;
  const stop = (): void => void file.close();
  sink.signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of file.chunks(from)) {
      if (sink.signal.aborted) return;
      if (!sink.write(chunk)) await sink.drained();
    }
    isWhole = true;
  } catch {
    // A guest took the volume, the disk cannot be read, or the far end has gone.
  } finally {
    sink.signal.removeEventListener('abort', stop);
    await file.close();
    if (isWhole) sink.end();
    else (sink.fail ?? sink.end)();
  }
}
