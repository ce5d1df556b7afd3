/** Layers of a guest that runs, merged by its QEMU: jobs that copy between layers and then leave one out. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '@coracle/runtime/clock/clock';
import { QmpError } from '../qmp/qmp-connection.ts';
import { openLayers, type RunningDisk } from './running-disk.ts';

const POLL_MS = 200;

export type RunningMerge =
  | { readonly kind: 'commit'; readonly upper: string; readonly lower: string }
  | { readonly kind: 'flatten'; readonly base: string; readonly between: readonly string[] };

/**
 * Resolves when QEMU has left the layers out and closed them. Broken off by the signal: then all is as before, or the job
 * was through already, which the next call finds.
 */
export async function mergeRunning(
  disk: RunningDisk,
  merge: RunningMerge,
  options: { readonly clock: Clock; readonly directory: string; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, directory, signal } = options;
  const { root, nodes } = await openLayers(disk, directory);
  const id = `${disk.node}-merge-${randomBytes(4).toString('hex')}`;
  const qmp = disk.qmp();
  if (merge.kind === 'commit') {
    const [upper, lower] = [nodes.get(merge.upper), nodes.get(merge.lower)];
    if (lower === undefined) throw new Error('the guest does not have the lower layer open');
    // Done by a job whose end nobody saw.
    if (upper === undefined) return;
    const args = { 'job-id': id, device: root, 'top-node': upper, 'base-node': lower, 'auto-dismiss': false };
    try {
      await qmp.execute('block-commit', args);
    } catch (error) {
      // The same where the node outlived the job: whoever added it has to remove it.
      if (!(error instanceof QmpError && error.message.includes(`'${upper}' is not in this backing file chain`)))
        throw error;
      return closeNodes(disk, [upper]);
    }
  } else {
    const base = nodes.get(merge.base);
    if (base === undefined) throw new Error('the guest does not have the lowest layer open');
    await qmp.execute('block-stream', { 'job-id': id, device: root, 'base-node': base, 'auto-dismiss': false });
  }
  try {
    for (;;) {
      const job = (await qmp.execute('query-jobs')).find((one) => one.id === id);
      if (!job) throw new Error('QEMU has lost the job');
      if (job.status === 'concluded') {
        if (job.error !== undefined) throw new Error(job.error);
        break;
      }
      await clock.sleep(POLL_MS, signal);
    }
  } finally {
    await endJob(disk, id, clock);
  }
  const left = merge.kind === 'commit' ? [merge.upper] : merge.between;
  await closeNodes(
    disk,
    left.flatMap((layer) => nodes.get(layer) ?? []),
  );
}

/** Has QEMU close what it does not use any more; what it does use it keeps, and so does one that does not answer. */
export async function closeNodes(disk: RunningDisk, nodes: readonly string[]): Promise<void> {
  for (const node of nodes)
    await disk
      .qmp()
      .execute('blockdev-del', { 'node-name': node })
      .catch(() => {});
}

/** Ends all jobs of the disk that were ours: nobody waits for them any more. */
export async function endMerges(disk: RunningDisk, clock: Clock): Promise<void> {
  for (const { id } of await disk.qmp().execute('query-jobs'))
    if (id.startsWith(`${disk.node}-merge-`)) await endJob(disk, id, clock);
}

/** Cancels a job that runs, and forgets it once it is over; QEMU answers a cancelled one within moments. */
async function endJob(disk: RunningDisk, id: string, clock: Clock): Promise<void> {
  const never = new AbortController().signal;
  for (let tries = 0; tries < 50; tries++) {
    try {
      const job = (await disk.qmp().execute('query-jobs')).find((one) => one.id === id);
      if (!job) return;
      if (job.status === 'concluded') await disk.qmp().execute('job-dismiss', { id });
      else await disk.qmp().execute('job-cancel', { id });
    } catch (error) {
      if (!(error instanceof QmpError && error.failure === 'refused')) return;
    }
    await clock.sleep(POLL_MS / 2, never);
  }
}
