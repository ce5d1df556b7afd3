/** `coracle status`: what runs in a data directory. */

import { NODES } from '@coracle/apimachinery/types/resource-types';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { findGuestsOnDisk, nameOfGuest } from '@coracle/node-agent/agent/launcher/guests-on-disk';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { awaitedText, findRunning, type Stopping } from '../config/running.ts';
import { type CommandContext, textFlag } from './command.ts';
import { fullDisk } from './full-disk.ts';

/** `coracle status`: exit code 0 when a control plane runs and answers, 1 when not. */
export async function status(context: CommandContext): Promise<number> {
  const { flags, environment, print } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const asJson = flags['json'] === true;
  const running = await findRunning(dir);
  const guests = (await findGuestsOnDisk(dir.nodes)).map((guest) => ({
    name: nameOfGuest(guest),
    node: guest.node,
    pid: guest.process.pid,
    ...(guest.agent && { servedBy: guest.agent.pid }),
    // A record that cannot be read is acted upon by no agent.
    isServed: guest.record !== undefined && guest.agent !== undefined,
  }));
  if (!running) {
    print(
      asJson
        ? JSON.stringify({
            running: false,
            dataDir: dir.root,
            ...(guests.length > 0 && { guests: guests.map(({ isServed: _, ...guest }) => guest) }),
          })
        : [`not running in ${dir.root} (start: coracle up --detach)`, ...guests.map(guestLine)].join('\n'),
    );
    return 1;
  }
  const unserved = guests.filter(({ isServed }) => !isServed);
  if (running.stopping) {
    // Its API closes at any moment.
    print(
      asJson
        ? JSON.stringify({
            running: true,
            pid: running.process.pid,
            dataDir: dir.root,
            stopping: running.stopping,
            ...(unserved.length > 0 && { guests: unserved.map(({ isServed: _, ...guest }) => guest) }),
          })
        : [
            `control plane  ${running.url}  (pid ${running.process.pid})`,
            stoppingLine(running.stopping),
            ...unserved.map(guestLine),
          ].join('\n'),
    );
    return 0;
  }
  const cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment });
  try {
    const [nodes, vms, vmis] = await Promise.all([
      cluster.client.list(NODES),
      cluster.client.list(VIRTUAL_MACHINES),
      cluster.client.list(VIRTUAL_MACHINE_INSTANCES),
    ]);
    const ready = nodes.items.filter((node) =>
      node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'),
    );
    const active = vmis.items.filter((vmi) => vmi.status?.phase === 'Running');
    const full = await fullDisk(dir.root);
    const summary = {
      running: true,
      pid: running.process.pid,
      url: running.url,
      version: running.version,
      startedAt: running.startedAt,
      dataDir: dir.root,
      nodes: { ready: ready.length, total: nodes.items.length },
      virtualMachines: { running: active.length, total: vms.items.length },
      ...(full !== undefined && { diskPressure: full }),
      ...(unserved.length > 0 && { guests: unserved.map(({ isServed: _, ...guest }) => guest) }),
    };
    print(
      asJson
        ? JSON.stringify(summary)
        : [
            `control plane  ${running.url}  (pid ${running.process.pid}, version ${running.version}, since ${running.startedAt})`,
            `data           ${dir.root}`,
            `nodes          ${ready.length} of ${nodes.items.length} ready`,
            `machines       ${active.length} running, ${vms.items.length} defined`,
            ...(full === undefined ? [] : [`disk           ${full}`]),
            ...unserved.map(guestLine),
          ].join('\n'),
    );
    return 0;
  } finally {
    await cluster.close();
  }
}

/** A guest that runs while no control plane looks after it. */
const guestLine = (guest: {
  readonly name: string;
  readonly node: string;
  readonly pid: number;
  readonly servedBy?: number;
}): string =>
  `guest          ${guest.name} runs on ${guest.node} (pid ${guest.pid}), ${
    guest.servedBy === undefined
      ? 'without a control plane (coracle down stops it)'
      : `served by process ${guest.servedBy}`
  }`;

function stoppingLine({ guests, keepVms }: Stopping): string {
  const what = guests.length > 0 ? `waits for ${awaitedText(guests, systemClock.now())}` : 'waits for no guest';
  return `stopping       ${keepVms ? 'guests keep running' : what}`;
}
