/** What the commands of the bin read: records of a namespace, and contents where the caller may see them. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  type BinStatus,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/kinds';
import type { Cluster } from '../config/cluster.ts';
import { type CommandContext, CommandError, textFlag } from './command.ts';
import { machineTargets } from './machine-target.ts';
import { didYouMean } from './suggestions.ts';

/** A deleted machine, as its record or, where the namespace went with it, its content shows it. */
export interface BinItem {
  readonly kind: 'record' | 'content';
  /** Name of the record or the content. */
  readonly id: string;
  /** Name of the content, which holds the storage. */
  readonly content: string;
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
        content: spec.content,
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
          content: metadata.name ?? '',
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
 * What the bin holds of the machine that `word` names, newest first. What the caller may not list behind the first meaning
 * of the word counts as nothing. Throws CommandError when it holds none.
 */
export async function deletedOf(
  { flags, signal }: CommandContext,
  { client, namespace }: Cluster,
  { word, command }: { readonly word: string; readonly command: string },
): Promise<readonly BinItem[]> {
  const targets = machineTargets(word, { given: textFlag(flags, 'namespace'), ofContext: namespace });
  const names: string[] = [];
  for (const [at, key] of targets.entries()) {
    const items = await binItems(client, { namespace: key.namespace, command, signal }).catch((error: unknown) => {
      if (at > 0 && error instanceof ApiError && error.code === 403) return [];
      throw error;
    });
    const found = items.filter(({ name }) => name === key.name);
    if (found.length > 0) return found;
    if (at === 0) names.push(...items.map(({ name }) => name));
  }
  throw notInBin(targets[0]!, didYouMean(targets[0]!.name, names));
}

/** That there is no such machine, and where to look. */
export const notInBin = ({ namespace, name }: ObjectKey, more: string): CommandError =>
  new CommandError(
    `the bin holds no virtual machine ${namespace}/${name}${more} (see: coracle bin list -n ${namespace}; of all namespaces: coracle bin list -A)`,
  );
