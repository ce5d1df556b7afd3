/** `coracle status`: what runs in a data directory. */

import { statfs } from 'node:fs/promises';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';

import { NODES } from '@coracle/apimachinery/types/resource-types';
import { findGuestsOnDisk, nameOfGuest } from '@coracle/node-agent/agent/launcher/guests-on-disk';
import { openImageStore } from '@coracle/node-agent/image/image-store';
import { listImages } from '@coracle/node-agent/image/local-images';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { type DataDir, dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { awaitedText, findRunning, type Stopping } from '../config/running.ts';
import { type CommandContext, textFlag } from './command.ts';
import { fullDisk } from './full-disk.ts';
import { hasColour, machineTable } from './machines/list.ts';
import { readMachines } from './machines/machine-row.ts';
import { spaceOnDisk } from './machines/space-on-disk.ts';
import { sizeText } from './size-text.ts';

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
  const facts = await readFacts(context, dir);
  const { nodes, machines, images, used, space, full } = facts;
  const active = machines.filter(({ runsSince }) => runsSince !== undefined);
  if (asJson)
    print(
      JSON.stringify({
        running: true,
        pid: running.process.pid,
        url: running.url,
        version: running.version,
        startedAt: running.startedAt,
        dataDir: dir.root,
        nodes: { ready: nodes.ready, total: nodes.total },
        virtualMachines: { running: active.length, total: machines.length },
        machines,
        images,
        diskBytes: used,
        ...(space && { space }),
        ...(full !== undefined && { diskPressure: full }),
        ...(unserved.length > 0 && { guests: unserved.map(({ isServed: _, ...guest }) => guest) }),
      }),
    );
  else
    print(
      [
        `control plane  ${running.url}  (pid ${running.process.pid}, version ${running.version}, since ${running.startedAt})`,
        `data           ${dir.root}${space ? `  (${sizeText(space.freeBytes)} of ${sizeText(space.totalBytes)} free)` : ''}`,
        `nodes          ${nodes.ready} of ${nodes.total} ready`,
        `images         ${images.count}, ${sizeText(images.bytes)}`,
        `disks          ${sizeText(used)}`,
        `machines       ${active.length} running, ${machines.length} defined`,
        ...(full === undefined ? [] : [`disk           ${full}`]),
        ...unserved.map(guestLine),
        ...(machines.length === 0
          ? []
          : ['', machineTable(machines, { withNamespace: true, colour: hasColour(context) })]),
      ].join('\n'),
    );
  return 0;
}

/** What the API and the disk say of a control plane that runs. */
async function readFacts({ environment, signal }: CommandContext, dir: DataDir) {
  const cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment });
  try {
    const onDisk = spaceOnDisk(dir, cluster.client, signal);
    const [nodes, machines, images, { bytes: used }, space, full] = await Promise.all([
      cluster.client.list(NODES, { signal }),
      onDisk.then(({ bytesOf }) => readMachines(cluster.client, { namespace: undefined, signal, bytesOf })),
      listImages(await openImageStore(dir.images, { clock: systemClock })),
      onDisk,
      diskSpace(dir.root),
      fullDisk(dir.root),
    ]);
    const ready = nodes.items.filter((node) => isConditionTrue(node, 'Ready'));
    return {
      nodes: { ready: ready.length, total: nodes.items.length },
      machines,
      images: { count: images.length, bytes: images.reduce((sum, { size }) => sum + size, 0) },
      used,
      space,
      full,
    };
  } finally {
    await cluster.close();
  }
}

/** Undefined where it cannot be asked. */
async function diskSpace(directory: string): Promise<{ freeBytes: number; totalBytes: number } | undefined> {
  try {
    const { bavail, bsize, blocks } = await statfs(directory);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch {
    return undefined;
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
