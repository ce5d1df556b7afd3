/** `coracle nomos migrate`: upstream turns its legacy mode into RootSyncs; here there is none, which this says. */
import { clusterType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { type CommandContext, CommandError, textFlag } from '../command.ts';
import { durationFlag } from '../duration-flag.ts';
import { askContexts } from './contexts.ts';

interface ConfigManagement extends KubeObject {
  spec?: { enableMultiRepo?: boolean };
}

const CONFIG_MANAGEMENTS = clusterType<ConfigManagement>(
  'configmanagement.gke.io/v1',
  'configmanagements',
  'ConfigManagement',
);
const CONNECT_MS = 3000;

/** Exit code 0 where nothing is to be migrated; nothing is ever changed. */
export async function migrate(context: CommandContext): Promise<number> {
  const { flags, print } = context;
  const timeoutMs = durationFlag(flags, 'connect-timeout', { or: CONNECT_MS, bareSeconds: true });
  const contexts = textFlag(flags, 'contexts');
  const isAll = contexts === 'all';
  const { contexts: _all, ...rest } = flags;
  const answers = (
    await askContexts(isAll ? { ...context, flags: rest } : context, timeoutMs, ({ client }, signal) =>
      isLegacy(client, signal),
    )
  ).filter(({ isCurrent }) => contexts !== undefined || isCurrent);
  if (answers.length === 0) throw new CommandError('the kubeconfig has no such context');
  const failed: string[] = [];
  for (const { name, answer } of answers) {
    if ('error' in answer) failed.push(`${name}: ${answer.error}`);
    else if (answer.value)
      failed.push(
        `${name}: its ConfigManagement is in the legacy mode, which this program does not migrate: use upstream's nomos migrate`,
      );
    else print(`${name}: nothing to migrate: there is no ConfigManagement in the legacy mode`);
  }
  if (failed.length > 0) throw new CommandError(failed.join('; '));
  return 0;
}

async function isLegacy(client: Client, signal: AbortSignal): Promise<boolean> {
  const list = await orAbsent(client.list(CONFIG_MANAGEMENTS, { signal }));
  return list?.items.some(({ spec }) => spec?.enableMultiRepo !== true) ?? false;
}
