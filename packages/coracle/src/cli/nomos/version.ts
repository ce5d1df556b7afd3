/** `coracle nomos version`: what reconciles the syncs of each cluster, and this program. */

import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { CONFIG_SYNC_GROUP, CONFIG_SYNC_NAMESPACE } from '@coracle/gitops/kinds/kinds';
import { VERSION } from '../../config/version.ts';
import type { CommandContext } from '../command.ts';
import { durationFlag } from '../duration-flag.ts';
import { textTable } from '../text-table.ts';
import { askContexts } from './contexts.ts';

interface ManagerDeployment extends KubeObject {
  spec?: { template?: { spec?: { containers?: { name: string; image?: string }[] } } };
}

const DEPLOYMENTS = namespacedType<ManagerDeployment>('apps/v1', 'deployments', 'Deployment');
const MANAGER = 'reconciler-manager';
const TIMEOUT_MS = 15_000;

/** `coracle nomos version`: upstream's columns. */
export async function version(context: CommandContext): Promise<number> {
  const timeoutMs = durationFlag(context.flags, 'timeout', { or: TIMEOUT_MS });
  const answers = await askContexts(context, timeoutMs, ({ client }, signal) => reconcilerVersion(client, signal));
  const rows = answers.map(({ name, isCurrent, answer }) => [
    isCurrent ? '*' : '',
    name,
    'error' in answer ? '' : 'Config Sync',
    'error' in answer ? `<error: ${answer.error}>` : answer.value,
  ]);
  context.print(
    textTable(['CURRENT', 'CLUSTER_CONTEXT_NAME', 'COMPONENT', 'VERSION'], [...rows, ['', '', '<nomos CLI>', VERSION]]),
  );
  return 0;
}

/** Of upstream's manager its image's tag; of Coracle its server's version. */
async function reconcilerVersion(client: Client, signal: AbortSignal): Promise<string> {
  try {
    const key = { namespace: CONFIG_SYNC_NAMESPACE, name: MANAGER };
    const { spec } = await client.get(DEPLOYMENTS, key, { signal });
    const image = spec?.template?.spec?.containers?.find(({ name }) => name === MANAGER)?.image ?? '';
    return /:([^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? 'UNKNOWN';
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const groups = (await client.raw('GET', '/apis', { signal })) as { groups?: { name: string }[] };
  if (!groups.groups?.some(({ name }) => name === CONFIG_SYNC_GROUP)) return 'NOT INSTALLED';
  const { gitVersion = '' } = (await client.raw('GET', '/version', { signal })) as { gitVersion?: string };
  // Against an external cluster nothing tells whether `coracle controllers` runs somewhere.
  return gitVersion.includes('+coracle') ? gitVersion : 'UNKNOWN';
}
