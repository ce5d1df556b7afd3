/** What one pass over a content works with, and the short words for it. */
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  SECRETS,
} from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolume } from '../../api/kinds/builtin/types.ts';
import {
  type BinStatus,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  type DeletedVirtualMachine,
  type DeletedVirtualMachineContent,
  type UndeletePlan,
} from '../../api/kinds/coracle/kinds.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import type { DeepReadonly, KubeObject, ObjectKey } from '../../api/meta/object.ts';
import type { Logger } from '../../base/log/log.ts';
import { orAbsent } from '../../client/api-failure.ts';
import type { Client } from '../../client/client.ts';
import { commit } from '../../client/commit/commit.ts';
import type { EventRecorder } from '../../client/events/recorder.ts';
import type { PoolCall } from '../../domain/storage/pool-calls.ts';

export type Content = DeepReadonly<DeletedVirtualMachineContent>;
export type RecordOf = DeepReadonly<DeletedVirtualMachine>;

/** Calls a pool of volumes. Rejects with an error whose `reason` is a PoolErrorReason or `Unreachable`. */
export type CallPool = <T>(pool: string, call: PoolCall, body: object, signal: AbortSignal) => Promise<T>;

export interface BinPass {
  readonly content: Content;
  /** What tenants see of it; undefined when there is none. */
  readonly record: RecordOf | undefined;
  readonly client: Client;
  readonly callPool: CallPool;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** It cannot come back, and why: the message says the way out. */
export class BinProblem extends Error {}

/** It cannot go on yet, and why; looked at again soon. */
export class NotYet extends Error {}

/** True for a failure of a call to a pool. */
export const poolReason = (error: unknown): string | undefined =>
  error instanceof Error && error.name === 'PoolCallError'
    ? (error as Error & { readonly reason?: string }).reason
    : undefined;

const CONFIG_MAPS: ResourceType<KubeObject> = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
const DATA_VOLUMES: ResourceType<KubeObject> = {
  group: 'cdi.kubevirt.io',
  version: 'v1beta1',
  resource: 'datavolumes',
  kind: 'DataVolume',
  namespaced: true,
};

/** Kinds that go with a machine. */
const TYPES: Readonly<Record<string, ResourceType<KubeObject>>> = {
  PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIMS as ResourceType<KubeObject>,
  ControllerRevision: CONTROLLER_REVISIONS as ResourceType<KubeObject>,
  Secret: SECRETS as ResourceType<KubeObject>,
  ConfigMap: CONFIG_MAPS,
  DataVolume: DATA_VOLUMES,
};

/** The type of an object that a content keeps beside the machine. */
export function typeOf(object: DeepReadonly<KubeObject>): ResourceType<KubeObject> {
  const type = Object.hasOwn(TYPES, object.kind) ? TYPES[object.kind] : undefined;
  if (!type) throw new BinProblem(`the record holds an object of kind ${object.kind}, which is not brought back`);
  return type;
}

/** One of those objects as it is now. */
export const current = (
  { client, signal }: BinPass,
  kept: DeepReadonly<KubeObject>,
  key: ObjectKey,
): Promise<KubeObject | undefined> => orAbsent(client.get(typeOf(kept), key, { signal }));

export const volumeNow = ({ client, signal }: BinPass, name: string): Promise<PersistentVolume | undefined> =>
  orAbsent(client.get(PERSISTENT_VOLUMES, { namespace: '', name }, { signal }));

export type StatusChange = { readonly [K in keyof BinStatus | 'plan']?: unknown };

/** Writes the status of the content; `undefined` takes a member away. */
export async function writeStatus({ content, client, signal }: BinPass, change: StatusChange): Promise<void> {
  const status = Object.fromEntries(
    Object.entries({ ...content.status, ...change }).filter(([, value]) => value !== undefined),
  );
  await commit<DeletedVirtualMachineContent>(client, DELETED_VIRTUAL_MACHINE_CONTENTS, {
    before: content,
    after: { ...content, status } as Content,
    signal,
  });
}

/** The plan of an undelete under way. */
export function planOf({ status }: Content): DeepReadonly<UndeletePlan> {
  if (!status?.plan) throw new BinProblem('the record says nothing of what is to come back');
  return status.plan;
}
