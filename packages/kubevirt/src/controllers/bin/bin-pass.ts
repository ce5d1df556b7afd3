/** What one pass over a content works with, and the short words for it. */

import { namespacedType, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  SECRETS,
} from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { PoolCall } from '@coracle/cluster-rules/storage/pool-calls';
import type { Logger } from '@coracle/runtime/log/log';
import {
  type BinStatus,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  type DeletedVirtualMachine,
  type DeletedVirtualMachineContent,
  type UndeletePlan,
} from '../../kinds/kinds.ts';

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

const CONFIG_MAPS = namespacedType<KubeObject>('v1', 'configmaps', 'ConfigMap');
const DATA_VOLUMES = namespacedType<KubeObject>('cdi.kubevirt.io/v1beta1', 'datavolumes', 'DataVolume');

/** Kinds that go with a machine. */
const TYPES: Readonly<Record<string, ResourceType<KubeObject>>> = {
  PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIMS as ResourceType<KubeObject>,
  ControllerRevision: CONTROLLER_REVISIONS as ResourceType<KubeObject>,
  Secret: SECRETS as ResourceType<KubeObject>,
  ConfigMap: CONFIG_MAPS,
  DataVolume: DATA_VOLUMES,
};

/** The type of an object that a content keeps beside the machine. */
export function typeOf(object: ReadonlyObject): ResourceType<KubeObject> {
  const type = Object.hasOwn(TYPES, object.kind) ? TYPES[object.kind] : undefined;
  if (!type) throw new BinProblem(`the record holds an object of kind ${object.kind}, which is not brought back`);
  return type;
}

/** One of those objects as it is now. */
export const current = (
  { client, signal }: BinPass,
  kept: ReadonlyObject,
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
  if (!status?.plan) throw new BinProblem('the record is incomplete: it does not say what to restore');
  return status.plan;
}
