/**
 * The calls to the pool of volumes, `POST /storage/v1/CALL`, for the control plane alone. Answers are JSON; a call that is
 * refused is a Status whose reason says why (`cluster-rules/storage/pool-calls.ts`).
 */
import { ApiError, badRequest, methodNotSupported, notFound } from '@coracle/apimachinery/meta/status';
import {
  CONTENT_PATH,
  type CreateSnapshots,
  type CreateVolume,
  type DeleteHandle,
  type ExpandVolume,
  type FillSource,
  type FillVolume,
  POOL_CALLS,
  type PoolCall,
  type PoolErrorReason,
  UPLOAD_PATH,
} from '@coracle/cluster-rules/storage/pool-calls';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { VolumeReader } from '../../export/volume-content.ts';
import type { Fills } from '../../fill/fills.ts';
import type { Pool } from '../../storage/pool.ts';
import { PoolError } from '../../storage/pool-error.ts';
import { contentRequest } from './content-request.ts';
import { uploadRequest } from './upload-request.ts';

const PREFIX = '/storage/v1/';
/** The largest call names 256 snapshots. */
const MAX_BODY = 64 * 1024;
const CODES: Readonly<Record<PoolErrorReason, number>> = {
  Invalid: 422,
  NotFound: 404,
  InUse: 409,
  Conflict: 409,
  NoSpace: 507,
};

/** What the node keeps volumes in; undefined before it has started. */
interface PoolStore {
  readonly pool: Pool | undefined;
  readonly fills: Fills | undefined;
  readonly volumes: VolumeReader | undefined;
}

/** Answers a call; undefined when the path is not ours. */
export function poolRequest(
  { allowed, ...store }: PoolStore & { readonly allowed: boolean },
  request: ApiRequest,
): Promise<ApiResponse> | undefined {
  return request.path.startsWith(PREFIX) ? answer(store, allowed, request) : undefined;
}

const NOT_STARTED = (): ApiError =>
  new ApiError({ code: 503, reason: 'ServiceUnavailable', message: 'the node has not started yet' });

async function answer(
  { pool, fills, volumes }: PoolStore,
  allowed: boolean,
  request: ApiRequest,
): Promise<ApiResponse> {
  if (!allowed)
    throw new ApiError({ code: 403, reason: 'Forbidden', message: 'volumes are for the control plane only' });
  if (request.path.startsWith(UPLOAD_PATH)) {
    if (!fills) throw NOT_STARTED();
    return uploadRequest(fills, request);
  }
  if (request.path.startsWith(CONTENT_PATH)) {
    if (!volumes) throw NOT_STARTED();
    return contentRequest(volumes, request).catch(refused);
  }
  const name = POOL_CALLS.find((call) => request.path === PREFIX + call);
  if (!name) throw notFound({ group: '', resource: 'paths' }, request.path.slice(0, 200));
  if (request.method !== 'POST') throw methodNotSupported({ group: '', resource: 'storage' }, request.method);
  if (!pool || !fills) throw NOT_STARTED();
  if (request.body.byteLength > MAX_BODY)
    throw new ApiError({ code: 413, reason: 'RequestEntityTooLarge', message: 'a call has at most 64 KiB' });
  return perform({ pool, fills }, name, parse(request.body)).then((reply) => json(200, reply), refused);
}

function refused(error: unknown): never {
  if (!(error instanceof PoolError)) throw error;
  throw new ApiError({ code: CODES[error.reason], reason: error.reason, message: error.message });
}

async function perform(
  { pool, fills }: { readonly pool: Pool; readonly fills: Fills },
  name: PoolCall,
  call: object,
): Promise<object> {
  switch (name) {
    case 'createVolume':
      return pool.createVolume(call as CreateVolume);
    case 'confirmVolume':
      await pool.confirmVolume(call as DeleteHandle);
      return {};
    case 'fillVolume':
      return fills.fill(call as FillVolume);
    case 'imageDigest':
      return fills.imageDigest(call as FillSource);
    case 'expandVolume':
      return pool.expandVolume(call as ExpandVolume);
    case 'deleteVolume':
      await fills.cancel((call as DeleteHandle).handle);
      await pool.deleteVolume(call as DeleteHandle);
      return {};
    case 'createSnapshots':
      return pool.createSnapshots(call as CreateSnapshots);
    case 'deleteSnapshot':
      await pool.deleteSnapshot(call as DeleteHandle);
      return {};
    case 'inspect':
      return { ...(await pool.inspect()), fills: await pool.fills() };
  }
}

function parse(body: Uint8Array): object {
  if (body.byteLength === 0) return {};
  try {
    const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The same as a value of another type.
  }
  throw badRequest('the body is a JSON object');
}

const json = (status: number, value: unknown): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(`${JSON.stringify(value)}\n`),
});
