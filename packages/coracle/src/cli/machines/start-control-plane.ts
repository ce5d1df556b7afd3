/** A control plane for a command that needs one: that of the data directory, started when none runs. */

import { existsSync, realpathSync } from 'node:fs';
import { NAMESPACES, NODES, SERVICE_ACCOUNTS } from '@coracle/apimachinery/types/resource-types';
import type { Node } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { systemClock } from '@coracle/runtime/clock/clock';
import { kubeconfigPath } from '../../config/cluster.ts';
import { type DataDir, dataDirAt, defaultDataDir } from '../../config/data-dir.ts';
import { findRunning } from '../../config/running.ts';
import { LOOPBACK } from '../../config/serving-address.ts';
import { type CommandContext, textFlag } from '../command.ts';
import { listenError } from '../listen-error.ts';
import { DEFAULT_PORT } from '../up-flags.ts';

/** The data directory whose control plane the command talks to; undefined when it is another cluster. */
export function localDataDir(context: CommandContext): DataDir | undefined {
  const { flags, environment } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const path = kubeconfigPath({ flags, environment });
  if (path === dir.kubeconfig || isSame(path, dir.kubeconfig)) return dir;
  // Nothing says what to talk to: that is ours, once it is there.
  const isNamed = textFlag(flags, 'kubeconfig') !== undefined || Boolean(environment['KUBECONFIG']);
  return !isNamed && !existsSync(path) ? dir : undefined;
}

/** Starts it when it does not run, and says so. On a port of its own where another program has the usual one. */
export async function ensureControlPlane(
  context: CommandContext,
  dir: DataDir,
  { allowsHostPorts }: { readonly allowsHostPorts: boolean },
): Promise<void> {
  if (await findRunning(dir)) return;
  const { note } = context;
  const how = allowsHostPorts ? ', which gives guests ports of this host' : '';
  note(`no control plane runs in ${dir.root}: starting one${how} (coracle down stops it)`);
  const { up } = await import('../up.ts');
  const start = (port: number): Promise<number> =>
    up({
      ...context,
      words: [],
      flags: {
        'data-dir': dir.root,
        detach: true,
        port: String(port),
        ...(allowsHostPorts && { 'allow-host-ports': true }),
      },
      print: note,
    });
  if (!(await isFree(DEFAULT_PORT))) return void (await start(0));
  await start(DEFAULT_PORT).catch(async (error: Error) => {
    // Another control plane, started in the same moment, may have been faster.
    if (await isFree(DEFAULT_PORT)) throw error;
    await start(0);
  });
}

/** A control plane that runs for longer has its nodes and the accounts of its namespaces, or will not have them soon. */
const YOUNG_MS = 30_000;
const LOOK_MS = 100;

/**
 * Waits while a control plane that was just started has no node that takes Pods, or no account for those of the namespace: a
 * machine made before would be refused a Pod, and tried again, with warnings that nobody has to act on. Not for a namespace
 * that is absent: the creation reports that.
 */
export async function awaitFirstNode(
  dir: DataDir,
  client: Client,
  { namespace, signal }: { readonly namespace: string; readonly signal: AbortSignal },
): Promise<void> {
  const running = await findRunning(dir);
  const young = (): boolean => systemClock.now() - Date.parse(running?.startedAt ?? '') < YOUNG_MS;
  while (young()) {
    const [home, account, nodes] = await Promise.all([
      orAbsent(client.get(NAMESPACES, { namespace: '', name: namespace }, { signal })),
      orAbsent(client.get(SERVICE_ACCOUNTS, { namespace, name: 'default' }, { signal })),
      client.list<Node>(NODES, { signal }),
    ]);
    if (!home) return;
    const takesPods = nodes.items.some(({ spec }) => !spec?.taints?.length);
    if (account && (takesPods || running?.nodes.length === 0)) return;
    await systemClock.sleep(LOOK_MS, signal);
  }
}

const isSame = (one: string, other: string): boolean => {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false; // one of them is not there
  }
};

const isFree = async (port: number): Promise<boolean> => (await listenError(port, LOOPBACK)) === undefined;
