/** One agent for each data directory: the holder's identity in a file, believed only while that process lives. */
import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identify, isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';

interface Holder extends ProcessIdentity {
  readonly instance: string;
}

/** Takes the lock; returns the function that gives it back. Throws when a living process holds it. */
export async function takeAgentLock(directory: string): Promise<() => Promise<void>> {
  const path = join(directory, 'agent.lock');
  const own = await identify(process.pid);
  if (!own) throw new Error('this process cannot be found in /proc');
  const holder: Holder = { ...own, instance: randomUUID() };
  const text = JSON.stringify(holder);
  for (let attempt = 0; ; attempt++) {
    try {
      const file = await open(path, 'wx', 0o600);
      await file.writeFile(text).finally(() => file.close());
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt > 3) throw error;
    }
    const other = await readHolder(path);
    if (other && (await isRunning(other)))
      throw new Error(`another node agent (pid ${other.pid}) works in ${directory}; stop it, or use another directory`);
    // Stale: moved aside under a name of our own, so that two agents cannot both remove it.
    const aside = `${path}.${holder.instance}`;
    await rename(path, aside).catch(() => {});
    await rm(aside, { force: true });
  }
  if ((await readHolder(path))?.instance !== holder.instance)
    throw new Error(`another node agent took ${directory} at the same time`);
  return async () => {
    if ((await readHolder(path))?.instance === holder.instance) await rm(path, { force: true });
  };
}

/** The living process whose agent works in this directory, if there is one. */
export async function agentAt(directory: string): Promise<ProcessIdentity | undefined> {
  const holder = await readHolder(join(directory, 'agent.lock'));
  return holder && (await isRunning(holder)) ? holder : undefined;
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

/** Checks that the directory can be written: an agent that cannot record anything must not start guests. */
export async function checkWritable(directory: string): Promise<void> {
  const path = join(directory, `.probe-${randomUUID()}`);
  await writeFile(path, 'x', { mode: 0o600 });
  await rm(path, { force: true });
}
