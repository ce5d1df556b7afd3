/** `coracle protect audit`: unprotected machines that look precious, why, and the command that protects each. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import {
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/kubevirt';
import { findPreciousMachines, type PreciousMachine } from '@coracle/kubevirt/rules/protection/precious-machines';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { type CommandContext, UsageError } from './command.ts';
import { namespaceScope } from './namespace-scope.ts';
import { nothingText } from './nothing-text.ts';
import { outputFlag } from './output-flag.ts';
import { textTable } from './text-table.ts';

/** Lists; that there are some is no failure. */
export async function protectAudit(context: CommandContext): Promise<number> {
  const { flags, words, print, note, signal } = context;
  if (words.length > 0) throw new UsageError(`protect audit takes flags only, not "${words[0]}"`);
  const output = outputFlag(flags);
  const scope = namespaceScope(flags);
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const namespace = scope.of(cluster.namespace);
  const where = { ...(namespace !== undefined && { namespace }), signal };
  const all = async <T extends KubeObject>(type: ResourceType<T>): Promise<readonly T[]> =>
    (await client.list(type, where)).items;
  /** What a cluster need not have, or the caller not see: the other signs still count. */
  const some = async <T extends KubeObject>(type: ResourceType<T>): Promise<readonly T[]> => {
    try {
      return await all(type);
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 403 && !isNotFound(error))) throw error;
      if (error.code === 403) note(`${type.resource} are not looked at: ${error.message}`);
      return [];
    }
  };
  const [vms, vmis, snapshots, backups, trackers] = await Promise.all([
    all(VIRTUAL_MACHINES),
    some(VIRTUAL_MACHINE_INSTANCES),
    some(VIRTUAL_MACHINE_SNAPSHOTS),
    some(VIRTUAL_MACHINE_BACKUPS),
    some(VIRTUAL_MACHINE_BACKUP_TRACKERS),
  ]);
  const items = findPreciousMachines({ vms, vmis, snapshots, backups, trackers, now: systemClock.now() });
  print(output === 'json' ? JSON.stringify({ items }, undefined, 2) : tableOf(items, namespace));
  return 0;
}

const tableOf = (items: readonly PreciousMachine[], namespace: string | undefined): string =>
  items.length === 0
    ? nothingText('no unprotected machine looks precious', namespace)
    : textTable(
        ['NAMESPACE', 'NAME', 'WHY', 'TO PROTECT IT'],
        items.map(({ namespace, name, reasons, command }) => [
          namespace,
          name,
          reasons.map(({ message }) => message).join('; '),
          command,
        ]),
      );
