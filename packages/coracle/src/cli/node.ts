/** `coracle node`: one node agent alone, against any cluster; `coracle node join` makes it a node of a server of ours. */
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { knownAgentId, servedByAnother, takenMessage } from '@coracle/node-agent/agent/registration/agent-id';
import { systemClock } from '@coracle/runtime/clock/clock';
import { aborted } from '@coracle/runtime/signal/abortable';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { nodeNames, type RunningAgents, startAgents } from '../compose/agents.ts';
import { connectNode } from '../compose/node-identity.ts';
import type { RemoteCluster } from '../compose/remote-components.ts';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { openPki } from '../config/pki.ts';
import { awaitedText } from '../config/running.ts';
import { hostAddresses, isLoopback, LOOPBACK } from '../config/serving-address.ts';
import { type CommandContext, CommandError, listFlag, numberFlag, textFlag, UsageError } from './command.ts';
import { type JoinedCluster, joinCluster } from './join-cluster.ts';
import { processLog } from './process-log.ts';
import { awaitedGuests } from './stop-host.ts';
import { untilStopped } from './until-stopped.ts';

const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Runs until Ctrl-C or SIGTERM; guests run on and are adopted by the next agent, unless --stop-vms ends them. */
export async function node(context: CommandContext): Promise<number> {
  const { flags, environment } = context;
  const [act, ...more] = context.words;
  if ((act !== undefined && act !== 'join') || more.length > 0)
    throw new UsageError(`node takes join or nothing, not "${context.words.join(' ')}"`);
  const given = textFlag(flags, 'name');
  if (given !== undefined && !NODE_NAME.test(given))
    throw new UsageError(`--name takes a DNS name in lower case, not "${given}"`);
  let address = textFlag(flags, 'address');
  if (address !== undefined && isIP(address) === 0)
    throw new UsageError(`--address takes an IP address, not "${address}"`);
  const port = numberFlag(flags, 'port', { min: 0, max: 65_535, or: 0 });
  // The data directory is the agent's own here: the cluster is named by a kubeconfig.
  const { 'data-dir': directory, ...rest } = flags;
  const dir = dataDirAt(typeof directory === 'string' ? directory : join(defaultDataDir(environment), 'node'));
  const log = processLog(environment, systemClock);
  const keepVms = flags['stop-vms'] !== true;
  let agents: RunningAgents | undefined;
  // Guests that are being shut down are not left behind by somebody who presses Ctrl-C once more.
  const stop = untilStopped(context.signal, keepVms ? {} : { onAgain: () => reportWaiting(context, agents) });
  // An agent ends when it has stopped its guests, not when it is asked to: only a start that is under way breaks off at once.
  const life = createLinkedController(stop.signal);
  let cluster: (RemoteCluster & { close(): Promise<void> }) | undefined;
  try {
    let name = given ?? nodeNames(1)[0]!;
    let joined: JoinedCluster | undefined;
    if (act === 'join') {
      ensurePrivateDir(dir.root);
      const { pairs } = await openPki(dir.pki, systemClock);
      joined = await joinCluster(context, { dir, pairs });
      name = joined.name ?? name;
      address ??= joined.address;
      cluster = joined;
    } else cluster = await clusterFrom({ flags: rest, environment });
    if (address === undefined && !isLoopback(new URL(cluster.server).hostname.replace(/^\[|\]$/g, '')))
      context.note(
        `warning: this node is served on ${LOOPBACK}, so consoles, logs and migrations work only if the server and the other nodes are on this host; otherwise give --address IP${addressHint()}`,
      );
    if (!cluster.ca)
      throw new CommandError('the kubeconfig names no certificate authority; the agent needs one to verify virt-api');
    ensurePrivateDir(dir.root);
    const pki = await openPki(dir.pki, systemClock);
    const identity = await connectNode(cluster, {
      nodeName: name,
      pairs: pki.pairs,
      clock: systemClock,
      log,
      signal: life.signal,
      onWaiting: (line) => context.note(line),
    });
    await refuseTaken(identity.client, name, join(dir.nodes, name));
    joined?.remember({ name, address });
    agents = startAgents({
      names: [name],
      clientFor: () => identity.client,
      dir,
      pki,
      clientCa: identity.serverCa ?? cluster.ca,
      ...(identity.serverCa !== undefined && { asKubelet: true }),
      ...(identity.peer && { peer: identity.peer }),
      port,
      ...(address && { address }),
      hostDiskRoots: listFlag(flags, 'host-disk').map((path) => resolve(path)),
      allowsHostPorts: flags['allow-host-ports'] === true,
      clock: systemClock,
      log,
      signal: life.signal,
    });
    await agents.ready;
    life.release();
    context.print(`node ${name} is ready at ${cluster.server}`);
    await aborted(stop.signal);
    await agents.close({ keepVms });
    await identity.close();
    return 0;
  } finally {
    life.abort(new DOMException('the node agent has stopped', 'AbortError'));
    stop.release();
    await cluster?.close();
  }
}

function reportWaiting(context: CommandContext, agents: RunningAgents | undefined): void {
  const now = systemClock.now();
  const guests = agents ? awaitedGuests(agents, now) : [];
  context.note(guests.length > 0 ? `waiting for ${awaitedText(guests, now)}` : 'still stopping');
}

/** Two agents of one name would end each other's guests: the second one is not started. */
async function refuseTaken(client: Client, name: string, directory: string): Promise<void> {
  const node = await orAbsent(client.get(NODES, { namespace: '', name }));
  if (node && servedByAnother(node, await knownAgentId(directory)))
    throw new CommandError(`${takenMessage(name)} (--name)`);
}

/** At most three of the addresses that others may reach this host by. */
function addressHint(): string {
  const found = hostAddresses().slice(0, 3);
  return found.length === 0 ? '' : ` (this host has ${found.join(', ')})`;
}
