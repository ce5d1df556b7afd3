/**
 * Exports as they are downloaded (kubevirt pkg/storage/export/virt-exportserver behind virt-exportproxy): the disks and files of
 * an export that is ready, and its manifests, to who has its token. Bytes come from the node as fast as the client takes them.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { DISK_FILE, type VolumeFile } from '@coracle/cluster-rules/storage/pool-calls';
import type { PoolAccess } from '@coracle/kubevirt/controllers/data-volume/pool-access';
import type { ExportContent } from '@coracle/kubevirt/controllers/export/export-content';
import type { ExportTarget, ExportTargets } from '@coracle/kubevirt/controllers/export/export-targets';
import { EXPORT_TOKEN_HEADER } from '@coracle/kubevirt/rules/export/export-names';
import { leaveRest } from '@coracle/runtime/http/receive-body';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { stringify } from 'yaml';
import { listContent, readContent } from './node-content.ts';
import { Refusal } from './refusal.ts';
import { tarOf } from './tar.ts';

/** What can be downloaded, its tokens, and how the bytes are reached. */
export interface ExportServing {
  readonly targets: Pick<ExportTargets, 'find' | 'hasHost'>;
  readonly content: ExportContent;
  readonly pools: Pick<PoolAccess, 'handler'>;
}

export interface ExportServer {
  serve(source: ExportServing): void;
  /** Whether an export of this internal host can be downloaded now. */
  hasHost(host: string): boolean;
  answer(request: IncomingMessage, response: ServerResponse): void;
}

const EXPORT =
  /^\/api\/export\.kubevirt\.io\/(?:v1|v1beta1|v1alpha1)\/namespaces\/([a-z0-9.-]{1,253})\/virtualmachineexports\/([a-z0-9.-]{1,253})\/(.*)$/;
const VOLUME = /^volumes\/([a-z0-9.-]{1,253})\/(disk\.img|disk\.img\.gz|disk\.tar\.gz|dir\/(.*))$/;
const MANIFEST = /^(internal|external)\/manifests\/(all|secret)$/;
/** At the same time; further ones are sent away. */
const MAX_DOWNLOADS = 16;
/** A client that takes nothing for so long is none any more. */
const STALL_MS = 300_000;
/** A request has no body. */
const REST_BYTES = 64 * 1024;
/** Bytes in front of gzip, and behind it. */
const GZIP_CHUNK_BYTES = 64 * 1024;
const NOT_YOURS = `no export of this name is ready, or ${EXPORT_TOKEN_HEADER} is not its token`;

/** Whether a request is about an export. */
export const isExportPath = (url: string): boolean => url.startsWith('/api/export.kubevirt.io/');

/** Makes the server; it answers 503 before `serve`. */
export function createExportServer(log: Logger, stop: AbortSignal): ExportServer {
  let source: ExportServing | undefined;
  let running = 0;
  return {
    serve(given) {
      source = given;
    },
    hasHost: (host) => source?.targets.hasHost(host) === true,
    answer(request, response) {
      const life = createLinkedController(stop);
      response.once('close', () => life.abort(new Error('the client has gone')));
      request.socket.setTimeout(STALL_MS, () => request.socket.destroy());
      running++;
      const work = async (): Promise<void> => {
        if (!source) throw new Refusal(503, 'exports are not served yet');
        if (running > MAX_DOWNLOADS) throw new Refusal(503, `${MAX_DOWNLOADS} downloads are under way`);
        await answerExport(source, { request, response, signal: life.signal });
      };
      work()
        .catch((error: unknown) => {
          const { message } = error as Error;
          const isRefusal = error instanceof Refusal;
          if (!isRefusal && !life.signal.aborted) log.warn('export not downloaded', { error: message });
          // What has begun cannot be taken back: only that it broke off can be seen.
          if (response.headersSent) return void response.destroy();
          reply({ request, response }, isRefusal ? error.status : 502, isRefusal ? message : 'the download failed');
        })
        .finally(() => {
          running--;
          request.socket.setTimeout(0);
          life.release();
        });
    },
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

function reply({ request, response }: Pick<Exchange, 'request' | 'response'>, status: number, text: string): void {
  if (response.destroyed) return;
  leaveRest(request, response, { limit: REST_BYTES, waits: false });
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}

const isSame = (a: string, b: string): boolean => {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
};

async function answerExport(source: ExportServing, exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const [, namespace = '', name = '', rest = ''] = EXPORT.exec((request.url ?? '').split('?', 1)[0] ?? '') ?? [];
  const key = { namespace, name };
  const target = name === '' ? undefined : source.targets.find(key);
  const given = request.headers[EXPORT_TOKEN_HEADER];
  const token = target && (await source.content.token(key, target));
  // One answer to all of these: who has no token does not learn what there is.
  if (!target || token === undefined || typeof given !== 'string' || !isSame(given, token))
    throw new Refusal(401, NOT_YOURS);
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new Refusal(405, 'exports are downloaded by GET');
  const life = AbortSignal.any([exchange.signal, target.signal]);
  const [, side, type] = MANIFEST.exec(rest) ?? [];
  if (side !== undefined)
    return sendManifests(
      source,
      { ...exchange, signal: life },
      { key, token, side: side as 'internal', isAll: type === 'all' },
    );
  await sendVolume(source, { ...exchange, signal: life }, target, rest);
}

async function sendManifests(
  { content }: ExportServing,
  { request, response }: Exchange,
  asked: {
    readonly key: ObjectKey;
    readonly token: string;
    readonly side: 'internal' | 'external';
    readonly isAll: boolean;
  },
): Promise<void> {
  const { key, token, side, isAll } = asked;
  const items = await content.manifests(key, { type: isAll ? 'all' : 'auth-header-secret', side, token });
  if (!items) throw new Refusal(404, 'the export has no such manifests');
  const isYaml = request.headers.accept === 'application/yaml';
  const text = isYaml
    ? items.map((item) => `${stringify(item)}---\n`).join('')
    : `${JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata: {}, items }, undefined, 4)}\n`;
  response.writeHead(200, {
    'content-type': isYaml ? 'application/yaml' : 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
}

async function sendVolume(
  { pools }: ExportServing,
  { request, response, signal }: Exchange,
  target: ExportTarget,
  rest: string,
): Promise<void> {
  const [, claim, file = '', name] = VOLUME.exec(rest) ?? [];
  const volume = target.volumes.find((one) => one.claim === claim);
  const isDiskForm = file === 'disk.img' || file === 'disk.img.gz';
  if (!volume || isDiskForm !== volume.isDisk) throw new Refusal(404, 'the export has no such file');
  const agent = await pools.handler(volume.pool).catch((error: unknown) => {
    throw new Refusal(503, (error as Error).message);
  });
  const place = { agent, handle: volume.handle, signal };
  const files = await listContent(place);
  const isHead = request.method === 'HEAD';
  /** From the first byte on no guest has the volume: what its version was of is what is read. */
  const needVersion = async ({ name, version }: VolumeFile): Promise<void> => {
    if ((await listContent(place)).find((each) => each.name === name)?.version !== version)
      throw new Refusal(503, 'the disk has changed at this moment; ask again');
  };
  const begin = async (
    bytes: AsyncIterable<Uint8Array>,
    { status, headers, of }: { status: number; headers: OutgoingHttpHeaders; of?: VolumeFile },
  ) => {
    // What the node refuses, it refuses before the first byte.
    const begun = isHead ? bytes : await withFirst(bytes);
    if (of && !isHead) await needVersion(of);
    response.writeHead(status, headers);
    if (isHead) response.end();
    return isHead ? undefined : Readable.from(begun, { objectMode: false });
  };
  const sendPacked = async (bytes: AsyncIterable<Uint8Array>): Promise<void> => {
    const from = await begin(bytes, { status: 200, headers: { 'content-type': 'application/gzip' } });
    const gzip = createGzip({ level: constants.Z_BEST_SPEED, chunkSize: GZIP_CHUNK_BYTES });
    if (from) await pipeline(from, gzip, response, { signal });
  };
  const sendPlain = async (found: VolumeFile): Promise<void> => {
    const { bytes, version } = found;
    const etag = version === undefined ? undefined : `"${version}"`;
    const part = partOf(request.headers, { bytes, etag });
    const { from, to } = part ?? { from: 0, to: bytes };
    if (from >= bytes && part) {
      response.writeHead(416, { 'content-range': `bytes */${bytes}` });
      return void response.end();
    }
    const headers = {
      'content-type': 'application/octet-stream',
      'content-length': to - from,
      'accept-ranges': 'bytes',
      ...(etag !== undefined && { etag }),
      ...(part && { 'content-range': `bytes ${from}-${to - 1}/${bytes}` }),
    };
    const content = readContent(place, found, { from, to });
    const stream = await begin(content, { status: part ? 206 : 200, headers, of: found });
    if (stream) await pipeline(stream, response, { signal });
  };
  const one = (found: VolumeFile | undefined): VolumeFile => {
    if (!found) throw new Refusal(404, 'the export has no such file');
    return found;
  };
  const read = (each: VolumeFile): AsyncIterable<Uint8Array> => readContent(place, each, { from: 0, to: each.bytes });
  const disk = (): VolumeFile => one(files.find((each) => each.name === DISK_FILE));
  if (file === 'disk.img') return sendPlain(disk());
  if (file === 'disk.img.gz') return sendPacked(read(disk()));
  if (file === 'disk.tar.gz')
    return sendPacked(
      tarOf(files.map((each) => ({ name: `./${each.name}`, bytes: each.bytes, chunks: () => read(each) }))),
    );
  if (name === '') {
    const rows = files.map((each) => `<a href="${encodeURIComponent(each.name)}">${escapeHtml(each.name)}</a>\n`);
    const text = Buffer.from(`<pre>\n${rows.join('')}</pre>\n`);
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': text.length });
    return void response.end(request.method === 'HEAD' ? undefined : text);
  }
  // A name that is compared, never a path that is opened.
  return sendPlain(one(files.find((each) => encodeURIComponent(each.name) === name)));
}

/** The one part that is asked for (RFC 9110, 14.2). Several, the last bytes, and a part of what has changed since are answered by the whole. */
function partOf(
  headers: IncomingHttpHeaders,
  { bytes, etag }: { readonly bytes: number; readonly etag: string | undefined },
): { readonly from: number; readonly to: number } | undefined {
  const [, first, last] = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(headers.range ?? '') ?? [];
  const condition = headers['if-range'];
  if (first === undefined || (condition !== undefined && condition !== etag)) return undefined;
  const [from, to] = [Number(first), last ? Math.min(bytes, Number(last) + 1) : bytes];
  return from < to || from >= bytes ? { from, to } : undefined;
}

/** The same bytes, of which the first are here already. */
async function withFirst(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const iterator = bytes[Symbol.asyncIterator]();
  const first = await iterator.next();
  return (async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
}

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
