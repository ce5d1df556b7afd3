/** What the commands of the bin read: records of a namespace, and contents where the caller may see them. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  type BinStatus,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/coracle/kinds';
import { type CommandContext, CommandError, UsageError } from './command.ts';

/** A deleted machine, as its record or, where the namespace went with it, its content shows it. */
export interface BinItem {
  readonly kind: 'record' | 'content';
  /** Name of the record or the content. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** RFC 3339. */
  readonly deletedAt: string;
  readonly deletedBy: string | undefined;
  readonly disks: number;
  readonly status: BinStatus;
}

/**
 * Those of a namespace, or of all where none is given; newest first. Contents without a record are the administrators':
 * who may not list them does not see them.
 * @throws CommandError on an external server
 */
export async function binItems(
  client: Client,
  {
    namespace,
    command,
    signal,
  }: { readonly namespace?: string; readonly command: string; readonly signal: AbortSignal },
): Promise<readonly BinItem[]> {
  const where = namespace === undefined ? {} : { namespace };
  const records = await client.list(DELETED_VIRTUAL_MACHINES, { ...where, signal }).catch((error: unknown) => {
    if (isNotFound(error))
      throw new CommandError(`${command} needs Coracle's own API server: this one keeps nothing of deleted machines`);
    throw error;
  });
  const contents = await client.list(DELETED_VIRTUAL_MACHINE_CONTENTS, { signal }).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 403) return { items: [] };
    throw error;
  });
  const shown = new Set(records.items.map(({ spec }) => spec.content));
  const items: BinItem[] = [
    ...records.items.map(
      ({ metadata, spec, status = {} }): BinItem => ({
        kind: 'record',
        id: metadata.name ?? '',
        namespace: metadata.namespace ?? '',
        ...spec.virtualMachine,
        deletedAt: spec.deletedAt,
        deletedBy: spec.deletedBy,
        disks: spec.disks ?? 0,
        status,
      }),
    ),
    ...contents.items
      .filter(
        ({ metadata, spec }) =>
          !shown.has(metadata.name ?? '') && (namespace === undefined || spec.virtualMachine.namespace === namespace),
      )
      .map(
        ({ metadata, spec, status = {} }): BinItem => ({
          kind: 'content',
          id: metadata.name ?? '',
          ...spec.virtualMachine,
          deletedAt: spec.deletedAt,
          deletedBy: spec.deletedBy,
          disks: spec.volumes?.length ?? 0,
          // Without its record it is on its way out, or its namespace is gone.
          status:
            metadata.deletionTimestamp === undefined ? status : { ...status, message: status.message ?? 'Releasing' },
        }),
      ),
  ];
  return items.sort((a, b) =>
    a.deletedAt === b.deletedAt ? (a.id < b.id ? -1 : 1) : a.deletedAt < b.deletedAt ? 1 : -1,
  );
}

/**
 * Those of the first of `targets` that the bin holds; of none where it holds neither. What the caller may not list behind
 * the first counts as nothing.
 */
export async function deletedOf(
  client: Client,
  targets: readonly ObjectKey[],
  { command, signal }: { readonly command: string; readonly signal: AbortSignal },
): Promise<{ readonly key: ObjectKey; readonly items: readonly BinItem[] }> {
  for (const [at, key] of targets.entries()) {
    const items = await binItems(client, { namespace: key.namespace, command, signal }).catch((error: unknown) => {
      if (at > 0 && error instanceof ApiError && error.code === 403) return [];
      throw error;
    });
    const found = items.filter(({ name }) => name === key.name);
    if (found.length > 0) return { key, items: found };
  }
  return { key: targets[0]!, items: [] };
}

/** That there is no such machine, and where to look. */
export const notInBin = ({ namespace, name }: ObjectKey, record?: string): string =>
  `the bin holds no virtual machine ${namespace}/${name}${record === undefined ? '' : ` as ${record}`} (see: coracle bin list -n ${namespace}; of all namespaces: coracle bin list -A)`;

/** The machine that words like `vm NAME` or `vm/NAME` name. Throws UsageError. */
export function deletedName({ words }: CommandContext, command: string): string {
  const [first = '', second, ...more] = words;
  const slash = first.indexOf('/');
  const [kind, name] = slash >= 0 ? [first.slice(0, slash), first.slice(slash + 1)] : [first, second ?? ''];
  const known = ['vm', 'vms', 'virtualmachine', 'virtualmachines'].includes(kind);
  if (!known || name === '' || more.length > 0 || (slash >= 0 && second !== undefined))
    throw new UsageError(`${command} takes vm NAME (see: coracle ${command.split(' ')[0]} --help)`);
  return name;
}
