/** `POST /memory/v1/CALL`: what the control plane asks of the states of this node (`domain/memory-state/memory-calls`). */
import { ApiError, badRequest, methodNotSupported, notFound } from '@coracle/apimachinery/meta/status';
import type { DeleteMemory, MemoryStates, SaveMemory } from '@coracle/kubevirt/rules/memory-state/memory-calls';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { isUid } from '../../disk/vm-directory.ts';
import type { Pool } from '../../storage/pool.ts';
import type { Launcher } from '../launcher/launcher.ts';
import { notReady } from './save-memory.ts';
import { listStates, readState, removeState, stateBytes } from './state-files.ts';

export interface MemoryRequestOptions {
  readonly find: (namespace: string, name: string) => Launcher | undefined;
  readonly memoryDirectory: string;
  /** Where its claims lie; undefined until the node has started. */
  readonly pool?: (() => Pool | undefined) | undefined;
  /** True for the control plane: nobody else is answered here. */
  readonly isControlPlane?: ((request: ApiRequest) => boolean) | undefined;
}

const PATH = /^\/memory\/v1\/([a-z]+)$/;
const VMI = { group: 'kubevirt.io', resource: 'virtualmachineinstances' };
const PATHS = { group: '', resource: 'paths' };

/** The answer to such a request; undefined when it is none. Rejects with ApiError. */
export function memoryRequest(options: MemoryRequestOptions, request: ApiRequest): Promise<ApiResponse> | undefined {
  const call = PATH.exec(request.path)?.[1];
  if (call === undefined) return undefined;
  return answer(options, request, call);
}

async function answer(options: MemoryRequestOptions, request: ApiRequest, call: string): Promise<ApiResponse> {
  if (options.isControlPlane?.(request) !== true)
    throw new ApiError({ code: 403, reason: 'Forbidden', message: 'saved memory is for the control plane only' });
  if (request.method !== 'POST') throw methodNotSupported(PATHS, request.method);
  switch (call) {
    case 'save':
      return reply(await save(options, request));
    case 'delete':
      return reply(await remove(options, bodyOf<DeleteMemory>(request)));
    case 'list':
      return reply(await list(options));
    default:
      throw notFound(PATHS, request.path.slice(0, 200));
  }
}

async function save({ find, pool }: MemoryRequestOptions, request: ApiRequest): Promise<object> {
  const call = bodyOf<SaveMemory>(request);
  if (!isUid(String(call.vmiUid)) || typeof call.namespace !== 'string' || typeof call.vmi !== 'string')
    throw badRequest('namespace, vmi and vmiUid are needed');
  const launcher = find(call.namespace, call.vmi);
  if (!launcher) throw notFound(VMI, call.vmi);
  // After a restart of the agent its guests are taken up one after the other: the caller asks again.
  if (!launcher.guest) throw notReady(`the guest of ${call.vmi} is not ready yet`);
  const volumes = pool?.();
  return launcher.saveMemory(launcher.guest, {
    call,
    signal: request.signal,
    ...(volumes && { snapshotVolumes: (snapshots) => takeVolumes(volumes, snapshots) }),
  });
}

/** Snapshots of claims, while their guest stands still. Throws when some were taken at another moment. */
async function takeVolumes(pool: Pool, snapshots: NonNullable<SaveMemory['snapshots']>): Promise<void> {
  const known = new Set((await pool.inspect()).snapshots.map(({ handle }) => handle));
  const earlier = snapshots.find(({ handle }) => known.has(handle));
  if (earlier) throw new Error(`snapshot ${earlier.handle} was taken before, at another moment than the memory`);
  await pool.createSnapshots({ snapshots });
}

async function remove({ memoryDirectory }: MemoryRequestOptions, call: DeleteMemory): Promise<object> {
  const saved = await readState(memoryDirectory, call.state);
  if (saved && saved.namespace !== call.namespace)
    throw new ApiError({ code: 403, reason: 'Forbidden', message: `state ${call.state} is of another namespace` });
  await removeState(memoryDirectory, call.state);
  return {};
}

async function list({ memoryDirectory }: MemoryRequestOptions): Promise<MemoryStates> {
  const states = await listStates(memoryDirectory);
  return {
    states: await Promise.all(
      states.map(async ({ state, namespace }) => ({
        state,
        namespace,
        bytes: await stateBytes(memoryDirectory, state),
      })),
    ),
  };
}

/** The body, with a state that may name a directory. Throws ApiError 400. */
function bodyOf<T extends { readonly state: string }>(request: ApiRequest): T {
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(request.body));
  } catch {
    throw badRequest('the body is not JSON');
  }
  const { state } = (body ?? {}) as Partial<T>;
  if (typeof state !== 'string' || !isUid(state)) throw badRequest('state is not a UID');
  return body as T;
}

const reply = (value: object): ApiResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: new TextEncoder().encode(`${JSON.stringify(value)}\n`),
});
