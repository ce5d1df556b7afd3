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
  const answer = (json: object, lines: readonly string[]): void =>
    print(flags['json'] === true ? JSON.stringify(json) : lines.join('\n'));
  const running = await findRunning(dir);
  const guests = (await findGuestsOnDisk(dir.nodes)).map((guest) => ({
    name: nameOfGuest(guest),
    node: guest.node,
    pid: guest.process.pid,
    ...(guest.agent && { servedBy: guest.agent.pid }),
    // A record that cannot be read is acted upon by no agent.
    isServed: guest.record !== undefined && guest.agent !== undefined,
  }));
  const listed = (some: typeof guests) => some.length > 0 && { guests: some.map(({ isServed: _, ...guest }) => guest) };
  if (!running) {
    answer({ running: false, dataDir: dir.root, ...listed(guests) }, [
      `not running in ${dir.root} (start: coracle up --detach)`,
      ...guests.map(guestLine),
    ]);
    return 1;
  }
  const { process, url, version, startedAt, stopping } = running;
  const unserved = guests.filter(({ isServed }) => !isServed);
  if (stopping) {
    // Its API closes at any moment.
    answer({ running: true, pid: process.pid, dataDir: dir.root, stopping, ...listed(unserved) }, [
      `control plane  ${url}  (pid ${process.pid})`,
      stoppingLine(stopping),
      ...unserved.map(guestLine),
    ]);
    return 0;
  }
  const { nodes, machines, images, used, space, full } = await readFacts(context, dir);
  const active = machines.filter(({ runsSince }) => runsSince !== undefined);
  const json = {
    running: true,
    pid: process.pid,
    url,
    version,
    startedAt,
    dataDir: dir.root,
    nodes,
    virtualMachines: { running: active.length, total: machines.length },
    machines,
    images,
    diskBytes: used,
    ...(space && { space }),
    ...(full !== undefined && { diskPressure: full }),
    ...listed(unserved),
  };
  answer(json, [
    `control plane  ${url}  (pid ${process.pid}, version ${version}, since ${startedAt})`,
    `data           ${dir.root}${space ? `  (${sizeText(space.freeBytes)} of ${sizeText(space.totalBytes)} free)` : ''}`,
    `nodes          ${nodes.ready} of ${nodes.total} ready`,
    `images         ${images.count}, ${sizeText(images.bytes)}`,
    `disks          ${sizeText(used)}`,
    `machines       ${active.length} running, ${machines.length} defined`,
    ...(full === undefined ? [] : [`disk           ${full}`]),
    ...unserved.map(guestLine),
    ...(machines.length === 0 ? [] : ['', machineTable(machines, { withNamespace: true, colour: hasColour(context) })]),
  ]);
  return 0;
}

/** What the API and the disk say of a control plane that runs. */
async function readFacts({ environment, signal }: CommandContext, dir: DataDir) {
  await using cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment });
  const { client } = cluster;
  const onDisk = spaceOnDisk(dir, client, signal);
  const [{ items: nodes }, machines, images, { bytes: used }, space, full] = await Promise.all([
    client.list(NODES, { signal }),
    onDisk.then(({ bytesOf }) => readMachines(client, { namespace: undefined, signal, bytesOf })),
    listImages(await openImageStore(dir.images, { clock: systemClock })),
    onDisk,
    diskSpace(dir.root),
    fullDisk(dir.root),
  ]);
  return {
    nodes: { ready: nodes.filter((node) => isConditionTrue(node, 'Ready')).length, total: nodes.length },
    machines,
    images: { count: images.length, bytes: images.reduce((sum, { size }) => sum + size, 0) },
    used,
    space,
    full,
  };
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
function guestLine(guest: { name: string; node: string; pid: number; servedBy?: number }): string {
  const { name, node, pid, servedBy } = guest;
  const by =
    servedBy === undefined ? 'without a control plane (coracle down stops it)' : `served by process ${servedBy}`;
  return `guest          ${name} runs on ${node} (pid ${pid}), ${by}`;
}

function stoppingLine({ guests, keepVms }: Stopping): string {
  const what = guests.length > 0 ? `waits for ${awaitedText(guests, systemClock.now())}` : 'waits for no guest';
  return `stopping       ${keepVms ? 'guests keep running' : what}`;
}
