/** What the handlers of the subresource API share. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { type ApiError, internalError } from '@coracle/apimachinery/meta/status';
import type { VersionFacts } from '@coracle/apimachinery/meta/version-info';
import { isApiError, orAbsent } from '@coracle/client/api-failure';
import type { Client, JsonPatchOperation } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiHandler, ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import type { ConnectionCounts } from './connection-counts.ts';
import type { GraphReader } from './read-extended-graph.ts';
import { messageOf, vmConflict, vmiNotFound, vmNotFound } from './responses.ts';

export interface SubresourceOptions {
  readonly client: Client;
  /** The settings of the KubeVirt object now. */
  config(): ClusterConfig;
  /** The agent of a node; rejects when the node has none that can be reached. */
  nodeHandler(nodeName: string): Promise<ApiHandler>;
  /** Reads objects as a user: nothing that the user may not read. */
  readAs(user: SubresourceUser): GraphReader;
  /** Counts streams to guests, where somebody wants to know. */
  readonly connections?: ConnectionCounts;
  readonly clock: Clock;
  readonly log: Logger;
  /** `gitVersion` of what `version` answers. */
  readonly version: string;
  /** The rest of it: what this program was built from, and what runs it. */
  readonly build?: VersionFacts;
}

export interface SubresourceUser {
  readonly username: string;
  readonly groups: readonly string[];
}

/** One request to one virtual machine or instance. */
export interface Call {
  readonly key: ObjectKey;
  readonly request: ApiRequest;
  /** Path segments behind the subresource: the port and protocol of a port forward. */
  readonly rest: readonly string[];
  readonly options: SubresourceOptions;
  /** Who asks. */
  readonly user: SubresourceUser;
}

export type Handler = (call: Call) => Promise<ApiResponse>;

export async function findVm({ key, request, options }: Call): Promise<VirtualMachine | undefined> {
  const found = orAbsent(options.client.get(VIRTUAL_MACHINES, key, { signal: request.signal }));
  return orInternal(found, `unable to retrieve vm [${key.name}]: `);
}

export async function fetchVm(call: Call): Promise<VirtualMachine> {
  const vm = await findVm(call);
  if (vm === undefined) throw vmNotFound(call.key.name);
  return vm;
}

export async function findVmi({ key, request, options }: Call): Promise<VirtualMachineInstance | undefined> {
  const found = orAbsent(options.client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal: request.signal }));
  return orInternal(found, `unable to retrieve vmi [${key.name}]: `);
}

export async function fetchVmi(call: Call): Promise<VirtualMachineInstance> {
  const vmi = await findVmi(call);
  if (vmi === undefined) throw vmiNotFound(call.key.name);
  return vmi;
}

/** The instance that a virtual machine has started. */
export async function fetchVmiOfVm(call: Call): Promise<VirtualMachineInstance> {
  const vm = await fetchVm(call);
  if (vm.status?.created !== true) throw vmConflict(call.key.name, 'VMI is not started');
  const vmi = await findVmi(call);
  if (vmi === undefined) throw vmiNotFound(call.key.name);
  if (!vmi.metadata.ownerReferences?.some(({ uid }) => uid === vm.metadata.uid))
    throw internalError(`the vmi [${call.key.name}] was not started by the vm of that name`);
  return vmi;
}

/** What the API answers; its refusals are internal errors whose message begins with `what`. */
export const orInternal = <T>(pending: Promise<T>, what = ''): Promise<T> =>
  pending.catch((error: unknown) => {
    throw internalError(what + messageOf(error), error);
  });

/** Patches the object that a request is about. */
export const patchWith = <T extends KubeObject>(
  { key, request, options }: Call,
  type: ResourceType<T>,
  body: JsonPatchOperation[],
  more: { readonly subresource?: 'status'; readonly dryRun?: boolean } = {},
): Promise<T> => options.client.patch(type, key, { type: 'json', body }, { signal: request.signal, ...more });

/** True when a `test` of a patch did not hold, or the object is refused: somebody else was faster, mostly. */
export const isRefused = (error: unknown): error is ApiError => isApiError(error, 409, 422);

/** The same of a patch that is refused: that goes to the client as it is. */
export const orRefused = <T>(pending: Promise<T>, what: string): Promise<T> =>
  pending.catch((error: unknown) => {
    throw isRefused(error) ? error : internalError(what + messageOf(error), error);
  });

export const isRunning = ({ status }: VirtualMachineInstance): boolean => status?.phase === 'Running';

/** True when the condition is there, whatever its status: how these handlers ask about Paused and AgentConnected. */
export const hasCondition = ({ status }: VirtualMachineInstance, type: string, wanted?: string): boolean =>
  status?.conditions?.some((found) => found.type === type && (wanted === undefined || found.status === wanted)) ??
  false;
