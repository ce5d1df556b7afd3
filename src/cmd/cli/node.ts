/** `coracle node`: one node agent alone, against any cluster, under the agents' service account. */
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { systemClock } from '../../base/clock/clock.ts';
import { aborted } from '../../base/signal/abortable.ts';
import { nodeNames, startAgents } from '../compose/agents.ts';
import { AGENT_ACCOUNT } from '../compose/control-plane.ts';
import { connectAs } from '../compose/remote-components.ts';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { openPki } from '../config/pki.ts';
import { type CommandContext, CommandError, listFlag, numberFlag, textFlag, UsageError } from './command.ts';
import { processLog } from './process-log.ts';
import { untilStopped } from './until-stopped.ts';

const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Runs until Ctrl-C or SIGTERM; guests run on and are adopted by the next agent on the same directory. */
export async function node(context: CommandContext): Promise<number> {
  const { flags, environment } = context;
  const name = textFlag(flags, 'name') ?? nodeNames(1)[0]!;
  if (!NODE_NAME.test(name)) throw new UsageError(`--name takes a DNS name in lower case, not "${name}"`);
  const address = textFlag(flags, 'address');
  if (address !== undefined && isIP(address) === 0)
    throw new UsageError(`--address takes an IP address, not "${address}"`);
  const port = numberFlag(flags, 'port', { min: 0, max: 65_535, or: 0 });
  // The data directory is the agent's own here: the cluster is named by a kubeconfig.
  const { 'data-dir': directory, ...rest } = flags;
  const dir = dataDirAt(typeof directory === 'string' ? directory : join(defaultDataDir(environment), 'node'));
  const log = processLog(environment, systemClock);
  const cluster = await clusterFrom({ flags: rest, environment });
  const stop = untilStopped(context.signal);
  try {
    if (!cluster.ca)
      throw new CommandError('the kubeconfig names no certificate authority; the agent needs one to know virt-api by');
    ensurePrivateDir(dir.root);
    const identity = await connectAs(cluster, AGENT_ACCOUNT, { clock: systemClock, log });
    const agents = startAgents({
      names: [name],
      client: identity.client,
      dir,
      pki: await openPki(dir.pki, systemClock),
      clientCa: cluster.ca,
      port,
      ...(address && { address }),
      hostDiskRoots: listFlag(flags, 'host-disk').map((path) => resolve(path)),
      clock: systemClock,
      log,
      signal: stop.signal,
    });
    await agents.ready;
    context.print(`node ${name} is ready at ${cluster.server}`);
    await aborted(stop.signal);
    await agents.close({ keepVms: true });
    await identity.close();
    return 0;
  } finally {
    stop.release();
    await cluster.close();
  }
}
